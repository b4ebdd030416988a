package redisruns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"farmhand/internal/redistest"
	"farmhand/trainer"
	"farmhand/trainer/redisruns"
)

var ctx = context.Background()

const slice = 20 * time.Second

// fixture is a Store in a real Redis whose time the test moves.
type fixture struct {
	*testing.T
	*redisruns.Store
	rdb *redis.Client
	lag atomic.Int64
}

func setup(t *testing.T) *fixture {
	f := &fixture{T: t, rdb: redistest.Client(t, redistest.Start(t))}
	f.Store = redisruns.New(f.rdb, func() time.Duration { return time.Duration(f.lag.Load()) })
	return f
}

func (f *fixture) pass(d time.Duration) { f.lag.Add(int64(d)) }

func (f *fixture) create(id string) trainer.Run {
	f.Helper()
	r, created, err := f.Create(ctx, id, request("web"), slice, 0)
	if err != nil || !created {
		f.Fatalf("created %v, %v", created, err)
	}
	return r
}

func (f *fixture) begin(id string, n int, holder string) trainer.Run {
	f.Helper()
	r, err := f.Begin(ctx, id, n, holder)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

func (f *fixture) want(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("%s: error %v, want %v", what, err, want)
	}
}

func request(farm string) trainer.Request {
	r := trainer.DefaultRequest()
	r.Farm = farm
	return r
}

// A run from its beginning to its end.
func TestLife(t *testing.T) {
	f := setup(t)
	r := f.create("a")
	if r.State != trainer.Running || r.Slice != 0 || r.Held || r.Request.Farm != "web" || r.Progress.OnTime.Known() {
		t.Errorf("a new run is %+v", r)
	}
	if again, created, err := f.Create(ctx, "a", request("other"), slice, 0); err != nil || created || again.Request.Farm != "web" {
		t.Errorf("made again: %+v, created %v, %v", again, created, err)
	}
	want := bytes.Repeat([]byte("what was learned "), 100_000)
	for n := range 3 {
		r = f.begin("a", n, "h")
		if got, err := f.Checkpoint(ctx, &r); err != nil || n > 0 && !bytes.Equal(got, want) || n == 0 && got != nil {
			t.Errorf("slice %d begins with %d bytes, %v", n, len(got), err)
		}
		r.Progress.Steps = 100 * (n + 1)
		if err := f.Hold(ctx, "a", "h", r.Progress); err != nil {
			t.Error(err)
		}
		if got, _ := f.Get(ctx, "a"); !got.Held || got.Progress.Steps != r.Progress.Steps {
			t.Errorf("while it is held: %+v", got)
		}
		if err := f.Commit(ctx, &r, "h", want); err != nil {
			t.Fatal(err)
		}
		if keys := f.keys("checkpoint"); len(keys) != 1 {
			t.Errorf("checkpoints: %v", keys)
		}
	}
	r = f.begin("a", 3, "h")
	r.State, r.Error = trainer.Failed, "no luck"
	if err := f.Commit(ctx, &r, "h", nil); err != nil {
		t.Fatal(err)
	}
	r, err := f.Get(ctx, "a")
	if err != nil || r.State != trainer.Failed || r.Error != "no luck" || r.Ended.IsZero() || r.Slice != 4 {
		t.Errorf("in the end: %+v, %v", r, err)
	}
	if keys := f.keys("checkpoint"); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
	_, err = f.Begin(ctx, "a", 4, "h")
	f.want("a slice after the end", err, trainer.ErrOver)
}

func (f *fixture) keys(of string) []string {
	keys, err := f.rdb.Keys(ctx, "farmhand:{trainer}:"+of+":*").Result()
	if err != nil {
		f.Fatal(err)
	}
	return keys
}

// Whoever asks how often: a slice is done by one.
func TestOneHolder(t *testing.T) {
	f := setup(t)
	f.create("a")
	_, err := f.Begin(ctx, "b", 0, "h")
	f.want("an unknown run", err, trainer.ErrUnknown)
	_, err = f.Begin(ctx, "a", 1, "h")
	f.want("a slice to come", err, trainer.ErrNotNext)
	var begun atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, err := f.Begin(ctx, "a", 0, fmt.Sprint("h", i))
			if err == nil {
				begun.Add(1)
			} else if !errors.Is(err, trainer.ErrHeld) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if begun.Load() != 1 {
		t.Errorf("%d hold it", begun.Load())
	}
}

// A holder that was frozen, and wakes when another one has the run, changes nothing.
func TestFence(t *testing.T) {
	f := setup(t)
	f.create("a")
	frozen := f.begin("a", 0, "old")
	f.pass(trainer.Lease - time.Second)
	_, err := f.Begin(ctx, "a", 0, "new")
	f.want("within the lease", err, trainer.ErrHeld)
	f.pass(2 * time.Second)
	r := f.begin("a", 0, "new")
	f.want("the old one holds", f.Hold(ctx, "a", "old", frozen.Progress), trainer.ErrLost)
	f.want("the old one commits", f.Commit(ctx, &frozen, "old", []byte("old")), trainer.ErrLost)
	if err := f.Commit(ctx, &r, "new", []byte("new")); err != nil {
		t.Fatal(err)
	}
	f.want("the old one commits later", f.Commit(ctx, &frozen, "old", []byte("old")), trainer.ErrLost)
	r = f.begin("a", 1, "new")
	if got, err := f.Checkpoint(ctx, &r); err != nil || string(got) != "new" {
		t.Errorf("the checkpoint is %q, %v", got, err)
	}
}

// A commit whose answer was lost is made again: it was kept, and so is the checkpoint.
func TestCommitAgain(t *testing.T) {
	f := setup(t)
	f.create("a")
	r := f.begin("a", 0, "h")
	for range 2 {
		f.want("a commit", f.Commit(ctx, &r, "h", []byte("x")), nil)
		got, err := f.Get(ctx, "a")
		if d := f.rdb.PTTL(ctx, got.Checkpoint).Val(); err != nil || got.Slice != 1 || d <= time.Hour {
			t.Errorf("%+v, %v: the checkpoint stays for %s", got, err, d)
		}
	}
	last := f.begin("a", 1, "i")
	f.want("while the next slice is held", f.Commit(ctx, &r, "h", []byte("x")), nil)
	if got, err := f.Get(ctx, "a"); err != nil || !got.Held {
		t.Errorf("the next slice: %+v, %v", got, err)
	}
	last.State = trainer.Done
	for range 2 {
		f.want("the last commit", f.Commit(ctx, &last, "i", nil), nil)
	}
	f.want("after another one's", f.Commit(ctx, &r, "h", []byte("x")), trainer.ErrLost)
}

// A holder whose lease is over, but whom nobody followed, may end its slice.
func TestLateButAlone(t *testing.T) {
	f := setup(t)
	f.create("a")
	r := f.begin("a", 0, "h")
	f.pass(time.Hour)
	if err := f.Commit(ctx, &r, "h", []byte("x")); err != nil {
		t.Error(err)
	}
}

func TestOverdue(t *testing.T) {
	f := setup(t)
	f.create("a")
	overdue := func(want string) {
		t.Helper()
		list, err := f.Overdue(ctx)
		if got := fmt.Sprint(list); err != nil || got != want {
			t.Errorf("overdue are %s, %v; want %s", got, err, want)
		}
	}
	overdue("[]")
	f.pass(3*slice + time.Second)
	overdue("[{a 0 }]")
	overdue("[]") // it was just named
	f.begin("a", 0, "h")
	for range 10 { // three slices and more
		f.pass(10 * time.Second)
		if err := f.Hold(ctx, "a", "h", trainer.Progress{}); err != nil {
			t.Fatal(err)
		}
		overdue("[]")
	}
	f.pass(3*slice + time.Second) // killed
	overdue("[{a 0 }]")
	r := f.begin("a", 0, "i")
	if err := f.Commit(ctx, &r, "i", nil); err != nil {
		t.Fatal(err)
	}
	for range trainer.MaxPosts {
		f.pass(3*slice + time.Second)
		overdue("[{a 1 }]")
	}
	f.pass(3*slice + time.Second)
	overdue("[]")
	if r, _ := f.Get(ctx, "a"); r.State != trainer.Failed || !strings.Contains(r.Error, "nobody took it") {
		t.Errorf("a run that nobody takes is %s: %s", r.State, r.Error)
	}
}

func TestTriesAreBounded(t *testing.T) {
	f := setup(t)
	f.create("a")
	for range trainer.MaxTries {
		f.begin("a", 0, "h")
		f.pass(trainer.Lease + time.Second)
	}
	_, err := f.Begin(ctx, "a", 0, "h")
	f.want("once more", err, trainer.ErrOver)
	if r, _ := f.Get(ctx, "a"); r.State != trainer.Failed || !strings.Contains(r.Error, "never came to its end") {
		t.Errorf("%s: %s", r.State, r.Error)
	}
}

func TestCancel(t *testing.T) {
	f := setup(t)
	f.create("a")
	r := f.begin("a", 0, "h")
	if err := f.Commit(ctx, &r, "h", []byte("x")); err != nil {
		t.Fatal(err)
	}
	r = f.begin("a", 1, "h")
	for range 2 {
		if r, err := f.Cancel(ctx, "a"); err != nil || r.State != trainer.Cancelled || r.Held {
			t.Errorf("%+v, %v", r, err)
		}
	}
	f.want("the holder", f.Hold(ctx, "a", "h", r.Progress), trainer.ErrLost)
	f.want("the holder's commit", f.Commit(ctx, &r, "h", []byte("y")), trainer.ErrLost)
	_, err := f.Cancel(ctx, "b")
	f.want("an unknown run", err, trainer.ErrUnknown)
	for _, key := range f.keys("checkpoint") { // what was written and is not linked
		if d := f.rdb.PTTL(ctx, key).Val(); d <= 0 || d > 10*time.Minute {
			t.Errorf("%s stays for %s", key, d)
		}
	}
	f.pass(time.Hour)
	if list, err := f.Overdue(ctx); err != nil || len(list) > 0 {
		t.Errorf("overdue %v, %v", list, err)
	}
}

// A schedule trains a farm twice a day at most; others do not count.
func TestScheduleIsBounded(t *testing.T) {
	f := setup(t)
	by := func(id, farm string) error {
		_, _, err := f.Create(ctx, id, request(farm), slice, trainer.Apart)
		return err
	}
	f.create("a")
	f.want("the first", by("b", "web"), nil)
	f.want("the next", by("c", "web"), trainer.ErrEarly)
	f.want("another farm", by("d", "batch"), nil)
	f.pass(trainer.Apart + time.Second)
	f.want("half a day later", by("e", "web"), nil)
}

func TestManyRuns(t *testing.T) {
	f := setup(t)
	for i := range trainer.MaxRunning {
		f.create(fmt.Sprint("live-", i))
	}
	_, _, err := f.Create(ctx, "more", request("web"), slice, 0)
	f.want("one more", err, trainer.ErrFull)
	for i := range trainer.KeptRuns {
		if _, err := f.Cancel(ctx, "live-0"); err != nil && i == 0 {
			t.Fatal(err)
		}
		id := fmt.Sprint("run-", i)
		f.create(id)
		if _, err := f.Cancel(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.List(ctx)
	if err != nil || len(list) != trainer.KeptRuns || list[0].ID != fmt.Sprint("run-", trainer.KeptRuns-1) {
		t.Errorf("%d runs, %v", len(list), err)
	}
	if keys := f.keys("run"); len(keys) > trainer.KeptRuns+trainer.MaxRunning {
		t.Errorf("%d runs are kept", len(keys))
	}
	if r, err := f.Get(ctx, "live-1"); err != nil || r.State != trainer.Running {
		t.Errorf("a run under way: %+v, %v", r, err)
	}
}

func TestCheckpointIsBoundedAndMayBeGone(t *testing.T) {
	f := setup(t)
	f.create("a")
	r := f.begin("a", 0, "h")
	big := make([]byte, trainer.MaxCheckpoint+1)
	if err := f.Commit(ctx, &r, "h", big); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("too large: %v", err)
	}
	chacha := rand.NewChaCha8([32]byte{1}) // what cannot be deflated
	chacha.Read(big)
	if err := f.Commit(ctx, &r, "h", big[:trainer.MaxCheckpoint]); err != nil {
		t.Fatal(err)
	}
	r = f.begin("a", 1, "h")
	if got, err := f.Checkpoint(ctx, &r); err != nil || !bytes.Equal(got, big[:trainer.MaxCheckpoint]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if d := f.rdb.PTTL(ctx, r.Checkpoint).Val(); d <= 0 || d > trainer.Expiry {
		t.Errorf("it stays for %s", d)
	}
	f.rdb.SetRange(ctx, r.Checkpoint, 1000, "\xff\xff\xff")
	f.rdb.Append(ctx, r.Checkpoint, "")
	if got, err := f.Checkpoint(ctx, &r); err == nil && bytes.Equal(got, big[:trainer.MaxCheckpoint]) {
		t.Error("damage was not seen") // by the checksum inside, if not here
	}
	f.rdb.Del(ctx, r.Checkpoint)
	_, err := f.Checkpoint(ctx, &r)
	f.want("gone", err, trainer.ErrGone)
}

// A run whose record is damaged is told of by its id; the others are listed and watched.
func TestDamage(t *testing.T) {
	for name, spoil := range map[string]func(f *fixture, key string){
		"progress":     func(f *fixture, key string) { f.rdb.HSet(ctx, key, "progress", `{"phase":7}`) },
		"request":      func(f *fixture, key string) { f.rdb.HDel(ctx, key, "request") },
		"posts":        func(f *fixture, key string) { f.rdb.HSet(ctx, key, "posts", "many", "created", "once") },
		"another type": func(f *fixture, key string) { f.rdb.Del(ctx, key); f.rdb.Set(ctx, key, "x", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			f.create("bad")
			f.create("good")
			key := "farmhand:{trainer}:run:bad"
			spoil(f, key)
			damaged := func(what string, err error) {
				t.Helper()
				if f.want(what, err, trainer.ErrDamaged); err == nil || !strings.Contains(err.Error(), key) {
					t.Errorf("%s: %v does not name %s", what, err, key)
				}
			}
			list, err := f.List(ctx)
			if damaged("the list", err); len(list) != 1 || list[0].ID != "good" {
				t.Errorf("the list: %+v", list)
			}
			_, err = f.Get(ctx, "bad")
			damaged("one", err)
			_, _, err = f.Create(ctx, "bad", request("web"), slice, 0)
			damaged("made again", err)

			f.pass(3*slice + time.Second)
			overdue, err := f.Overdue(ctx)
			if err != nil {
				damaged("overdue", err)
			}
			if !strings.Contains(fmt.Sprint(overdue), "{good 0 }") {
				t.Errorf("overdue: %v", overdue)
			}
			for range trainer.MaxPosts + 1 { // it ends by itself, and is told of once at most
				f.pass(3*slice + time.Second)
				_, err := f.Overdue(ctx)
				f.want("overdue later", err, nil)
			}
			if n := f.rdb.ZCard(ctx, "farmhand:{trainer}:due").Val(); n != 0 {
				t.Errorf("%d are under way", n)
			}
			_, err = f.Begin(ctx, "bad", 0, "h")
			f.want("a slice", err, map[bool]error{true: trainer.ErrDamaged, false: trainer.ErrOver}[name == "another type"])
			_, err = f.Cancel(ctx, "bad")
			damaged("cancelled", err)
		})
	}
}

// Without Redis every call is an error, none of those that mean something.
func TestRedisAway(t *testing.T) {
	server := redistest.Start(t)
	s := redisruns.New(redistest.Client(t, server), nil)
	server.Kill()
	r := trainer.Run{ID: "a"}
	_, _, err := s.Create(ctx, "a", request("web"), slice, 0)
	_, err2 := s.Begin(ctx, "a", 0, "h")
	_, err3 := s.Overdue(ctx)
	_, err4 := s.List(ctx)
	for _, err := range []error{err, err2, err3, err4, s.Hold(ctx, "a", "h", r.Progress), s.Commit(ctx, &r, "h", nil)} {
		if err == nil || errors.Is(err, trainer.ErrLost) || errors.Is(err, trainer.ErrUnknown) || errors.Is(err, trainer.ErrOver) {
			t.Errorf("error %v", err)
		}
	}
}
