package policy

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// A farm that tests know: tasks of 40 ms (cv 0.6) to be done within 150 ms, one
// slot a replica, two replicas, an interval of 2 s, replicas ready after 0.75 s.
func farm(change ...func(*Observation)) *Observation {
	o := &Observation{
		Version: ObservationVersion, Farm: "thumbnail", At: time.Unix(1_800_000_000, 0).UTC(), Age: 0.5,
		Interval: 2, Deadline: 0.15, Target: 0.95, Timeout: 55, Slots: 1, Min: 1, Max: 64,
		Desired: 2, Ready: 2, Draining: Unknown, StartupLag: 0.75,
		NextDue: Unknown, RunningAge: Unknown,
		Service: 0.04, PeakLoad: Unknown, CPU: Unknown, Memory: Unknown, Busy: Unknown,
	}
	o.Last.Length = 2
	o.Short.Length, o.Long.Length = Windows(2)
	for _, f := range change {
		f(o)
	}
	return o
}

// steady makes tasks arrive at a steady rate for as long as anyone remembers.
func steady(rate float64) func(*Observation) {
	return func(o *Observation) {
		for _, w := range []*Window{&o.Last, &o.Short, &o.Long} {
			n := rate * w.Length
			w.Covered, w.Arrivals, w.Starts, w.Done, w.Decided = w.Length, n, n, n, n
			w.Service = Stats{N: n, Mean: 0.04, SD: 0.024, P50: 0.034, P95: 0.086, P99: 0.13, Max: 0.2}
			w.Sojourn = w.Service
		}
		o.Level = Level{Rate: rate, Age: 600, Load: rate * 0.04, Sojourn: 0.04}
	}
}

// rise makes the last interval bring tasks at another rate, which is a new level.
func rise(rate float64) func(*Observation) {
	return func(o *Observation) {
		more := rate*o.Last.Length - o.Last.Arrivals
		for _, w := range []*Window{&o.Last, &o.Short, &o.Long} {
			w.Arrivals += more
		}
		o.Past = append([]Level{o.Level}, o.Past...)
		o.Level = Level{Rate: rate, Age: 2, Load: rate * 0.04}
	}
}

// queue makes tasks wait while all replicas work.
func queue(n float64) func(*Observation) {
	return func(o *Observation) {
		o.Waiting, o.Running = Maybe(n), Maybe(o.Ready*o.Slots)
		o.OldestWait, o.NextDue = 0.1, Maybe(o.Deadline-0.1)
	}
}

func replicas(n int) func(*Observation) {
	return func(o *Observation) { o.Desired, o.Ready = n, n }
}

func make1(t testing.TB, spec string) Policy {
	t.Helper()
	p, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// specs are the laws with their defaults and at the edges of their parameters.
func specs(t *testing.T) (list []Policy) {
	for _, law := range Laws() {
		low, high := law.Name+":", law.Name+":"
		for _, q := range law.Params {
			lo, hi := q.Min, q.Max
			if n := len(q.Choices); n > 0 {
				hi = float64(n - 1)
			}
			low += q.Name + "=" + q.text(lo) + ","
			high += q.Name + "=" + q.text(hi) + ","
		}
		list = append(list, make1(t, law.Name), make1(t, low), make1(t, high))
	}
	return list
}

// fill sets every number below v by number, every count by whole, and times.
func fill(v reflect.Value, r *rand.Rand, number func() float64, whole func() int64) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(number())
	case reflect.Int:
		v.SetInt(whole())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(7), 7))
		for i := range v.Len() {
			fill(v.Index(i), r, number, whole)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(r.Int64N(4e9), r.Int64N(1e9)).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), r, number, whole)
		}
	}
}

// bits are the bits of every number below v, in order; all NaN are the same.
func bits(v reflect.Value) (list []uint64) {
	switch v.Kind() {
	case reflect.Float64:
		if math.IsNaN(v.Float()) {
			return []uint64{math.Float64bits(math.NaN())}
		}
		return []uint64{math.Float64bits(v.Float())}
	case reflect.Int:
		return []uint64{uint64(v.Int())}
	case reflect.Slice:
		for i := range v.Len() {
			list = append(list, bits(v.Index(i))...)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return []uint64{uint64(v.Interface().(time.Time).UnixNano())}
		}
		for i := range v.NumField() {
			list = append(list, bits(v.Field(i))...)
		}
	}
	return list
}

// wild draws numbers of every kind, most of them nonsense.
func wild(r *rand.Rand) float64 {
	kinds := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64}
	switch r.IntN(4) {
	case 0:
		return kinds[r.IntN(len(kinds))]
	case 1:
		return math.Exp(50 * r.NormFloat64())
	case 2:
		return 10 * r.NormFloat64()
	default:
		return 100 * r.Float64()
	}
}

func wildCount(r *rand.Rand) int64 {
	return []int64{0, 1, -1, math.MaxInt64, math.MinInt64, r.Int64N(100), r.Int64N(1e9), -r.Int64N(100)}[r.IntN(8)]
}

func wildObservation(r *rand.Rand) *Observation {
	o := &Observation{Farm: "wild"}
	fill(reflect.ValueOf(o).Elem(), r, func() float64 { return wild(r) }, func() int64 { return wildCount(r) })
	if r.IntN(4) > 0 { // most are to be decided on
		o.Age, o.Interval = 0.5, 2
		o.Waiting, o.Running = Maybe(math.Abs(wild(r))), Maybe(math.Abs(wild(r)))
	}
	return o
}
