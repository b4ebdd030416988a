package blocklog

import (
	"errors"
	"fmt"
)

// failures are what went wrong with many logs: what failed for the same reason is
// told once, with the first log's name. When Redis is away that is one line, and
// not one for each farm.
type failures struct {
	reasons []string
	by      map[string]*failure
}

type failure struct {
	what string
	id   logID
	err  error
	more int // logs besides
}

func (f *failures) add(what string, id logID, err error) {
	reason := what + err.Error()
	if known := f.by[reason]; known != nil {
		known.more++
		return
	}
	if f.by == nil {
		f.by = map[string]*failure{}
	}
	f.by[reason] = &failure{what: what, id: id, err: err}
	f.reasons = append(f.reasons, reason)
}

// err joins the failures; nil where there was none.
func (f *failures) err() error {
	var errs []error
	for _, reason := range f.reasons {
		if one := f.by[reason]; one.more > 0 {
			errs = append(errs, fmt.Errorf("blocklog: %s %s and %d more: %w", one.what, one.id, one.more, one.err))
		} else {
			errs = append(errs, fmt.Errorf("blocklog: %s %s: %w", one.what, one.id, one.err))
		}
	}
	return errors.Join(errs...)
}
