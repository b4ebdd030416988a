package workload

import (
	"farmhand/skeleton"
)

// The built-in scenarios are fixed: a result says something only while nobody can
// choose the work after having seen it.
var builtin = []Scenario{
	burst("burst-cron-150ms", "a batch loop with a fixed pause: 20/s for 45–75 s, then 200/s for 20–40 s",
		Level{20, Uniform{45, 75}}, Level{200, Uniform{20, 40}}, 0.97),
	burst("burst-150ms", "20/s and 200/s, each for 20–90 s",
		Level{20, Uniform{20, 90}}, Level{200, Uniform{20, 90}}, 0.95),
	usual("constant", "100/s", Poisson{100}),
	usual("periodic", "110/s ± 90/s, a sine of ten minutes", Sinusoid{Mean: 110, Amplitude: 90, Period: 600}),
	usual("variable", "a random walk between 20/s and 200/s", Walk{Min: 20, Max: 200, Start: 110, Step: 12, Every: 5}),
	usual("bursty", "50/s, and 200/s for 15–40 s after gaps of 30 s and more", Levels{Levels: []Level{
		{50, Exponential{Average: 120, Shift: 30}}, {200, Uniform{15, 40}}}}),
	usual("ramp", "from 20/s to 200/s and back in half an hour", Ramp(20, 200, 1800)),
	usual("flash", "60/s with two plateaus of 180/s for four minutes", Flash{Base: 60, Plateaus: []Plateau{
		{180, Uniform{300, 1300}, Constant{240}}, {180, Uniform{2000, 3000}, Constant{240}}}}),
	paper("paper-as-run", "the published benchmark as it was run, with its generator's two mistakes", true),
	paper("paper-fixed", "the published benchmark with both mistakes repaired", false),
}

// Training and Test are the scenarios that a general policy learns on, and those
// that it is judged by.
var (
	Training = []string{
		"constant", "periodic", "ramp",
		"trace:huawei_private_f093", "trace:huawei_private_f179", "trace:alibaba_genai_image",
	}
	Test = []string{
		"variable", "bursty", "flash",
		"trace:huawei_private_f104", "trace:huawei_private_f155", "trace:twitter_stream_2021",
		"trace:worldcup98_opening", "trace:aws_elb_requests",
	}
)

// paperPhases are those of the published benchmark.
func paperPhases() []Phase {
	return []Phase{
		{Tasks: 90, Seconds: 60}, {Tasks: 450, Seconds: 60},
		{Tasks: 300, Seconds: 60, Amplitude: 0.5, Cycles: 1}, {Tasks: 300, Seconds: 60, Amplitude: 0.7, Cycles: 4},
	}
}

// paper is the published benchmark: thirty steps of 8 s that wait for each other,
// and the start and stop times measured in its logs.
func paper(name, doc string, asRun bool) Scenario {
	return Scenario{
		Name: name, Doc: doc, Horizon: 240,
		Arrivals: Phases{Phases: paperPhases(), Window: 1, Flat: asRun, Compressed: asRun},
		Service:  PaperImage{},
		Farm: Farm{
			Interval: 8, DeadlineFactor: 2, Target: 0.95, Timeout: skeleton.DefaultTimeout.Seconds(),
			Attempts: skeleton.DefaultAttempts, Slots: 1, Min: 1, Max: 32, Start: 12, FIFO: true,
		},
		Platform: Platform{
			Startup: LogNormalOf(7.07, 1.22/7.07), Stop: LogNormalOf(2.94, 0.67/2.94), Answer: Uniform{0, 0.1},
			Overhead: 0.03, Blocking: true, Victim: IdleFirst, Balance: LeastBusy,
		},
	}
}

// usual is what all built-in scenarios have unless they say otherwise: short
// tasks, due after 150 ms, and an OpenFaaS that starts a replica within 2 s or so
// (the tuned start-ups measured in faas-netes' pull request 249).
func usual(name, doc string, arrivals Arrivals) Scenario {
	return Scenario{
		Name: name, Doc: doc, Horizon: 3600, Arrivals: arrivals,
		Service:  LogNormalOf(0.04, 0.6),
		Farm:     DefaultFarm(),
		Platform: DefaultPlatform(),
	}
}

func burst(name, doc string, low, high Level, target float64) Scenario {
	s := usual(name, doc, Levels{Levels: []Level{low, high}})
	s.Farm.Target = target
	return s
}

// DefaultFarm has the settings of the built-in scenarios.
func DefaultFarm() Farm {
	return Farm{
		Interval: skeleton.DefaultInterval.Seconds(), Deadline: 0.15, Target: skeleton.DefaultTarget,
		Timeout: skeleton.DefaultTimeout.Seconds(), Attempts: skeleton.DefaultAttempts,
		Slots: skeleton.DefaultSlots, Min: 1, Max: 64, Start: 1,
	}
}

// DefaultPlatform is an OpenFaaS with images present and quick probes, whose
// replicas the controller sees ready within a second.
func DefaultPlatform() Platform {
	return Platform{
		Startup: LogNormal{Mu: 0.74, Sigma: 0.16}, Seen: Uniform{0, 1},
		Victim: IdleFirst, Balance: LeastBusy,
	}
}
