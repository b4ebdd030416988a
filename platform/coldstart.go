package platform

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// DefaultColdStart is the time OpenFaaS needs from zero to one replica: the
// log-normal fitted to the nine runs published with faas-netes PR 249 (HTTP
// probe, short period, image present), median 2.07 s. A process start takes
// milliseconds, so the rest is injected.
const DefaultColdStart = "lognormal:0.74,0.16"

// coldStart is the law of the delay between the decision to start a replica and
// the start of its process.
type coldStart struct {
	seed      uint64
	constant  time.Duration
	mu, sigma float64
	random    bool
}

// parseColdStart reads none, constant:DUR or lognormal:MU,SIGMA (of seconds).
func parseColdStart(s string, seed uint64) (coldStart, error) {
	law, args, _ := strings.Cut(s, ":")
	bad := fmt.Errorf("cold start law %q: want none, constant:500ms or %s", s, DefaultColdStart)
	switch law {
	case "none":
		if args != "" {
			return coldStart{}, bad
		}
		return coldStart{}, nil
	case "constant":
		d, err := time.ParseDuration(args)
		if err != nil || d < 0 {
			return coldStart{}, bad
		}
		return coldStart{constant: d}, nil
	case "lognormal":
		a, b, _ := strings.Cut(args, ",")
		mu, err1 := strconv.ParseFloat(strings.TrimSpace(a), 64)
		sigma, err2 := strconv.ParseFloat(strings.TrimSpace(b), 64)
		if err1 != nil || err2 != nil || !(math.Abs(mu) <= 10) || !(sigma >= 0 && sigma <= 5) {
			return coldStart{}, bad
		}
		return coldStart{seed: seed, mu: mu, sigma: sigma, random: true}, nil
	}
	return coldStart{}, bad
}

// long is a delay that hardly any start exceeds: of a random one, two standard
// deviations above the median.
func (c coldStart) long() time.Duration {
	if !c.random {
		return c.constant
	}
	return time.Duration(min(math.Exp(c.mu+2*c.sigma), 600) * float64(time.Second))
}

// delay returns the delay of a function's n-th start. It depends on the seed,
// the name and n alone, not on what other functions do meanwhile.
func (c coldStart) delay(name string, n uint64) time.Duration {
	if !c.random {
		return c.constant
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	r := rand.New(rand.NewPCG(c.seed^h.Sum64(), n))
	seconds := math.Exp(c.mu + c.sigma*r.NormFloat64())
	return time.Duration(min(seconds, 600) * float64(time.Second))
}
