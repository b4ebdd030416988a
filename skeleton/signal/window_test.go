package signal_test

import (
	"testing"
	"time"

	"farmhand/policy"
	"farmhand/skeleton/signal"
)

func TestWindowsCountWhatIsInside(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.seconds(200, 10, 0.1)
	f.count.Late += 3
	f.second(50, 0.2)
	o := f.observe()
	for name, w := range map[string]struct {
		policy.Window
		length, arrivals float64
	}{"last": {o.Last, 2, 60}, "short": {o.Short, 10, 140}, "long": {o.Long, 120, 1240}} {
		t.Run(name, func(t *testing.T) {
			exactly(t, "length", w.Length, w.length)
			exactly(t, "covered", w.Covered, w.length)
			exactly(t, "arrivals", w.Arrivals, w.arrivals)
			exactly(t, "starts", w.Starts, w.arrivals)
			exactly(t, "done", w.Done, w.arrivals)
			exactly(t, "decided", w.Decided, w.arrivals)
			exactly(t, "late", w.Late, 3)
			exactly(t, "served", w.Service.N, w.arrivals)
			exactly(t, "mean", w.Service.Mean, (10*(w.length-1)*0.1+50*0.2)/w.arrivals)
			exactly(t, "longest", w.Sojourn.Max, 0.3)
		})
	}
	about(t, "median of the last", o.Last.Service.P50, 0.2, 0.2*signal.Accuracy)
	about(t, "median of the long", o.Long.Service.P50, 0.1, 0.1*signal.Accuracy)
	exactly(t, "age", float64(o.Age), 0)
	exactly(t, "service", float64(o.Service), o.Short.Service.Mean)
}

// Windows end with the newest heartbeat, and are whole all the same. The second
// of now is taken as far as it has come, and comes again when it is complete.
func TestSecondsGrow(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.seconds(20, 10, 0.1)
	f.now = f.now.Add(500 * time.Millisecond)
	f.count.Submitted += 105
	f.beat(tally(5, 1))
	f.now = f.now.Add(250 * time.Millisecond)
	o := f.observe()
	exactly(t, "age", float64(o.Age), 0.25)
	exactly(t, "covered", o.Last.Covered, 2)
	exactly(t, "arrivals of half a second, one, and half of one", o.Last.Arrivals, 105+10+5)
	exactly(t, "starts", o.Last.Starts, 5+10+5)
	exactly(t, "served", o.Last.Service.N, 5+10+10)
	f.now = f.now.Add(240 * time.Millisecond)
	f.beat(tally(9, 1))
	f.now = f.now.Add(10 * time.Millisecond)
	o = f.observe()
	exactly(t, "served when it has grown", o.Last.Service.N, 9+10)
	exactly(t, "longest", o.Last.Service.Max, 1)
	exactly(t, "served in the long window", o.Long.Service.N, 209)
	f.seconds(2, 0, 0)
	exactly(t, "served in the long window, later", f.observe().Long.Service.N, 209)
}

// Without a heartbeat nothing is known, which is not the same as quiet.
func TestSilenceIsUnknown(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.seconds(130, 10, 0.1)
	f.observe()
	f.silence(30 * time.Second)
	o := f.observe()
	exactly(t, "covered by the last", o.Last.Covered, 0)
	unknown(t, "rate", o.Last.Rate())
	unknown(t, "rate", o.Short.Rate())
	exactly(t, "covered by the long, which ends where a heartbeat should be", o.Long.Covered, 120-30+1.5)
	exactly(t, "rate over the measured part", float64(o.Long.Rate()), 10)
	exactly(t, "age", float64(o.Age), 30)
	o.Waiting, o.Running = 0, 0
	if !o.Stale() {
		t.Error("not stale")
	}
	// A new dispatcher: what happened in between stays unknown.
	f.count.Submitted += 1000
	f.second(10, 0.1)
	f.seconds(2, 0, 0)
	o = f.observe()
	exactly(t, "covered since it beats", o.Short.Covered, 2)
	exactly(t, "arrivals since then", o.Short.Arrivals, 0)
	if rate := o.Short.Rate(); !rate.Known() || rate != 0 {
		t.Errorf("a quiet farm with a heartbeat: rate %g", float64(rate))
	}
}

// A flush that comes late brings what was counted meanwhile: nothing is unknown.
func TestShortSilenceIsBridged(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.seconds(20, 10, 0.1)
	f.silence(signal.Patience - time.Second)
	f.second(50, 0.1)
	o := f.observe()
	exactly(t, "covered", o.Short.Covered, 10)
	exactly(t, "arrivals", o.Short.Arrivals, 100)
	exactly(t, "rate of the last", float64(o.Last.Rate()), 10)
}

func TestNothingIsKnownAtFirst(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.gone = nil
	o := f.observe()
	unknown(t, "age", o.Age)
	unknown(t, "rate", o.Long.Rate())
	unknown(t, "service", o.Service)
	unknown(t, "peak", o.PeakLoad)
	unknown(t, "start-up lag", o.StartupLag)
	unknown(t, "running", o.Running)
	if o.Level != (policy.Level{}) || len(o.Past) != 0 {
		t.Errorf("levels %+v %+v", o.Level, o.Past)
	}
}

// Tasks without a due are not decided.
func TestOnTime(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.second(10, 0.1)
	f.count.Timed -= 5
	f.gone[1].Timed -= 5
	f.count.Late += 2
	f.second(3, 0.1)
	o := f.observe()
	exactly(t, "done", o.Last.Done, 13)
	exactly(t, "decided", o.Last.Decided, 8)
	exactly(t, "on time", float64(o.Last.OnTime()), 0.75)
	f.now = f.now.Add(2 * time.Second)
	f.count.Done += 100
	f.beat(signal.Tally{})
	unknown(t, "on time of tasks without a due", f.observe().Last.OnTime())
}

func TestAttempts(t *testing.T) {
	f := newFarm(t, 2*time.Second)
	f.now = f.now.Add(time.Second)
	f.count.Lapsed += 4
	f.beat(signal.Tally{Starts: 9, Busy: 5, Failed: 2, Lost: 1})
	o := f.observe()
	exactly(t, "busy", o.Last.Busy, 5)
	exactly(t, "failed", o.Last.Failed, 2)
	exactly(t, "lost, by dispatchers and with them", o.Last.Lost, 5)
}

// Longer intervals mean longer windows, up to 15 minutes.
func TestLongIntervals(t *testing.T) {
	f := newFarm(t, time.Minute)
	f.seconds(1500, 2, 0.1)
	o := f.observe()
	exactly(t, "short", o.Short.Arrivals, 360)
	exactly(t, "long", o.Long.Arrivals, 1800)
	exactly(t, "served", o.Long.Service.N, 1800)
	f.o.Interval = 1 // changed at run time
	o = f.observe()
	exactly(t, "long", o.Long.Service.N, 240)
}
