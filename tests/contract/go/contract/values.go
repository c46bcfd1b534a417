package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// At is the time of a message; false where it is not known. A Go zero time is not known either.
func (m RecentMessage) At() (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, m.Timestamp)
	return at, err == nil && at.Year() > 1
}

// Decode reads JSON into a value. Numbers in open fields stay exact (json.Number).
func Decode(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

type plainProfile UserProfile

// MarshalJSON writes the known fields and Extra side by side.
func (p UserProfile) MarshalJSON() ([]byte, error) {
	known, err := json.Marshal(plainProfile(p))
	if err != nil || len(p.Extra) == 0 {
		return known, err
	}
	fields := map[string]any{}
	if err := Decode(known, &fields); err != nil {
		return nil, err
	}
	for name, value := range p.Extra {
		if _, taken := fields[name]; taken {
			return nil, fmt.Errorf("user_profile.%s is a field of its own", name)
		}
		fields[name] = value
	}
	return json.Marshal(fields)
}

// UnmarshalJSON keeps every field that has no place of its own in Extra.
func (p *UserProfile) UnmarshalJSON(raw []byte) error {
	var plain plainProfile
	if err := Decode(raw, &plain); err != nil {
		return err
	}
	fields := map[string]any{}
	if err := Decode(raw, &fields); err != nil {
		return err
	}
	for _, field := range fieldsOf(typeOf(plain)) {
		delete(fields, field.name)
	}
	*p = UserProfile(plain)
	if len(fields) > 0 {
		p.Extra = fields
	}
	return nil
}
