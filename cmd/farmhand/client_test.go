package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"farmhand/internal/fn"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
	"farmhand/skeleton/jobapi/apitest"
	"farmhand/skeleton/ledger"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"farmhand": main})
}

// The scripts in testdata/jobs run the program against a dispatcher whose
// worker echoes: but what begins with "bad" is refused, and what begins with
// "hold" waits for the script's release.
func TestJobCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "jobs"),
		RequireExplicitExec: true,
		Setup:               setupFarm,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": exitCode, "accepted": awaitAccepted, "newest": newestJob, "followed": awaitFollower, "release": release, "replicas": replicas, "produce": produce,
		},
	})
}

// farm is a dispatcher for one script.
type farm struct {
	store   ledger.Store
	release chan struct{}
	follows chan struct{} // a client asks for results
	pipe    *os.File
}

type farmKey struct{}

func setupFarm(env *testscript.Env) error {
	t, ok := env.T().(testing.TB)
	if !ok {
		return errors.New("no testing.TB")
	}
	f := &farm{release: make(chan struct{}), follows: make(chan struct{}, 100)}
	store, api := apitest.Start(t, apitest.Options{Worker: f.work, Config: jobapi.Config{MaxBody: 1000}})
	f.store = store
	handler := api.Guard(func(next http.Handler) http.Handler { return fn.RequireToken("s3cret", next) })
	srv := httptest.NewServer(http.StripPrefix("/function/dispatcher", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/results") {
			f.follows <- struct{}{}
		}
		handler.ServeHTTP(w, r)
	})))
	t.Cleanup(func() { api.Close(); srv.Close() })
	state := filepath.Join(env.WorkDir, "state", "farmhand")
	for name, content := range map[string]string{"gateway.url": srv.URL + "\n", "secrets/farmhand-token": "s3cret\n"} {
		path := filepath.Join(state, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
	env.Setenv("URL", srv.URL)
	env.Values[farmKey{}] = f
	return nil
}

func (f *farm) work(ctx context.Context, t skeleton.Task, body []byte) skeleton.Call {
	switch {
	case strings.Contains(string(body), "bad"):
		return skeleton.Call{Status: 422, CallID: true, Type: "text/plain", Body: []byte("no such picture")}
	case strings.Contains(string(body), "hold"):
		select {
		case <-f.release:
		case <-ctx.Done():
			return skeleton.Call{Failure: skeleton.Reset}
		}
	}
	return apitest.Echo(ctx, t, body)
}

func farmOf(ts *testscript.TestScript) *farm { return ts.Value(farmKey{}).(*farm) }

// code N COMMAND…: runs a command that must end with the exit code.
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// accepted N: waits until the newest job holds N tasks.
func awaitAccepted(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := farmOf(ts).store.Farm(apitest.Worker)
	changed := make(chan struct{}, 1)
	watching := make(chan error, 1)
	go func() {
		watching <- l.Watch(ctx, func(ledger.Event) {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	for range changed {
		jobs, err := l.Jobs(ctx, "", 1)
		ts.Check(err)
		if len(jobs) > 0 && jobs[0].Total >= want {
			break
		}
	}
	cancel()
	<-watching
}

// newest VAR: the id of the newest job.
func newestJob(ts *testscript.TestScript, _ bool, args []string) {
	jobs, err := farmOf(ts).store.Farm(apitest.Worker).Jobs(context.Background(), "", 1)
	ts.Check(err)
	if len(jobs) == 0 {
		ts.Fatalf("there is no job")
	}
	ts.Setenv(args[0], jobs[0].ID)
}

// followed: waits until a client asks for results.
func awaitFollower(ts *testscript.TestScript, _ bool, _ []string) { <-farmOf(ts).follows }

// replicas N: publishes how many the farm has.
func replicas(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	f := skeleton.Farm{Name: apitest.Worker, Settings: skeleton.DefaultSettings(), Ready: n, Target: n}
	ts.Check(ledger.Publish(context.Background(), farmOf(ts).store, skeleton.Roster{Farms: []skeleton.Farm{f}}))
}

// release: lets the held tasks go.
func release(ts *testscript.TestScript, _ bool, _ []string) { close(farmOf(ts).release) }

// produce PIPE LINE…: writes lines into a pipe and leaves it open.
func produce(ts *testscript.TestScript, _ bool, args []string) {
	f := farmOf(ts)
	if f.pipe == nil {
		pipe, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
		ts.Check(err)
		f.pipe = pipe
		ts.Defer(func() { _ = f.pipe.Close() })
	}
	_, err := f.pipe.WriteString(strings.Join(args[1:], "\n") + "\n")
	ts.Check(err)
}
