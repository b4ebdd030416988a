package platform

import (
	"time"

	"github.com/openfaas/faas-provider/types"
	"github.com/prometheus/procfs"
)

// Detail is what GET /system/function/NAME?usage=1 answers: a FunctionStatus
// and, beyond OpenFaaS, each replica by itself.
type Detail struct {
	types.FunctionStatus
	Instances []Instance `json:"instances,omitempty"`
	Schedule  *Schedule  `json:"schedule,omitempty"` // when the clock calls it
	Warnings  []string   `json:"warnings,omitempty"` // what is valid and will not go well
}

// Instance describes one replica.
type Instance struct {
	ID          string    `json:"id"`
	State       string    `json:"state"`        // starting, ready or draining
	CPU         float64   `json:"cpu"`          // millicores (1000 = one core busy) over the last second or more, as in FunctionUsage
	MemoryBytes float64   `json:"memory_bytes"` // resident
	InFlight    int       `json:"in_flight"`    // calls through the gateway
	StartedAt   time.Time `json:"started_at"`   // decision to start it
	Pid         int       `json:"pid,omitempty"`
}

// meterWindow is the least time over which processor use is averaged: the
// kernel counts in steps of 10 ms.
const meterWindow = time.Second

// meter turns the processor time a process has used into a rate. Any number of
// readers may ask at any time: each gets the rate over the last window.
type meter struct {
	old, recent sample
}

type sample struct {
	at      time.Time
	seconds float64
}

// rate adds a reading and returns the millicores since a reading that is at
// least a window old, or since the start.
func (m *meter) rate(begun, now time.Time, seconds float64) float64 {
	if m.old.at.IsZero() {
		m.old, m.recent = sample{at: begun}, sample{at: begun}
	}
	base := m.old
	if now.Sub(m.recent.at) >= meterWindow {
		base = m.recent
		m.old, m.recent = m.recent, sample{now, seconds}
	}
	return base.rate(sample{now, seconds})
}

func (a sample) rate(b sample) float64 {
	d := b.at.Sub(a.at).Seconds()
	if d <= 0 {
		return 0
	}
	return max(0, 1000*(b.seconds-a.seconds)/d)
}

// instances describes the replicas there are, with their usage.
func (f *function) instances() []Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Instance, 0, len(f.replicas))
	now := time.Now()
	for _, r := range f.replicas {
		in := Instance{ID: r.id, State: string(r.state), InFlight: r.inflight, StartedAt: r.begun}
		if r.child != nil {
			in.Pid = r.child.ID.Pid
			if seconds, bytes, ok := processUsage(in.Pid); ok {
				in.CPU, in.MemoryBytes = r.usage.rate(r.spawned, now, seconds), bytes
			}
		}
		list = append(list, in)
	}
	return list
}

// processUsage reads the processor time and resident memory of a process, and
// the processor time of its children that have ended.
func processUsage(pid int) (seconds, bytes float64, ok bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, false
	}
	st, err := p.Stat()
	if err != nil {
		return 0, 0, false
	}
	const ticks = 100 // USER_HZ, the same on all Linux machines Go runs on
	return st.CPUTime() + float64(st.CUTime+st.CSTime)/ticks, float64(st.ResidentMemory()), true
}

// status describes the function.
func (f *function) status() types.FunctionStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.spec.FunctionDeployment
	s := types.FunctionStatus{
		Name: f.name, Image: d.Image, Namespace: Namespace, EnvProcess: d.EnvProcess, EnvVars: d.EnvVars,
		Constraints: d.Constraints, Secrets: d.Secrets, Labels: d.Labels, Annotations: d.Annotations,
		Limits: d.Limits, Requests: d.Requests, ReadOnlyRootFilesystem: d.ReadOnlyRootFilesystem,
		Replicas: uint64(f.desired), CreatedAt: f.created,
	}
	for _, r := range f.replicas {
		if r.state == ready {
			s.AvailableReplicas++
		}
	}
	return s
}

// detail is status with usage, in total and by replica.
func (f *function) detail() Detail {
	d := Detail{FunctionStatus: f.status(), Instances: f.instances(), Schedule: f.p.schedules.describe(f.name)}
	f.mu.Lock()
	d.Warnings = f.p.warnings(f.spec)
	f.mu.Unlock()
	d.Usage = &types.FunctionUsage{}
	for _, in := range d.Instances {
		d.Usage.CPU += in.CPU
		d.Usage.TotalMemoryBytes += in.MemoryBytes
	}
	return d
}
