package jobapi

import (
	"encoding/json"
	"errors"

	"farmhand/skeleton"
)

// ParseItem makes a task of a JSON object that describes it, as an element of
// items does; t is what it starts from. The body has at most limit bytes.
func ParseItem(raw []byte, t skeleton.NewTask, limit int) (skeleton.NewTask, error) {
	if !json.Valid(raw) {
		return t, malformed("items", errors.New("it is no JSON value"))
	}
	return element(raw, true, t, limit)
}

// ViewResult is a result as the API shows it.
func ViewResult(r skeleton.Result) Result { return resultView(r) }
