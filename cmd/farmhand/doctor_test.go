package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"

	"farmhand/controller"
	"farmhand/internal/fn"
	"farmhand/internal/problem"
	"farmhand/internal/redistest"
	"farmhand/policy"
	"farmhand/skeleton"
	"farmhand/skeleton/jobapi"
)

// patient is an OpenFaaS with the suite on it that the doctor examines. It is
// sound, until a test spoils it.
type patient struct {
	functions []types.FunctionStatus
	farms     jobapi.FarmList
	overview  controller.Overview
	views     map[string]controller.FarmView

	ill        bool          // the gateway's provider is away
	password   string        // of the gateway's own login
	token      string        // that the functions want
	noStore    bool          // the dispatcher does not reach Redis
	noQueue    bool          // asynchronous calls are refused
	noWorker   bool          // and are not made
	skew       time.Duration // of the gateway's clock
	servedBy   string
	controlled int // status of the controller's answers; 0 = 200

	mu      sync.Mutex
	stepped time.Time // guarded by mu
}

func pairs(list ...string) *map[string]string {
	m := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return &m
}

func newPatient() *patient {
	now := time.Now()
	function := func(name string, labels *map[string]string, env *map[string]string) types.FunctionStatus {
		(*labels)["com.openfaas.scale.factor"] = "0"
		return types.FunctionStatus{Name: name, Namespace: "openfaas-fn", Replicas: 1, AvailableReplicas: 1, Labels: labels, Annotations: pairs(), EnvVars: *env}
	}
	p := &patient{password: "hunter2", token: "s3cret", servedBy: "openfaas-pro/1", views: map[string]controller.FarmView{}}
	p.functions = []types.FunctionStatus{
		function("dispatcher", pairs(), pairs("exec_timeout", "60s", "write_timeout", "65s", "read_timeout", "65s", "farmhand_max_wait", "50s")),
		function("controller", pairs(), pairs("exec_timeout", "25", "write_timeout", "30", "read_timeout", "30")),
		function("thumbnail", pairs("farmhand.worker", "true"), pairs("exec_timeout", "60s", "write_timeout", "65s", "read_timeout", "65s")),
		{Name: "stranger", Namespace: "openfaas-fn"},
	}
	p.farms = jobapi.FarmList{Published: now, Farms: []jobapi.FarmView{{Farm: skeleton.Farm{Name: "thumbnail", Settings: skeleton.DefaultSettings()}}}}
	healthy := map[string]controller.Condition{controller.Healthy: {Status: true}}
	p.overview = controller.Overview{Status: controller.Status{Owner: "a", Updated: now}, Farms: []controller.FarmView{
		{Name: "thumbnail", Conditions: healthy, Last: &controller.Summary{At: now}}}}
	r := controller.Receipt{Farm: "thumbnail", Acted: &controller.Acted{From: 1, To: 4, ReadBack: 4}}
	r.Observation.Ready, r.Observation.Long = 4, policy.Window{Starts: 1000, Busy: 3}
	p.views["thumbnail"] = controller.FarmView{Name: "thumbnail", Receipts: []controller.Receipt{r}}
	return p
}

// worker is the worker, for a test to change.
func (p *patient) worker() *types.FunctionStatus { return &p.functions[2] }

func (p *patient) receipt() *controller.Receipt { return &p.views["thumbnail"].Receipts[0] }

func (p *patient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Served-By", p.servedBy)
	path := r.Method + " " + r.URL.Path
	switch {
	case path == "GET /healthz":
		w.Header().Set("Date", time.Now().Add(p.skew).UTC().Format(http.TimeFormat))
		if p.ill {
			w.WriteHeader(http.StatusBadGateway)
		}
	case path == "GET /system/functions":
		if user, password, _ := r.BasicAuth(); user != "admin" || password != p.password {
			http.Error(w, "invalid credentials", http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(p.functions)
	case path == "GET /function/dispatcher/farms":
		fn.RequireToken(p.token, http.HandlerFunc(p.dispatcher)).ServeHTTP(w, r)
	case path == "GET /function/controller/":
		fn.RequireToken(p.token, http.HandlerFunc(p.controller)).ServeHTTP(w, r)
	case path == "POST /async-function/controller":
		p.async(w, r)
	default:
		http.Error(w, "unexpected: "+path, http.StatusTeapot)
	}
}

func (p *patient) dispatcher(w http.ResponseWriter, _ *http.Request) {
	if p.noStore {
		problem.Write(w, problem.New(http.StatusServiceUnavailable, "store-unavailable", "Redis is away"))
		return
	}
	_ = json.NewEncoder(w).Encode(p.farms)
}

func (p *patient) controller(w http.ResponseWriter, r *http.Request) {
	if p.controlled != 0 {
		w.WriteHeader(p.controlled)
		return
	}
	if name := r.URL.Query().Get("farm"); name != "" {
		_ = json.NewEncoder(w).Encode(p.views[name])
		return
	}
	v := p.overview
	p.mu.Lock()
	v.Stepped = p.stepped
	p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(v)
}

func (p *patient) async(w http.ResponseWriter, r *http.Request) {
	if p.noQueue {
		http.Error(w, "Error queuing request: nats: no servers", http.StatusInternalServerError)
		return
	}
	if !p.noWorker && r.ContentLength == 0 && r.Header.Get("Authorization") == "" { // else it would not be a step
		p.mu.Lock()
		p.stepped = time.Now()
		p.mu.Unlock()
	}
	w.WriteHeader(http.StatusAccepted)
}

// write puts a secret into a file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// examined runs farmhand doctor --json on a patient and returns the exit code and
// the findings.
func examined(t *testing.T, url string, args ...string) (code int, list []finding) {
	t.Helper()
	out, code := doctorSays(t, append([]string{"--json", "--gateway", url}, args...)...)
	var v struct {
		OK       bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if v.OK != (code == 0) {
		t.Errorf("ok is %v, the exit code %d", v.OK, code)
	}
	for _, f := range v.Findings {
		if (f.Status == findOK) != (f.Fix == "") || f.Detail == "" {
			t.Errorf("a line without what it needs: %+v", f)
		}
	}
	return code, v.Findings
}

func doctorSays(t *testing.T, args ...string) (string, int) {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, home)
	}
	for _, name := range []string{"FARMHAND_GATEWAY", "OPENFAAS_URL", "FARMHAND_TOKEN"} {
		t.Setenv(name, "")
	}
	if os.Getenv("OPENFAAS_CONFIG") == "" {
		t.Setenv("OPENFAAS_CONFIG", home)
	}
	var out bytes.Buffer
	cmd := rootCmd()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"doctor", "--async-patience", "300ms"}, args...))
	err := cmd.Execute()
	var coded *exitError
	switch {
	case err == nil:
		return out.String(), 0
	case errors.As(err, &coded) && coded.err == nil:
		return out.String(), coded.code
	case errors.As(err, &coded):
		return out.String() + coded.Error(), coded.code
	}
	return out.String() + err.Error(), exitFailed
}

// keys are the flags that prove who we are.
func keys(t *testing.T) []string {
	return []string{"--password-file", write(t, "password", "hunter2"), "--token-file", write(t, "token", "s3cret")}
}

// has looks for a finding.
func has(list []finding, check, status, detail string) bool {
	for _, f := range list {
		if f.Check == check && f.Status == status && strings.Contains(f.Detail, detail) {
			return true
		}
	}
	return false
}

func serve(t *testing.T, p *patient) string {
	t.Helper()
	srv := httptest.NewServer(p)
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); srv.Close() })
	return srv.URL
}

// Of a sound suite nothing is said but ok, in every check.
func TestDoctorFindsNothing(t *testing.T) {
	server := redistest.Start(t, "maxmemory 512mb", "maxmemory-policy noeviction", "requirepass hush")
	args := append(keys(t), "--redis", "redis://"+server.Addr, "--redis-password-file", write(t, "redis", "hush"))
	code, list := examined(t, serve(t, newPatient()), args...)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, check := range []string{"gateway", "login", "functions", "token", "dispatcher", "controller", "farms", "redis", "durability", "eviction",
		"timeouts", "scalers", "clamp", "balancing", "clock", "async"} {
		if !has(list, check, findOK, "") {
			t.Errorf("nothing is said of %s", check)
		}
	}
	for _, f := range list {
		if f.Status != findOK {
			t.Errorf("%+v", f)
		}
	}
}

// Each thing that can be wrong is found, with what mends it.
func TestDoctorFinds(t *testing.T) {
	set := func(m *map[string]string, name, value string) { (*m)[name] = value }
	for name, test := range map[string]struct {
		spoil                 func(p *patient)
		check, status, detail string
	}{
		"ill gateway":        {func(p *patient) { p.ill = true }, "gateway", findFail, "status 502"},
		"wrong login":        {func(p *patient) { p.password = "changed" }, "login", findFail, "another login"},
		"wrong token":        {func(p *patient) { p.token = "changed" }, "token", findFail, "dispatcher wants another token"},
		"no dispatcher":      {func(p *patient) { p.functions = p.functions[1:] }, "functions", findFail, "dispatcher is not deployed"},
		"controller unready": {func(p *patient) { p.functions[1].AvailableReplicas = 0 }, "functions", findFail, "controller has 1 replica, and none ready"},
		"controller away":    {func(p *patient) { p.controlled = http.StatusBadGateway }, "controller", findFail, "it answers 502 Bad Gateway"},
		"undecided":          {func(p *patient) { p.overview.Updated, p.overview.Error = time.Time{}, "401" }, "controller", findFail, "decided nothing yet: 401"},
		"failing":            {func(p *patient) { p.overview.Error = "the gateway is away" }, "controller", findFail, "nothing is decided: the gateway is away"},
		"asleep":             {func(p *patient) { p.overview.Updated = time.Now().Add(-time.Hour) }, "controller", findWarn, "not decided for 1h0m0s"},
		"no roster":          {func(p *patient) { p.farms.Published = time.Time{} }, "dispatcher", findFail, "never told it"},
		"old roster":         {func(p *patient) { p.farms.Published = time.Now().Add(-time.Hour) }, "dispatcher", findWarn, "1h0m0s old"},
		"ill farm": {func(p *patient) {
			p.overview.Farms[0].Conditions[controller.Healthy] = controller.Condition{Reason: "the signals are missing"}
		}, "farms", findWarn, "thumbnail is not healthy: the signals are missing"},
		"redis away from the dispatcher": {func(p *patient) { p.noStore = true }, "redis", findFail, "dispatcher does not reach Redis"},

		"exec above upstream":  {func(p *patient) { p.worker().EnvVars["exec_timeout"] = "90s" }, "timeouts", findFail, "exec_timeout 1m30s, but the gateway gives up after 1m0s"},
		"write below exec":     {func(p *patient) { p.worker().EnvVars["write_timeout"] = "59" }, "timeouts", findFail, "write_timeout 59s cuts off"},
		"read below exec":      {func(p *patient) { p.worker().EnvVars["read_timeout"] = "10s" }, "timeouts", findFail, "read_timeout 10s cuts off"},
		"write is exec":        {func(p *patient) { p.worker().EnvVars["write_timeout"] = "60" }, "timeouts", findWarn, "write_timeout is exec_timeout, 1m0s"},
		"no duration":          {func(p *patient) { p.worker().EnvVars["exec_timeout"] = "soon" }, "timeouts", findFail, `exec_timeout="soon"`},
		"timeout above exec":   {func(p *patient) { p.worker().EnvVars["exec_timeout"] = "20s" }, "timeouts", findFail, "exec_timeout 20s ends attempts before farmhand.timeout 55s"},
		"watchdog's own":       {func(p *patient) { p.worker().EnvVars = nil }, "timeouts", findFail, "the watchdog's own exec_timeout, 30s, ends attempts"},
		"held for too long":    {func(p *patient) { p.functions[0].EnvVars["farmhand_max_wait"] = "60s" }, "timeouts", findFail, "held for 1m0s"},
		"an invalid setting":   {func(p *patient) { set(p.worker().Annotations, "farmhand.slots", "many") }, "settings", findFail, "farmhand.slots"},
		"a second scaler":      {func(p *patient) { delete(*p.worker().Labels, "com.openfaas.scale.factor") }, "scalers", findWarn, "thumbnail: the gateway's own scaler"},
		"an idler":             {func(p *patient) { set(p.worker().Labels, "com.openfaas.scale.zero", "true") }, "scalers", findWarn, "thumbnail: the idler"},
		"foreign changes":      {func(p *patient) { p.receipt().Foreign = &controller.Foreign{From: 4, To: 1} }, "scalers", findWarn, "changed its count, 1 time of late"},
		"a clamp":              {func(p *patient) { p.receipt().Acted.ReadBack = 2 }, "clamp", findWarn, "made 2 of 4 replicas"},
		"the clamp of CE":      {func(p *patient) { p.servedBy = "openfaas-ce/0.27" }, "clamp", findWarn, "may have 20 replicas, but OpenFaaS CE gives at most 5"},
		"zero on CE":           {func(p *patient) { p.servedBy = "openfaas-ce/0.27"; set(p.worker().Annotations, "farmhand.min", "0") }, "clamp", findWarn, "may go to 0"},
		"random balancing":     {func(p *patient) { p.receipt().Observation.Long.Busy = 400 }, "balancing", findWarn, "29 % of the calls to 4 replicas"},
		"the gateway's clock":  {func(p *patient) { p.skew = -time.Minute }, "clock", findWarn, "the gateway's clock is -"},
		"the controller's":     {func(p *patient) { p.overview.Farms[0].Last.At = time.Now().Add(-time.Minute) }, "clock", findWarn, "from Redis'"},
		"no queue":             {func(p *patient) { p.noQueue = true }, "async", findFail, "no servers"},
		"no queue-worker":      {func(p *patient) { p.noWorker = true }, "async", findFail, "taken, and not made within 300ms"},
		"async unseen":         {func(p *patient) { p.controlled = http.StatusBadGateway }, "async", findWarn, "not looked at"},
		"redis unseen":         {func(*patient) {}, "redis", findWarn, "cannot be seen from here"},
		"no traffic to see of": {func(p *patient) { p.receipt().Observation.Long.Starts = 3 }, "balancing", findOK, "not seen"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient()
			test.spoil(p)
			code, list := examined(t, serve(t, p), keys(t)...)
			if !has(list, test.check, test.status, test.detail) {
				t.Errorf("want %s %s: %s; got %+v", test.status, test.check, test.detail, list)
			}
			if test.status == findFail && code != exitFailed {
				t.Errorf("exit code %d", code)
			}
			for _, f := range list { // one cause is told once
				if f.Status == findFail && f.Check != test.check && test.status == findFail {
					t.Errorf("beside it: %+v", f)
				}
			}
		})
	}
}

// A gateway that is not there ends the examination.
func TestDoctorWithoutAGateway(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	code, list := examined(t, srv.URL, keys(t)...)
	if code != exitFailed || len(list) != 1 || !has(list, "gateway", findFail, "no connection") {
		t.Errorf("%d %+v", code, list)
	}
}

// What is wrong with Redis is found in Redis itself.
func TestDoctorFindsRedis(t *testing.T) {
	for name, test := range map[string]struct {
		conf                  []string
		check, status, detail string
	}{
		"keeps nothing":   {[]string{"appendonly no"}, "durability", findFail, "keeps nothing on disk"},
		"drops tasks":     {[]string{"maxmemory-policy allkeys-lru"}, "eviction", findFail, "allkeys-lru"},
		"no bound":        {nil, "eviction", findWarn, "no maxmemory"},
		"nearly full":     {[]string{"maxmemory 1100kb", "maxmemory-policy noeviction"}, "eviction", findWarn, "of its memory is used"},
		"needs a key":     {[]string{"requirepass hush"}, "redis", findFail, "NOAUTH"},
		"synced at once":  {[]string{"appendfsync always"}, "durability", findOK, "disk: a write survives a power failure"},
		"CONFIG is taken": {[]string{`rename-command CONFIG ""`}, "durability", findOK, "process"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, test.conf...)
			_, list := examined(t, serve(t, newPatient()), append(keys(t), "--redis", "redis://"+server.Addr)...)
			if !has(list, test.check, test.status, test.detail) {
				t.Errorf("want %s %s: %s; got %+v", test.status, test.check, test.detail, list)
			}
		})
	}
	for url, detail := range map[string]string{"redis://127.0.0.1:1": "connection refused", "http://:pass@x": "not valid"} {
		code, list := examined(t, serve(t, newPatient()), append(keys(t), "--redis", url)...)
		if code != exitFailed || !has(list, "redis", findFail, detail) || strings.Contains(fmt.Sprint(list), "pass@") {
			t.Errorf("%s: %d %+v", url, code, list)
		}
	}
}

// The login is that of faas-cli, where no other is given; a broken file is named,
// and its content is not shown.
func TestDoctorKnowsFaasCLI(t *testing.T) {
	p := newPatient()
	url := serve(t, p)
	t.Setenv("OPENFAAS_CONFIG", t.TempDir())
	file := filepath.Join(os.Getenv("OPENFAAS_CONFIG"), "config.yml")
	login := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token := keys(t)[2:]
	login("auths:\n- gateway: http://elsewhere\n  auth: basic\n  token: eDp5\n- gateway: " + url + "/\n  auth: basic\n  token: YWRtaW46aHVudGVyMg==\n")
	if _, list := examined(t, url, token...); !has(list, "login", findOK, "4 functions") {
		t.Errorf("%+v", list)
	}
	for _, text := range []string{"auths: s3same", "auths:\n- gateway: " + url + "\n  auth: basic\n  token: s3same%\n"} {
		login(text)
		out, code := doctorSays(t, append([]string{"--gateway", url}, token...)...)
		if code != exitFailed || !strings.Contains(out, file) || strings.Contains(out, "s3same") {
			t.Errorf("%d %s", code, out)
		}
	}
	login("auths: []\n")
	if code, list := examined(t, url, token...); code != exitFailed || !has(list, "login", findFail, "") {
		t.Errorf("%d %+v", code, list)
	}
}

// Without --json a line says what was found, and the next what mends it.
func TestDoctorSpeaks(t *testing.T) {
	p := newPatient()
	p.worker().EnvVars["exec_timeout"], p.worker().EnvVars["read_timeout"], p.worker().EnvVars["write_timeout"] = "90s", "95s", "95s"
	out, code := doctorSays(t, append([]string{"--gateway", serve(t, p)}, keys(t)...)...)
	for _, want := range []string{
		"ok    async       a call was taken",
		"fail  timeouts    thumbnail: exec_timeout 1m30s, but the gateway gives up after 1m0s\n                  → lower exec_timeout",
		"1 failed, 1 to look at\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if out, code := doctorSays(t, "--gateway", "ftp://x"); code != exitUsage {
		t.Errorf("%d %s", code, out)
	}
}
