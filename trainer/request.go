package trainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"

	"farmhand/internal/problem"
	"farmhand/policy"
)

// Request says what to train.
type Request struct {
	// Run is its id, by which a request that is delivered again is known: letters,
	// digits and hyphens. Empty: that of the call.
	Run string `json:"run,omitempty"`
	// Farm to train for: in a simulated farm that is made of its telemetry, or in
	// Scenario where one is named.
	Farm     string `json:"farm,omitempty"`
	Scenario string `json:"scenario,omitempty"` // built-in
	Learner  string `json:"learner,omitempty"`
	Budget   int    `json:"budget"`             // steps; a step is an interval of a simulated farm
	Seed     uint64 `json:"seed"`               // of the learner
	Rule     string `json:"rule,omitempty"`     // that advises while learning; empty: train.DefaultRule
	From     string `json:"from,omitempty"`     // General: begin with the shipped policy for any farm; empty: with nothing
	Round    int    `json:"round,omitempty"`    // steps between two looks at the policy; 0: as train.Default
	Schedule bool   `json:"schedule,omitempty"` // it was begun by a schedule
}

// General is what a training may begin from.
const General = "general"

// Defaults of a Request.
const (
	DefaultLearner = "dqn"
	DefaultBudget  = 400_000
	// DefaultScenario is where a farm is trained of which too little is known.
	DefaultScenario = "burst-cron-150ms"
)

// DefaultRequest is a training with the settings that are used where nothing is said.
func DefaultRequest() Request {
	return Request{Learner: DefaultLearner, Budget: DefaultBudget, Seed: 1}
}

// Bounds of a Request.
const (
	maxBudget  = 5_000_000
	maxBody    = 16 << 10
	maxRun     = 64
	maxName    = 200
	idAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
)

// ParseRequest reads a request. What it does not say is as in DefaultRequest, but a
// quarter of the budget where it begins with a policy. The error is a *problem.Problem.
func ParseRequest(body []byte, learners, scenarios []string) (Request, error) {
	const unsaid = math.MinInt
	r := DefaultRequest()
	r.Budget = unsaid
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, unreadable(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, bad("body", "something follows the request", "send one JSON object")
	}
	if r.Budget == unsaid {
		r.Budget = DefaultBudget
		if r.From == General { // as train.Tuned
			r.Budget /= 4
		}
	}
	return r, r.check(learners, scenarios)
}

func (r *Request) check(learners, scenarios []string) error {
	switch {
	case r.Farm == "" && r.Scenario == "":
		return bad("farm", "neither a farm nor a scenario is named", `name what to train for, such as {"farm": "thumbnail"} or {"scenario": "`+DefaultScenario+`"}`)
	case len(r.Farm) > maxName:
		return bad("farm", fmt.Sprintf("%.40q… is no name of a farm", r.Farm), "name a function")
	case r.Scenario != "" && !slices.Contains(scenarios, r.Scenario):
		return bad("scenario", fmt.Sprintf("%.80q is no scenario", r.Scenario), "use one of "+strings.Join(scenarios, ", "))
	case !slices.Contains(learners, r.Learner):
		return bad("learner", fmt.Sprintf("%.80q is no learner", r.Learner), "use one of "+strings.Join(learners, ", "))
	case r.From != "" && r.From != General:
		return bad("from", fmt.Sprintf("%.80q is no policy to begin with", r.From), "use "+General+", or leave it out")
	case r.Budget < 1 || r.Budget > maxBudget:
		return bad("budget", fmt.Sprintf("%d steps cannot be", r.Budget), fmt.Sprintf("send 1 to %d steps, or leave it out for %d", maxBudget, DefaultBudget))
	case r.Round < 0 || r.Round > maxBudget:
		return bad("round", fmt.Sprintf("%d steps cannot be", r.Round), fmt.Sprintf("send 1 to %d steps, or leave it out", maxBudget))
	case len(r.Run) > maxRun || strings.Trim(r.Run, idAlphabet) != "":
		return bad("run", fmt.Sprintf("%.80q is no id of a run", r.Run), fmt.Sprintf("send at most %d letters, digits and hyphens, or leave it out", maxRun))
	case r.Schedule:
		return bad("schedule", "it says who began a run, and is not for requests", "leave it out")
	}
	if r.Rule == "" {
		return nil
	}
	if _, err := policy.New(r.Rule); err != nil {
		return bad("rule", strings.TrimPrefix(err.Error(), "policy: "), "name a law, such as staffing")
	}
	return nil
}

// unreadable is the problem of a body that is no request.
func unreadable(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return bad(kind.Field, "the value is "+kind.Value, "send "+map[bool]string{true: "text", false: "a whole number that is not negative"}[kind.Type.Kind().String() == "string"])
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		name := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		return bad(name, "there is no such field", "use run, farm, scenario, learner, budget, seed, rule, from, round")
	}
	return bad("body", "it is no JSON object", `send one such as {"farm": "thumbnail"}`)
}

func bad(field, detail, fix string) *problem.Problem {
	return problem.New(http.StatusUnprocessableEntity, "invalid-request", detail).At(field, fix)
}
