package contract

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// encoding/json takes the last of two equal keys and turns half characters into U+FFFD without a word. Both are
// faults of a contract, so JSON is read here token by token.

// loneSurrogate stands for half a character, which no Go string can hold.
const loneSurrogate = '\ufdd0'

// maxDigits bounds integers, as the service's JSON reader does.
const maxDigits = 4300

var errDigits = errors.New("an integer has too many digits")

type number string

func (n number) isFinite() bool {
	value, err := strconv.ParseFloat(string(n), 64)
	return err == nil && !math.IsInf(value, 0)
}

type object struct {
	keys     []string
	values   map[string]any
	repeated map[string]bool
}

func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

func (o *object) twice(path string) []Fault {
	var faults []Fault
	for key := range o.repeated {
		faults = append(faults, Fault{join(path, key), "duplicate_key"})
	}
	for _, key := range o.keys {
		faults = append(faults, twiceIn(join(path, key), o.values[key])...)
	}
	sort.Slice(faults, func(a, b int) bool { return faults[a].Path < faults[b].Path })
	return faults
}

func twiceIn(path string, value any) []Fault {
	switch found := value.(type) {
	case *object:
		return found.twice(path)
	case []any:
		var faults []Fault
		for at, item := range found {
			faults = append(faults, twiceIn(join(path, strconv.Itoa(at)), item)...)
		}
		return faults
	}
	return nil
}

// renamed gives every alias its own name; false where a name then stands twice.
func (o *object) renamed(aliases map[string]string) (*object, bool) {
	own := &object{values: map[string]any{}}
	for _, key := range o.keys {
		name := key
		if alias, isAlias := aliases[key]; isAlias {
			name = alias
		}
		if _, taken := own.values[name]; taken {
			return nil, false
		}
		own.keys = append(own.keys, name)
		own.values[name] = o.values[key]
	}
	return own, true
}

func depth(value any) int {
	deepest := 0
	switch found := value.(type) {
	case *object:
		for _, item := range found.values {
			deepest = larger(deepest, depth(item))
		}
	case []any:
		for _, item := range found {
			deepest = larger(deepest, depth(item))
		}
	default:
		return 0
	}
	return deepest + 1
}

func larger(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func readJSON(raw []byte) (any, []Fault) {
	malformed := []Fault{{"", "malformed_json"}}
	if !utf8.Valid(raw) {
		return nil, malformed
	}
	decoder := json.NewDecoder(strings.NewReader(markSurrogates(string(raw))))
	decoder.UseNumber()
	value, err := readValue(decoder)
	if err != nil {
		return nil, malformed
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, malformed
	}
	return value, nil
}

func readValue(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch found := token.(type) {
	case json.Delim:
		if found == '{' {
			return readObject(decoder)
		}
		return readList(decoder)
	case json.Number:
		if digits := strings.TrimPrefix(string(found), "-"); len(digits) > maxDigits && !strings.ContainsAny(digits, ".eE") {
			return nil, errDigits
		}
		return number(found), nil
	}
	return token, nil
}

func readObject(decoder *json.Decoder) (any, error) {
	found := &object{values: map[string]any{}, repeated: map[string]bool{}}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		key := token.(string)
		value, err := readValue(decoder)
		if err != nil {
			return nil, err
		}
		if _, taken := found.values[key]; taken {
			found.repeated[key] = true
		} else {
			found.keys = append(found.keys, key)
		}
		found.values[key] = value
	}
	_, err := decoder.Token()
	return found, err
}

func readList(decoder *json.Decoder) (any, error) {
	found := []any{}
	for decoder.More() {
		value, err := readValue(decoder)
		if err != nil {
			return nil, err
		}
		found = append(found, value)
	}
	_, err := decoder.Token()
	return found, err
}

var escapes = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|u[fF][dD][dD]0|.)`)

// markSurrogates replaces escapes of half characters; whole pairs and other escapes stay. The character that
// marks them gives way to its neighbour where it is sent itself: both mean nothing.
func markSurrogates(raw string) string {
	raw = strings.ReplaceAll(raw, string(loneSurrogate), "\ufdd1")
	return escapes.ReplaceAllStringFunc(raw, func(escape string) string {
		switch {
		case strings.EqualFold(escape, `\ufdd0`):
			return `\ufdd1`
		case len(escape) == 6:
			return `\ufdd0`
		}
		return escape
	})
}
