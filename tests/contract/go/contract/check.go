package contract

import (
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is one broken rule and the path of the field that breaks it.
type Fault struct {
	Path string `json:"path"`
	Rule string `json:"rule"`
}

// Verdict is what the service would say about a contract, faults sorted by path and rule.
type Verdict struct {
	Domain  string
	Faults  []Fault
	Ignored []string
}

// OK tells whether the contract would be accepted.
func (v Verdict) OK() bool { return len(v.Faults) == 0 }

// A number of a pre-release has no zero before it.
const preRelease = `(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)`

var semver = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})` +
	`(?:-` + preRelease + `(?:\.` + preRelease + `)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$`)

// maxPath bounds the path of a fault, in characters.
const maxPath = 200

// Check judges a contract by the service's own rules, before it is sent.
func Check(raw []byte) Verdict {
	sent, faults := readJSON(raw)
	if faults != nil {
		return verdict("", faults)
	}
	object, isObject := sent.(*object)
	if !isObject {
		return verdict("", []Fault{{"", "object"}})
	}
	if depth(object) > MaxDepth {
		return verdict("", []Fault{{"", "too_deep"}})
	}
	if twice := object.twice(""); len(twice) > 0 {
		return verdict("", twice)
	}
	isNewer, faults := standing(object)
	if faults != nil {
		return verdict("", faults)
	}
	domain, faults := domainOf(object)
	if faults != nil {
		return verdict("", faults)
	}
	return judge(object, domain, isNewer)
}

func judge(sent *object, domain string, isNewer bool) Verdict {
	walk := &walker{domain: domain, state: reflect.TypeOf(Domains[domain])}
	walk.object("", sent, reflect.TypeOf(contractTypes[domain]))
	var faults []Fault
	var ignored []string
	for _, fault := range walk.faults {
		if isNewer && (fault.Rule == "unknown_field" || fault.Rule == "unknown_slot") {
			ignored = append(ignored, shown(fault.Path))
			continue
		}
		faults = append(faults, fault)
	}
	if len(faults) == 0 {
		faults = crossFaults(sent)
	}
	found := verdict(domain, faults)
	if found.OK() {
		sort.Strings(ignored)
		found.Ignored = ignored
	}
	return found
}

func verdict(domain string, faults []Fault) Verdict {
	for at := range faults {
		faults[at].Path = shown(faults[at].Path)
	}
	sort.Slice(faults, func(a, b int) bool {
		return faults[a].Path+"\x00"+faults[a].Rule < faults[b].Path+"\x00"+faults[b].Rule
	})
	return Verdict{Domain: domain, Faults: faults}
}

// shown is a path as the service shows it: bounded, and without what no text can carry.
func shown(path string) string {
	runes := []rune(strings.NewReplacer("\x00", "?", string(loneSurrogate), "?").Replace(path))
	if len(runes) > maxPath {
		runes = runes[:maxPath]
	}
	return string(runes)
}

// isBlank counts as white space what the service counts: the separators U+001C to U+001F too.
func isBlank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || '\x1c' <= r && r <= '\x1f' }) == ""
}

// Version and domain come before everything else.

func standing(sent *object) (bool, []Fault) {
	meta, _ := sent.get("meta").(*object)
	text, isText := meta.get("context_version").(string)
	if !isText {
		return false, nil
	}
	found := semver.FindStringSubmatch(text)
	if found == nil {
		return false, []Fault{{"meta.context_version", "semver"}}
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	if major != SpokenMajor {
		return false, []Fault{{"meta.context_version", "unsupported_version"}}
	}
	return minor > SpokenMinor, nil
}

func domainOf(sent *object) (string, []Fault) {
	context, _ := sent.get("context").(*object)
	state, _ := context.get("consultation_state").(*object)
	name, _ := state.get("domain").(string)
	if isBlank(name) {
		return DefaultDomain, nil
	}
	if _, known := Domains[name]; !known {
		return "", []Fault{{"context.consultation_state.domain", "unknown_domain"}}
	}
	return name, nil
}

func crossFaults(sent *object) []Fault {
	context, meta := sent.get("context").(*object), sent.get("meta").(*object)
	messages, _ := context.get("recent_messages").([]any)
	var faults []Fault
	if bigOf(string(meta.get("included_message_count").(number))).Cmp(big.NewInt(int64(len(messages)))) != 0 {
		faults = append(faults, Fault{"meta.included_message_count", "count_mismatch"})
	}
	summary, _ := context.get("conversation_summary").(string)
	hasVersion := bigOf(string(meta.get("summary_version").(number))).Sign() != 0
	if !isBlank(summary) != hasVersion {
		faults = append(faults, Fault{"meta.summary_version", "summary_version"})
	}
	return faults
}

// walker compares a JSON value with the structs; what a struct allows stands in its tags.
type walker struct {
	domain string
	state  reflect.Type
	faults []Fault
}

func (w *walker) say(path, rule string) { w.faults = append(w.faults, Fault{path, rule}) }

func (w *walker) object(path string, sent *object, kind reflect.Type) {
	for _, key := range sent.keys {
		if strings.ContainsRune(key, loneSurrogate) {
			w.say(path, "text_has_surrogate")
			return
		}
	}
	before := len(w.faults)
	if kind == w.state {
		renamed, isFine := sent.renamed(Aliases[w.domain])
		if !isFine {
			w.say(path, "alias_conflict")
			return
		}
		sent = renamed
	}
	known, isOpen := map[string]bool{}, false
	for _, field := range fieldsOf(kind) {
		if field.has("extra") {
			isOpen = true
			continue
		}
		known[field.name] = true
		w.field(join(path, field.name), sent, field)
	}
	isSound := len(w.faults) == before // only then are the other fields of an open object judged
	for _, key := range sent.keys {
		if known[key] {
			continue
		}
		if !isOpen {
			w.say(join(path, key), "unknown_field")
		} else if rule := extraFault(key, sent.values[key]); rule != "" && isSound {
			w.say(join(path, key), rule)
		}
	}
	if kind == w.state {
		w.slots(path, sent)
	}
}

func (w *walker) field(path string, sent *object, field field) {
	value, isThere := sent.values[field.name]
	if !isThere {
		if field.has("required") {
			w.say(path, "required")
		}
		return
	}
	kind := field.kind
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
		if value == nil {
			return
		}
	}
	if field.name == "domain" {
		w.domainField(path, value)
		return
	}
	w.value(path, value, kind, field)
}

func (w *walker) domainField(path string, value any) {
	if text, isText := value.(string); !isText || (!isBlank(text) && text != w.domain) {
		w.say(path, "unknown_domain")
	}
}

func (w *walker) value(path string, value any, kind reflect.Type, field field) {
	switch kind.Kind() {
	case reflect.Struct:
		if sent, isObject := value.(*object); isObject {
			w.object(path, sent, kind)
		} else {
			w.say(path, "object")
		}
	case reflect.Slice:
		w.list(path, value, kind)
	case reflect.String:
		if rule := textFault(value, field); rule != "" {
			w.say(path, rule)
		}
	case reflect.Int64:
		if rule := integerFault(value, field); rule != "" {
			w.say(path, rule)
		}
	case reflect.Float64:
		if found, isNumber := value.(number); !isNumber || !found.isFinite() {
			w.say(path, "number")
		}
	}
}

// A null list is empty.
func (w *walker) list(path string, value any, kind reflect.Type) {
	items, isList := value.([]any)
	if !isList && value != nil {
		w.say(path, "list")
	}
	for at, item := range items {
		w.value(join(path, strconv.Itoa(at)), item, kind.Elem(), field{})
	}
}

func (w *walker) slots(path string, sent *object) {
	own := map[string]bool{}
	for _, field := range fieldsOf(w.state) {
		own[field.name] = !commonFields[field.name]
	}
	for _, list := range []string{"missing_slots", "pending_answer_for"} {
		items, _ := sent.values[list].([]any)
		if !areTexts(items) {
			continue
		}
		for at, item := range items {
			name := item.(string)
			if alias, isAlias := Aliases[w.domain][name]; isAlias {
				name = alias
			}
			if !own[name] {
				w.say(join(path, fmt.Sprintf("%s.%d", list, at)), "unknown_slot")
			}
		}
	}
}

func areTexts(items []any) bool {
	for _, item := range items {
		if text, isText := item.(string); !isText || soundFault(text) != "" {
			return false
		}
	}
	return true
}

func extraFault(name string, value any) string {
	items, isList := value.([]any)
	if !isList {
		items = []any{value}
	}
	for _, item := range items {
		switch found := item.(type) {
		case string:
			if rule := soundFault(name + found); rule != "" {
				return rule
			}
		case []any, *object:
			return "profile_value"
		case number:
			if strings.ContainsAny(string(found), ".eE") && !found.isFinite() {
				return "profile_value"
			}
		}
	}
	return soundFault(name)
}

func textFault(value any, field field) string {
	text, isText := value.(string)
	if !isText {
		return "string"
	}
	if strings.ContainsRune(text, loneSurrogate) {
		return "text_has_surrogate"
	}
	length := utf8.RuneCountInString(text)
	if field.has("question") {
		switch {
		case isBlank(text):
			return "text_empty"
		case length > MaxMessageCharacters:
			return "text_too_long"
		}
	}
	if rule := soundFault(text); rule != "" {
		return rule
	}
	switch {
	case length < field.bound("minlen", 0):
		return "too_short"
	case length > field.bound("maxlen", 1<<31-1):
		return "too_long"
	case field.has("not_blank") && isBlank(text):
		return "not_blank"
	}
	return ""
}

func soundFault(text string) string {
	switch {
	case strings.ContainsRune(text, loneSurrogate):
		return "text_has_surrogate"
	case strings.ContainsRune(text, 0):
		return "text_has_nul"
	}
	return ""
}

func integerFault(value any, field field) string {
	found, isNumber := value.(number)
	if !isNumber || strings.ContainsAny(string(found), ".eE") {
		return "integer"
	}
	given, _ := new(big.Int).SetString(string(found), 10)
	if low, has := field.tag["min"]; has && given.Cmp(bigOf(low)) < 0 {
		return "minimum"
	}
	if high, has := field.tag["max"]; has && given.Cmp(bigOf(high)) > 0 {
		return "maximum"
	}
	return ""
}

func bigOf(text string) *big.Int {
	found, _ := new(big.Int).SetString(text, 10)
	return found
}

// field is one field of a struct with its name on the wire and its rules.
type field struct {
	name string
	kind reflect.Type
	tag  map[string]string
}

func (f field) has(rule string) bool {
	_, found := f.tag[rule]
	return found
}

func (f field) bound(rule string, otherwise int) int {
	if found, err := strconv.Atoi(f.tag[rule]); err == nil {
		return found
	}
	return otherwise
}

func typeOf(value any) reflect.Type { return reflect.TypeOf(value) }

func fieldsOf(kind reflect.Type) []field {
	fields := make([]field, 0, kind.NumField())
	for at := 0; at < kind.NumField(); at++ {
		found := kind.Field(at)
		name, _, _ := strings.Cut(found.Tag.Get("json"), ",")
		rules := map[string]string{}
		for _, rule := range strings.Split(found.Tag.Get("contract"), ",") {
			key, value, _ := strings.Cut(rule, "=")
			rules[key] = value
		}
		fields = append(fields, field{name, found.Type, rules})
	}
	return fields
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
