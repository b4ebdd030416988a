package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"farmhand/controller"
	"farmhand/internal/problem"
)

// shown plays messages and returns the screen as text, and the last command.
func shown(m tea.Model, msgs ...tea.Msg) (screen string, end topModel, cmd tea.Cmd) {
	for _, msg := range msgs {
		m, cmd = m.Update(msg)
	}
	return ansi.Strip(m.View().Content), m.(topModel), cmd
}

func key(text string) tea.KeyPressMsg { return tea.KeyPressMsg{Code: []rune(text)[0], Text: text} }

// utc shows times as they stand in testdata.
func utc(t *testing.T) {
	t.Helper()
	old := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = old })
}

// sight is a look at the farms with so many busy replicas ready.
func sight(second, ready int) topSeen {
	v := busyOverview()
	v.Farms[0].Ready = ready
	return topSeen{view: v, at: noon.Add(time.Duration(second) * time.Second)}
}

func TestTopScreen(t *testing.T) {
	utc(t)
	start := topModel{gateway: "http://gateway:8080", every: time.Second}
	away := topSeen{err: errors.New("nothing answers\x1b[2J at http://gateway:8080"), at: noon.Add(20 * time.Second)}
	stuck := sight(12, 5)
	stuck.view.Error = "redis: connection refused"
	size := tea.WindowSizeMsg{Width: 120, Height: 40}
	var got strings.Builder
	for _, c := range []struct {
		name string
		msgs []tea.Msg
	}{
		{"before the first look", nil},
		{"nothing answers yet", []tea.Msg{away}},
		{"farms", []tea.Msg{size, sight(9, 0), sight(10, 1), sight(11, 3)}},
		{"nothing answers any more", []tea.Msg{size, sight(9, 2), away}},
		{"and again", []tea.Msg{size, sight(9, 2), away, sight(21, 5)}},
		{"the controller cannot decide", []tea.Msg{size, stuck}},
		{"small, scrolled", []tea.Msg{tea.WindowSizeMsg{Width: 40, Height: 5}, sight(9, 2), key("j"), key("j"), key("k")}},
		{"scrolled to the end", []tea.Msg{tea.WindowSizeMsg{Width: 40, Height: 5}, sight(9, 2), key("j"), key(" "), key(" "), key(" "), key(" "), key(" ")}},
	} {
		screen, _, _ := shown(start, c.msgs...)
		fmt.Fprintf(&got, "== %s ==\n%s\n", c.name, screen)
	}
	golden := filepath.Join("testdata", "farmtop.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("UPDATE=1 rewrites it; -want +got:\n%s", diff)
	}
}

// The screen looks again after each look, also after one that failed; only a
// wrong token ends it.
func TestTopGoesOn(t *testing.T) {
	asked := 0
	start := topModel{every: time.Nanosecond, look: func() tea.Msg { asked++; return sight(1, 1) }}
	if _, ok := start.Init()().(topSeen); !ok || asked != 1 {
		t.Fatal("it does not look at once")
	}
	for _, seen := range []topSeen{sight(1, 1), {err: errors.New("away")}} {
		_, end, cmd := shown(start, seen)
		tick, ok := cmd().(topTick)
		if !ok {
			t.Fatalf("it stops after %v", seen.err)
		}
		if _, _, cmd = shown(end, tick); cmd == nil {
			t.Fatal("it does not look again")
		} else if _, ok := cmd().(topSeen); !ok {
			t.Fatal("it does not look again")
		}
	}
	refused := topSeen{err: problem.New(http.StatusUnauthorized, "unauthorized", "the bearer token is not the right one")}
	if _, _, cmd := shown(start, refused); cmd() != tea.Quit() {
		t.Error("it goes on with a wrong token")
	}
}

func TestTopKeys(t *testing.T) {
	for _, c := range []struct {
		key         tea.KeyPressMsg
		quits       bool
		interrupted bool
	}{
		{key("q"), true, false},
		{tea.KeyPressMsg{Code: tea.KeyEscape}, true, false},
		{tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}, true, true},
		{key("x"), false, false},
		{tea.KeyPressMsg{Code: tea.KeyUp}, false, false},
	} {
		_, end, cmd := shown(topModel{}, c.key)
		if quits := cmd != nil && cmd() == tea.Quit(); quits != c.quits || end.interrupted != c.interrupted {
			t.Errorf("%s: quits %t, interrupted %t", c.key, quits, end.interrupted)
		}
	}
}

func TestTopScreenEnds(t *testing.T) {
	s := httptest.NewServer(&fakeController{asked: make(chan struct{}, 1000)})
	defer s.Close()
	for press, want := range map[string]int{"q": 0, "\x03": exitInterrupted} {
		code := 0
		var coded *exitError
		tt := top{client: &farmClient{functionClient{gateway: s.URL, function: "controller", refused: refusedFarm}}, every: time.Hour}
		if err := tt.screen(t.Context(), strings.NewReader(press), new(bytes.Buffer)); errors.As(err, &coded) {
			code = coded.code
		} else if err != nil {
			t.Error(err)
		}
		if code != want {
			t.Errorf("%q: exit code %d, want %d", press, code, want)
		}
	}
}

func TestSparkline(t *testing.T) {
	for want, counts := range map[string][]int{"": nil, "▁▁": {0, 0}, "▁▄█": {0, 5, 10}, "█": {3}, "▁": {-1}} {
		if got := sparkline(counts); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
	var h map[string][]int
	for range 2 * topHistory {
		h = remembered(h, []controller.FarmView{{Name: "a", Ready: 2}})
	}
	if h = remembered(h, []controller.FarmView{{Name: "a", Ready: 7}, {Name: "b"}}); len(h["a"]) != topHistory || h["a"][topHistory-1] != 7 || len(h["b"]) != 1 {
		t.Errorf("%v", h)
	}
}

// Lines go on while nothing answers, and end by themselves, when interrupted, or
// where going on cannot help.
func TestTopLines(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, c := range map[string]struct {
		n       int
		answers []int // statuses in turn; after the last, the user interrupts
		lines   int
		errors  int
		code    int
	}{
		"to the end":      {n: 2, answers: []int{200, 200}, lines: 6},
		"away in between": {n: 3, answers: []int{200, 502, 200}, lines: 6, errors: 1},
		"away at the end": {n: 2, answers: []int{200, 502}, lines: 3, code: exitFailed},
		"wrong token":     {answers: []int{200, 401}, lines: 3, code: exitFailed},
		"interrupted":     {answers: []int{502, 200}, lines: 3, errors: 1, code: exitInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			asked, fake := 0, &fakeController{asked: make(chan struct{}, 1000)}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/function/trainer" { // none is deployed
					w.WriteHeader(http.StatusNotFound)
					return
				}
				asked++
				switch {
				case asked > len(c.answers):
					cancel()
				case c.answers[asked-1] == http.StatusUnauthorized:
					problem.Write(w, problem.New(http.StatusUnauthorized, "unauthorized", "no"))
				case c.answers[asked-1] != http.StatusOK:
					w.WriteHeader(c.answers[asked-1])
				default:
					fake.ServeHTTP(w, r)
				}
			}))
			defer s.Close()
			var out, errOut bytes.Buffer
			tt := top{client: &farmClient{functionClient{gateway: s.URL, function: "controller", refused: refusedFarm}}, every: time.Millisecond, n: c.n}
			err := tt.lines(ctx, &out, &errOut)
			code, coded := 0, (*exitError)(nil)
			if errors.As(err, &coded) {
				code = coded.code
			} else if err != nil {
				code = exitFailed
			}
			if code != c.code || strings.Count(out.String(), "\n") != c.lines || strings.Count(errOut.String(), "\n") != c.errors {
				t.Errorf("code %d (%v), want %d; %d lines, %d errors wanted:\n%s%s", code, err, c.code, c.lines, c.errors, out.String(), errOut.String())
			}
		})
	}
}
