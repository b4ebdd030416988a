package memledger

import "farmhand/skeleton"

// result is what became of one task.
type result struct {
	index                            int32
	status                           int32
	attempt, lost                    uint16
	state                            state // done or dead; dropped when it is acknowledged or redriven
	late                             bool
	meta                             *meta
	letter                           *letter // of a dead task
	typ                              string
	body                             []byte
	wait, service, sojourn, finished int64
}

func (r *result) public() skeleton.Result {
	out := skeleton.Result{Index: int(r.index), State: skeleton.Done, Status: int(r.status), Type: r.typ, Body: r.body, Key: r.meta.key,
		Attempt: int(r.attempt), Lost: int(r.lost), Late: r.late, Wait: span(r.wait), Service: span(r.service),
		Sojourn: span(r.sojourn), Finished: instant(r.finished)}
	if r.state == dead {
		out.State, out.Reason = skeleton.Dead, r.letter.reason
		if r.letter.answer != "" {
			out.Body = []byte(r.letter.answer)
		}
	}
	return out
}

// stream is a job's results in the order they were finished, in chunks, so that
// it neither moves when it grows nor keeps what was acknowledged.
type stream struct {
	base   int // results before it were acknowledged
	n      int
	freed  int // chunks that are gone
	chunks [][]result
}

const chunkLen = 256

// add returns the result's place.
func (s *stream) add(r result) int {
	at := s.n
	s.n++
	c := at/chunkLen - s.freed
	switch {
	case c < len(s.chunks):
	case at == 0:
		s.chunks = append(s.chunks, make([]result, 0, 1)) // most jobs are small
	default:
		s.chunks = append(s.chunks, make([]result, 0, chunkLen))
	}
	s.chunks[c] = append(s.chunks[c], r)
	return at
}

// at returns a result, or nil if it was acknowledged.
func (s *stream) at(place int) *result {
	if place < s.base || place >= s.n {
		return nil
	}
	return &s.chunks[place/chunkLen-s.freed][place%chunkLen]
}

// forget drops the results before a place.
func (s *stream) forget(base int) {
	s.base = base
	for s.freed < base/chunkLen {
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
		s.freed++
	}
}
