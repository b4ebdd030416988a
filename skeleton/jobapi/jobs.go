package jobapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"farmhand/skeleton"
)

// JobList is the answer to GET /jobs.
type JobList struct {
	Jobs []JobView `json:"jobs"`
	Next string    `json:"next,omitempty"` // after= of the next page
}

// listJobs serves GET /jobs, newest first, of one worker or of all.
func (a *API) listJobs(w http.ResponseWriter, r *http.Request, q url.Values) error {
	limit, err := limitOf(q.Get("limit"), 100, 1000)
	if err != nil {
		return err
	}
	after := q.Get("after")
	if _, ok := splitJob(after); after != "" && !ok {
		return bad("after", quote(after)+" is no job id", "the id of the last job of the page before")
	}
	var farms []string
	if worker := q.Get("worker"); worker != "" {
		f, _, err := a.farm(r.Context(), worker)
		if err != nil {
			return err
		}
		farms = []string{f.Name}
	} else {
		roster, err := a.cfg.Store.Roster(r.Context())
		if err != nil {
			return err
		}
		for _, f := range roster.Farms {
			farms = append(farms, f.Name)
		}
	}
	var jobs []skeleton.Job
	for _, farm := range farms {
		from := after
		if from != "" {
			from = farm + from[strings.LastIndexByte(from, '~'):] // ids of all farms share one order of time
		}
		some, err := a.cfg.Store.Farm(farm).Jobs(r.Context(), from, limit+1)
		if err != nil {
			return err
		}
		jobs = append(jobs, some...)
	}
	unit := func(j skeleton.Job) string { return j.ID[strings.LastIndexByte(j.ID, '~'):] }
	slices.SortFunc(jobs, func(x, y skeleton.Job) int { return strings.Compare(unit(y), unit(x)) })
	list := JobList{Jobs: []JobView{}}
	for i, j := range jobs {
		if i == limit {
			list.Next = jobs[i-1].ID
			break
		}
		list.Jobs = append(list.Jobs, a.view(j))
	}
	return reply(w, http.StatusOK, list)
}

// parameters reads a query. What cannot be read, is not known or stands twice is
// refused: nothing that a client asks for is ignored.
func parameters(raw string, known []string) (url.Values, error) {
	q := url.Values{}
	for pair := range strings.SplitSeq(raw, "&") {
		one, err := url.ParseQuery(pair)
		if err != nil {
			name, _, _ := strings.Cut(pair, "=")
			return nil, bad(name, "the parameter cannot be read: "+clip(err.Error()), "escape what is not a letter, a digit or one of -._~")
		}
		for name, values := range one { // at most one
			switch {
			case !slices.Contains(known, name) && len(known) == 0:
				return nil, bad(name, "there is no such parameter", "this call takes none")
			case !slices.Contains(known, name):
				return nil, bad(name, "there is no such parameter", "use "+strings.Join(known, ", "))
			case q.Has(name):
				return nil, bad(name, "the parameter is given twice", "give it once")
			}
			q[name] = values
		}
	}
	return q, nil
}

func limitOf(v string, standard, most int) (int, error) {
	if v == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		return 0, bad("limit", quote(v)+" is out of range", "a whole number from 1 to "+strconv.Itoa(most))
	}
	return n, nil
}

// getJob serves GET /jobs/{id}.
func (a *API) getJob(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	return a.showJob(w, r, r.PathValue("id"))
}

// getRoot serves GET /?job=ID, for clients that cannot send a sub-path; without
// a job it says who is there.
func (a *API) getRoot(w http.ResponseWriter, r *http.Request, q url.Values) error {
	if id := q.Get("job"); id != "" {
		return a.showJob(w, r, id)
	}
	return reply(w, http.StatusOK, map[string]any{"function": "dispatcher", "durability": a.durable.get(r.Context())})
}

func (a *API) showJob(w http.ResponseWriter, r *http.Request, id string) error {
	l, err := a.job(id)
	if err != nil {
		return err
	}
	j, err := l.Job(r.Context(), id)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, a.view(j))
}

// closeJob serves POST /jobs/{id}/close.
func (a *API) closeJob(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	l, err := a.job(r.PathValue("id"))
	if err != nil {
		return err
	}
	j, err := l.Close(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, a.view(j))
}

// cancelJob serves DELETE /jobs/{id}.
func (a *API) cancelJob(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	l, err := a.job(r.PathValue("id"))
	if err != nil {
		return err
	}
	j, err := l.Cancel(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, a.view(j))
}
