package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"farmhand/policy"
	"farmhand/policy/learned"
)

// learnedPolicy is the policy of a farm whose champion decides. With a colon and a
// version, or the beginning of one, after it, that version decides.
const learnedPolicy = "learned"

// originChampion is the origin of a champion.
const originChampion = "champion"

// Times of looking for champions.
const (
	registryTime  = 500 * time.Millisecond // between looks whether something was promoted
	registryCall  = 2 * time.Second        // a look at most
	patienceMost  = 10 * time.Second       // between tries to read what cannot be read
	seatForgotten = 10 * time.Minute       // after the last decision that asked for it
)

// Registry is where the policies of farms are kept.
type Registry interface {
	// Revision changes whenever a policy was promoted, for whatever farm.
	Revision(ctx context.Context) (int64, error)
	// Champion is the version that decides for a farm; "" = it has none. Its term changes
	// with each promotion, also of the same version again.
	Champion(ctx context.Context, farm string) (version string, term int64, err error)
	// Resolve finds the version that begins so.
	Resolve(ctx context.Context, name string) (version string, err error)
	// Policy returns the policy file of a version.
	Policy(ctx context.Context, version string) ([]byte, error)
}

// Choice is what the name of a policy comes to.
type Choice struct {
	Spec    string `json:"spec"`              // what the farm's setting says
	Version string `json:"version,omitempty"` // name of the learned policy; "" = it is a law, or there is none
	Origin  string `json:"origin,omitempty"`  // of the learned policy: champion, version or default
	Term    int64  `json:"term,omitempty"`    // of the champion: another one begins anew
	Note    string `json:"note,omitempty"`    // why there is none, or not the newest
	Loading bool   `json:"loading,omitempty"` // which one is not known yet
}

// Learned reports whether the name is that of a learned policy.
func (c *Choice) Learned() bool { return isLearned(c.Spec) }

func isLearned(spec string) bool {
	return spec == learnedPolicy || strings.HasPrefix(spec, learnedPolicy+":")
}

// pinned is the version in a specification.
var pinned = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// canonical spells the same policy the same.
func canonical(spec string) (string, error) {
	if spec = strings.TrimSpace(spec); isLearned(spec) {
		if _, version, ok := strings.Cut(spec, ":"); ok && !pinned.MatchString(version) {
			return "", fmt.Errorf("policy: %.80q is no version: want %s, or 4 to 64 digits of a version after a colon", version, learnedPolicy)
		}
		return spec, nil
	}
	law, err := policy.New(spec)
	if err != nil {
		return "", fmt.Errorf("%w, or %s", err, learnedPolicy)
	}
	return law.Name(), nil
}

// unfit is a policy that cannot be asked: it has learned from other observations. It
// is handed back before it is.
type unfit struct {
	policy.Policy // the rule, and the fallback
	name          string
	made          int
}

func (u *unfit) Name() string            { return u.name }
func (u *unfit) Made() int               { return u.made }
func (u *unfit) Rule() policy.Policy     { return u.Policy }
func (u *unfit) Fallback() policy.Policy { return u.Policy }
func (u *unfit) Judge(o *policy.Observation, m policy.Memory) (policy.Decision, policy.Strange) {
	return u.Decide(o, m), policy.Strange{}
}

// Load makes a policy of a policy file. One that has learned from observations of
// another version than this program makes is no error: it is handed back at once.
func Load(file []byte) (policy.Learned, error) {
	p, err := learned.Load(file)
	var other *learned.VersionError
	switch {
	case errors.As(err, &other):
		rule, err := policy.New(DefaultPolicy)
		return &unfit{rule, learned.NameOf(file), other.Observation}, err
	case err != nil:
		return nil, err
	}
	return p, nil
}

// seat is what a farm's setting stands for: its champion, or a version.
type seat struct{ farm, spec string }

// holder is who sits there.
type holder struct {
	policy   policy.Learned // the last good one; nil = none
	version  string         // of it, as the registry names it
	term     int64          // of a champion
	looked   bool           // the registry has answered, or could not
	revision int64          // of the registry, when it was looked at
	err      error          // why the newest is not here
	again    time.Time      // where there is an error: try again then
	patience time.Duration  // that this try was put off
	asked    time.Time      // when a decision asked last
}

// champions have the learned policies of farms at hand, so that no decision waits for
// the registry. They are looked after beside the loop.
type champions struct {
	registry Registry       // nil = none
	initial  policy.Learned // decides for farms without a champion; nil = their rule does
	load     func([]byte) (policy.Learned, error)
	changed  func(farm string) // is called when somebody else sits there
	begin    func()            // begins to look after them, once
	kick     chan struct{}

	mu    sync.Mutex
	seats map[seat]*holder // guarded by mu
}

func newChampions(r Registry, initial policy.Learned, load func([]byte) (policy.Learned, error)) *champions {
	return &champions{registry: r, initial: initial, load: load, kick: make(chan struct{}, 1), seats: map[seat]*holder{}}
}

// choose says what a farm's setting comes to now. The policy is nil where it is a law,
// or where there is none.
func (c *champions) choose(farm, spec string) (Choice, policy.Learned) {
	choice := Choice{Spec: spec}
	if !choice.Learned() {
		return choice, nil
	}
	h := holder{looked: true, err: errors.New("this controller has no registry")}
	if c.registry != nil {
		h = c.ask(seat{farm, spec})
	}
	who, origin := "the champion", originChampion
	if spec != learnedPolicy {
		who, origin = "the version", "version"
	}
	if h.err != nil {
		choice.Note = fmt.Sprintf("%s cannot be had: %.200s", who, h.err.Error())
	}
	switch {
	case h.policy != nil:
		choice.Version, choice.Origin, choice.Term = h.policy.Name(), origin, h.term
		return choice, h.policy
	case !h.looked:
		choice.Loading = true
		return choice, nil
	case c.initial != nil:
		choice.Version, choice.Origin = c.initial.Name(), "default"
		choice.Note = cmp.Or(choice.Note, "the farm has no champion yet")
		return choice, c.initial
	}
	choice.Note = cmp.Or(choice.Note, "the farm has no champion yet")
	return choice, nil
}

// ask returns who sits there, and has it looked after from now on.
func (c *champions) ask(s seat) holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.seats[s]
	if h == nil {
		h = &holder{}
		c.seats[s] = h
		c.begin()
		select {
		case c.kick <- struct{}{}:
		default:
		}
	}
	h.asked = time.Now()
	return *h
}

// run looks after the seats until ctx is done.
func (c *champions) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.kick:
		}
		c.look(ctx)
		timer.Reset(registryTime)
	}
}

// look asks the registry for those whose champion may have changed.
func (c *champions) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, registryCall)
	defer cancel()
	revision, err := c.registry.Revision(ctx) // before what it tells of
	for s, old := range c.due(revision, err) {
		next := old
		next.looked, next.revision = true, revision
		if next.err = err; err == nil {
			next.policy, next.version, next.term, next.err = c.fetch(ctx, s, old)
		}
		if next.patience = min(max(registryTime/2, 2*old.patience), patienceMost); next.err == nil {
			next.patience = 0
		}
		next.again = time.Now().Add(next.patience)
		c.mu.Lock()
		h := c.seats[s]
		next.asked = h.asked
		*h = next
		c.mu.Unlock()
		if !old.looked || next.version != old.version || next.term != old.term {
			c.changed(s.farm)
		}
	}
}

// due are the seats that have to be looked at, and who sits there. Those that nobody
// asks for any more are forgotten.
func (c *champions) due(revision int64, failed error) map[seat]holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	list := map[seat]holder{}
	for s, h := range c.seats {
		switch {
		case now.Sub(h.asked) > seatForgotten:
			delete(c.seats, s)
		case failed != nil || !h.looked || h.revision != revision || h.err != nil && !now.Before(h.again):
			list[s] = *h
		}
	}
	return list
}

// fetch finds who is to sit there. Where that cannot be had, it is who sits there now.
func (c *champions) fetch(ctx context.Context, s seat, old holder) (_ policy.Learned, version string, term int64, err error) {
	if _, name, ok := strings.Cut(s.spec, ":"); ok {
		version, err = c.registry.Resolve(ctx, name)
	} else {
		version, term, err = c.registry.Champion(ctx, s.farm)
	}
	switch {
	case err != nil:
		return old.policy, old.version, old.term, err
	case version == "":
		return nil, "", term, nil
	case version == old.version:
		return old.policy, version, term, nil
	}
	if p := c.known(version); p != nil {
		return p, version, term, nil
	}
	file, err := c.registry.Policy(ctx, version)
	if err != nil {
		return old.policy, old.version, old.term, err
	}
	p, err := c.load(file)
	if err != nil {
		return old.policy, old.version, old.term, err
	}
	return p, version, term, nil
}

// known is the policy of a version that sits somewhere already; nil = none.
func (c *champions) known(version string) policy.Learned {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.seats {
		if h.version == version {
			return h.policy
		}
	}
	return nil
}
