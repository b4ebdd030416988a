package controller

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"farmhand/policy"
	"farmhand/policy/guard"
)

// FarmView is what the controller shows of a farm.
type FarmView struct {
	Name       string               `json:"name"`
	Owner      string               `json:"owner,omitempty"` // the controller that holds its lease
	Mode       Mode                 `json:"mode"`
	Policy     string               `json:"policy"`
	Desired    int                  `json:"desired"`
	Ready      int                  `json:"ready"`
	Conditions map[string]Condition `json:"conditions,omitempty"`
	Problems   []string             `json:"problems,omitempty"` // settings that do not hold
	Last       *Summary             `json:"last,omitempty"`     // decision
	Settings   map[string]Setting   `json:"settings,omitempty"` // of one farm
	BudgetUsed float64              `json:"budget_used_hours"`  // worker-hours today
	Learned    *Choice              `json:"learned,omitempty"`  // where the policy is a learned one
	Shadow     *Choice              `json:"shadow,omitempty"`   // the policy beside it
	Hand       *guard.Hand          `json:"hand,omitempty"`     // of a learned policy: whether it may decide
	Review     *Review              `json:"review,omitempty"`   // what rule and shadow would have come to
	Receipts   []Receipt            `json:"receipts,omitempty"` // of one farm, newest first
}

// Summary is the last decision, short.
type Summary struct {
	At         time.Time     `json:"at"`
	Replicas   int           `json:"replicas"`
	Before     int           `json:"before"`
	Why        string        `json:"why"`
	Limits     []guard.Limit `json:"limits,omitempty"`
	Waiting    policy.Maybe  `json:"waiting"`
	Running    policy.Maybe  `json:"running"`
	OldestWait policy.Maybe  `json:"oldest_wait_s"`
	Deadline   float64       `json:"deadline_s"`
	Rate       policy.Maybe  `json:"rate_per_s"`
	OnTime     policy.Maybe  `json:"on_time"` // over the long window
}

// Overview is the controller and all its farms.
type Overview struct {
	Status
	Farms []FarmView `json:"farms"`
}

func summary(r *Receipt) *Summary {
	if r == nil {
		return nil
	}
	o := &r.Observation
	return &Summary{At: r.At, Replicas: r.Replicas, Before: r.Before, Why: r.Why(), Limits: r.Outcome.Limits, Waiting: o.Waiting,
		Running: o.Running, OldestWait: o.OldestWait, Deadline: o.Deadline, Rate: o.Short.Rate(), OnTime: o.Long.OnTime()}
}

// Overview shows all farms, as of the last pulse. Of those that another
// controller decides for it shows what that one has kept.
func (c *Controller) Overview(ctx context.Context) Overview {
	v := Overview{Status: c.Status(), Farms: []FarmView{}}
	c.mu.Lock()
	farms := make([]*farm, 0, len(c.farms))
	for _, f := range c.farms {
		farms = append(farms, f)
	}
	c.mu.Unlock()
	for _, f := range farms {
		v.Farms = append(v.Farms, c.view(ctx, f, 1))
	}
	slices.SortFunc(v.Farms, func(a, b FarmView) int { return strings.Compare(a.Name, b.Name) })
	return v
}

// view shows a farm with n receipts at most; with 1, only its summary.
func (c *Controller) view(ctx context.Context, f *farm, n int) FarmView {
	f.mu.Lock()
	v := FarmView{Name: f.name, Owner: f.owner, Mode: f.eff.Mode, Policy: f.eff.Policy, Desired: f.worker.Desired, Ready: f.worker.Ready,
		Problems: f.eff.Problems}
	ours := f.fence > 0
	st, last := f.state, f.last
	st.Conditions = maps.Clone(st.Conditions) // the next tick changes them
	if n > 1 {
		v.Settings = f.eff.Origins
	}
	f.mu.Unlock()
	if !ours {
		if kept, err := c.cfg.Keeper.Kept(ctx, f.name); err == nil {
			st, _ = decodeState(kept.State) // what cannot be read is not shown
			v.Owner = kept.Owner
		}
	}
	v.Conditions, v.BudgetUsed, v.Review = st.Conditions, st.Guard.Hours(), st.Review
	if n > 1 || last == nil {
		v.Receipts = c.receipts(ctx, f.name, n)
		if len(v.Receipts) > 0 {
			last = &v.Receipts[0]
		}
		if n == 1 {
			v.Receipts = nil
		}
	}
	if v.Last = summary(last); last != nil {
		v.Learned, v.Shadow = last.Learned, last.Beside
	}
	if v.Learned != nil && st.Hand.Policy == v.Learned.Version {
		v.Hand = &st.Hand
	}
	return v
}

// receipts reads what was kept; what cannot be read is left out.
func (c *Controller) receipts(ctx context.Context, name string, n int) []Receipt {
	raws, err := c.cfg.Receipts.Tail(ctx, name, n)
	if err != nil {
		c.cfg.Log.Warn("receipts cannot be read", "farm", name, "error", err)
	}
	var list []Receipt
	for _, raw := range raws {
		var r Receipt
		if json.Unmarshal(raw, &r) == nil {
			list = append(list, r)
		}
	}
	return list
}
