package work

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"farmhand/internal/checkpoint"
	"farmhand/telemetry"
	"farmhand/trainer"
	"farmhand/trainer/fit"
)

// state is what a run has from one slice to the next.
type state struct {
	// progress at the end of the slice. What a store has may be that of a slice which
	// never came to its end.
	progress trainer.Progress
	spent    float64   // s of work in this phase
	gathered bool      // what is known of the farm
	known    fit.Known // rows of telemetry; none: nothing is known
	fitted   bool      // learn in what telemetry says, not in a named scenario
	rule     string    // calibrated; empty: not yet
	training []byte    // checkpoint of package train
	policy   []byte    // file
	opponent string    // version of the champion that the gate compares with; empty: none
	gate     []byte    // its state
}

// header of the checkpoints of this package.
var header = []byte(`{"trainer": 1}`)

// save writes the state down: trainer.MaxCheckpoint bytes at most.
func (s *state) save() ([]byte, error) {
	var b bytes.Buffer
	if err := checkpoint.Save(&b, header, s.visit); err != nil {
		return nil, err
	}
	if b.Len() > trainer.MaxCheckpoint {
		return nil, fmt.Errorf("work: the checkpoint has %d bytes: want at most %d; a smaller memory of the learner has room", b.Len(), trainer.MaxCheckpoint)
	}
	return b.Bytes(), nil
}

// load the state of the slice before; nil: there was none.
func (s *state) load(saved []byte) error {
	if saved == nil {
		s.progress = trainer.NewProgress()
		return nil
	}
	return checkpoint.Load(bytes.NewReader(saved), header, s.visit)
}

func (s *state) visit(c *checkpoint.Codec) {
	s.visitProgress(c)
	c.Float("spent", &s.spent)
	for _, b := range []*bool{&s.gathered, &s.fitted} {
		n := 0
		if *b {
			n = 1
		}
		c.Int("flag", &n, 1)
		*b = n == 1
	}
	s.visitKnown(c)
	rule, opponent := []byte(s.rule), []byte(s.opponent)
	for _, b := range []*[]byte{&rule, &s.training, &s.policy, &opponent, &s.gate} {
		c.Bytes("part", b, trainer.MaxCheckpoint)
	}
	s.rule, s.opponent = string(rule), string(opponent)
	if c.Reading() { // nothing is nil
		for _, b := range []*[]byte{&s.training, &s.policy, &s.gate} {
			if len(*b) == 0 {
				*b = nil
			}
		}
	}
}

func (s *state) visitProgress(c *checkpoint.Codec) {
	b, err := json.Marshal(s.progress)
	if err != nil {
		c.Fail(err)
		return
	}
	c.Bytes("progress", &b, trainer.MaxProgress)
	if !c.Reading() || c.Failed() {
		return
	}
	s.progress = trainer.Progress{}
	if err := json.Unmarshal(b, &s.progress); err != nil {
		c.Fail(err)
	}
}

// Bounds of what is known of a farm: a day of the shortest ticks, and more.
const (
	mostBlocks  = 100
	mostPeriods = 10_000
)

func (s *state) visitKnown(c *checkpoint.Codec) {
	var blocks, periods [][]byte
	farm, err := json.Marshal(s.known.Farm)
	if err != nil {
		c.Fail(err)
		return
	}
	if !c.Reading() {
		for from := 0; from < len(s.known.Rows); from += telemetry.MostRows {
			b, err := telemetry.Encode(s.known.Rows[from:min(len(s.known.Rows), from+telemetry.MostRows)])
			if err != nil {
				c.Fail(err)
				return
			}
			blocks = append(blocks, b)
		}
		for _, p := range s.known.Periods {
			periods = append(periods, telemetry.EncodePeriod(p))
		}
	}
	c.Bytes("farm", &farm, 10_000)
	many(c, "rows", &blocks, mostBlocks)
	many(c, "periods", &periods, mostPeriods)
	if !c.Reading() || c.Failed() {
		return
	}
	s.known = fit.Known{}
	errs := []error{json.Unmarshal(farm, &s.known.Farm)}
	for _, b := range blocks {
		rows, err := telemetry.Decode(b)
		s.known.Rows, errs = append(s.known.Rows, rows...), append(errs, err)
	}
	for _, b := range periods {
		p, err := telemetry.DecodePeriod(b)
		s.known.Periods, errs = append(s.known.Periods, p), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		c.Fail(err)
	}
}

// many visits a list of byte strings.
func many(c *checkpoint.Codec, name string, list *[][]byte, most int) {
	n := c.Len(name, len(*list), most)
	for i := 0; i < n && !c.Failed(); i++ {
		if c.Reading() {
			*list = append(*list, nil)
		}
		c.Bytes(name, &(*list)[i], trainer.MaxCheckpoint)
	}
}
