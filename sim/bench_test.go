package sim

import "testing"

func BenchmarkPlain(b *testing.B) {
	for _, c := range []struct {
		name    string
		n       int
		service float64
	}{{"16x50ms", 8, 0.05}, {"64x200ms", 28, 0.2}, {"256x1s", 120, 1}} {
		tasks := poisson(1, 100, lognormal{c.service, 0.6}, 3600)
		sc := plain(c.n)
		sc.Farm.Max = 0
		sc.Farm.Deadline = 0.15
		b.Run(c.name, func(b *testing.B) {
			s := begin(b, sc, tasks, 1)
			events := 0
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Reset(Config{Scenario: sc, Tasks: tasks, Seed: 1}); err != nil {
					b.Fatal(err)
				}
				events += s.coast().Events
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
