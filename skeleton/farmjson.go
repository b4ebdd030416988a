package skeleton

import (
	"encoding/json"
	"time"
)

// span is a duration that reads and writes as text, such as "55s".
type span time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

// settingsJSON are Settings with their durations as text.
type settingsJSON struct {
	plainSettings
	Deadline span `json:"deadline,omitempty"`
	Timeout  span `json:"timeout"`
	Service  span `json:"service,omitempty"`
	Interval span `json:"interval"`
}

type plainSettings Settings

// MarshalJSON implements json.Marshaler: durations are text, such as "55s".
func (s Settings) MarshalJSON() ([]byte, error) {
	return json.Marshal(settingsJSON{plainSettings(s), span(s.Deadline), span(s.Timeout), span(s.Service), span(s.Interval)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Settings) UnmarshalJSON(raw []byte) error {
	var j settingsJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	*s = Settings(j.plainSettings)
	s.Deadline, s.Timeout, s.Service, s.Interval = time.Duration(j.Deadline), time.Duration(j.Timeout), time.Duration(j.Service), time.Duration(j.Interval)
	return nil
}
