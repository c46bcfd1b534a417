package contract

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// vector is one golden case: the same files that the service's own tests read.
type vector struct {
	About    string
	Contract json.RawMessage
	Raw      string
	Expect   struct {
		Domain    string
		Faults    []Fault
		Ignored   []string
		Canonical json.RawMessage
	}
}

func vectors(t *testing.T) map[string]vector {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "vectors", "*.json"))
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d vectors found, at least 40 are needed (%v)", len(paths), err)
	}
	found := map[string]vector{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var one vector
		if err := json.Unmarshal(raw, &one); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		found[filepath.Base(path)] = one
	}
	return found
}

func (v vector) sent() []byte {
	if v.Raw != "" {
		return []byte(v.Raw)
	}
	return v.Contract
}

func TestEveryVectorIsJudgedAsTheServiceJudgesIt(t *testing.T) {
	for name, vector := range vectors(t) {
		found := Check(vector.sent())
		expected := verdict(vector.Expect.Domain, vector.Expect.Faults)
		if !reflect.DeepEqual(orEmpty(found.Faults), orEmpty(expected.Faults)) {
			t.Errorf("%s (%s): faults %v, expected %v", name, vector.About, found.Faults, expected.Faults)
		}
		if found.OK() && found.Domain != vector.Expect.Domain {
			t.Errorf("%s: domain %q, expected %q", name, found.Domain, vector.Expect.Domain)
		}
		if len(found.Ignored)+len(vector.Expect.Ignored) > 0 && !reflect.DeepEqual(found.Ignored, vector.Expect.Ignored) {
			t.Errorf("%s: ignored %v, expected %v", name, found.Ignored, vector.Expect.Ignored)
		}
	}
}

func orEmpty(faults []Fault) []Fault { return append([]Fault{}, faults...) }

func TestEveryValidVectorSurvivesTheStructs(t *testing.T) {
	survived := 0
	for name, vector := range vectors(t) {
		if len(vector.Expect.Canonical) == 0 {
			continue
		}
		survived++
		again, err := throughStructs(vector.Expect.Domain, vector.Expect.Canonical)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if verdict := Check(again); !verdict.OK() {
			t.Errorf("%s: written by Go it is refused: %v", name, verdict.Faults)
		}
		if kept, meant := plain(t, again), plain(t, vector.Expect.Canonical); !reflect.DeepEqual(kept, meant) {
			t.Errorf("%s: written by Go it is\n%v, not\n%v", name, kept, meant)
		}
	}
	if survived < 15 {
		t.Errorf("only %d valid vectors", survived)
	}
}

func throughStructs(domain string, raw []byte) ([]byte, error) {
	if domain == "startup_subsidy" {
		var read StartupSubsidyContract
		if err := Decode(raw, &read); err != nil {
			return nil, err
		}
		return json.Marshal(read)
	}
	var read ContextContract
	if err := Decode(raw, &read); err != nil {
		return nil, err
	}
	return json.Marshal(read)
}

// plain is a value in which a null, an empty list that is not knowledge, and a missing key are the same.
func plain(t *testing.T, raw []byte) any {
	t.Helper()
	var value any
	if err := Decode(raw, &value); err != nil {
		t.Fatal(err)
	}
	return swept(value)
}

func swept(value any) any {
	switch found := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, item := range found {
			list, isList := item.([]any)
			if item == nil || (isList && len(list) == 0 && key != "retrieved_knowledge") {
				continue
			}
			kept[key] = swept(item)
		}
		return kept
	case []any:
		for at, item := range found {
			found[at] = swept(item)
		}
	}
	return value
}

func TestZeroValuesOfGoAreAccepted(t *testing.T) {
	sent := ContextContract{SessionID: "s", TurnID: "t", UserMessage: "你好"}
	sent.Meta = ContextContractMeta{ContextVersion: SpokenVersion, TokenBudget: 8000}
	raw, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	if verdict := Check(raw); !verdict.OK() {
		t.Errorf("nil lists are refused: %v in %s", verdict.Faults, raw)
	}
	if _, isKnown := (RecentMessage{Timestamp: "0001-01-01T00:00:00Z"}).At(); isKnown {
		t.Error("a zero time counts as known")
	}
}

func TestNilKnowledgeIsLeftOutAndEmptyKnowledgeIsSaid(t *testing.T) {
	for _, kept := range []struct {
		knowledge *[]RetrievedKnowledge
		isThere   bool
	}{{nil, false}, {&[]RetrievedKnowledge{}, true}} {
		raw, err := json.Marshal(ContextBundle{RetrievedKnowledge: kept.knowledge})
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]any{}
		if err := Decode(raw, &fields); err != nil {
			t.Fatal(err)
		}
		if _, isThere := fields["retrieved_knowledge"]; isThere != kept.isThere {
			t.Errorf("knowledge %v is there: %v", kept.knowledge, isThere)
		}
	}
}
