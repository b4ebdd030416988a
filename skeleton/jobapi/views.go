package jobapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"farmhand/skeleton"
)

// JobView is a job as the API shows it.
type JobView struct {
	ID        string     `json:"id"`
	Worker    string     `json:"worker"`
	State     string     `json:"state"` // open, running, ended or cancelled
	Ordered   bool       `json:"ordered,omitempty"`
	Callback  string     `json:"callback,omitempty"`
	Total     int        `json:"total"`
	Done      int        `json:"done"`
	Dead      int        `json:"dead"`
	Cancelled int        `json:"cancelled"`
	Pending   int        `json:"pending"`
	Late      int        `json:"late"`
	Created   time.Time  `json:"created"`
	Ended     *time.Time `json:"ended,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
}

// view shows a job.
func (a *API) view(j skeleton.Job) JobView {
	v := JobView{ID: j.ID, Worker: j.Farm, Ordered: j.Ordered, Callback: j.Callback, Total: j.Total, Done: j.Done, Dead: j.Dead,
		Cancelled: j.Cancelled, Pending: j.Pending(), Late: j.Late, Created: j.Created}
	switch {
	case j.Cancel:
		v.State = "cancelled"
	case !j.Ended.IsZero():
		v.State = "ended"
	case j.Open:
		v.State = "open"
	default:
		v.State = "running"
	}
	if !j.Ended.IsZero() {
		v.Ended, v.Expires = &j.Ended, &j.Expires
	}
	return v
}

// Result is a result as the API shows it: the body as JSON where it is, else as
// base64.
type Result struct {
	Index    int             `json:"index"`
	State    skeleton.State  `json:"state"` // done or dead
	Status   int             `json:"status,omitempty"`
	Type     string          `json:"type,omitempty"`
	Body     json.RawMessage `json:"body,omitempty"`
	Base64   []byte          `json:"body_base64,omitempty"`
	Key      string          `json:"key,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Attempt  int             `json:"attempt"`
	Lost     int             `json:"lost,omitempty"`
	Late     bool            `json:"late,omitempty"`
	Wait     float64         `json:"wait_s"`
	Service  float64         `json:"service_s"`
	Sojourn  float64         `json:"sojourn_s"`
	Finished time.Time       `json:"finished"`
}

func resultView(r skeleton.Result) Result {
	v := Result{Index: r.Index, State: r.State, Status: r.Status, Type: r.Type, Key: r.Key, Reason: r.Reason, Attempt: r.Attempt,
		Lost: r.Lost, Late: r.Late, Wait: max(0, r.Wait.Seconds()), Service: r.Service.Seconds(), Sojourn: max(0, r.Sojourn.Seconds()), Finished: r.Finished}
	media, _, _ := strings.Cut(r.Type, ";")
	if strings.TrimSpace(media) == "application/json" && json.Valid(r.Body) {
		v.Body = r.Body
	} else if len(r.Body) > 0 {
		v.Base64 = r.Body
	}
	return v
}

// reply sends a document.
func reply(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a client that went away needs no answer
	return nil
}
