package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// handlers fills the handler types of faas-provider: the platform is a provider
// behind a gateway, in one process.
func (p *Platform) handlers() types.FaaSHandlers {
	return types.FaaSHandlers{
		FunctionProxy:  p.invoke,
		FunctionLister: p.serveList,
		DeployFunction: p.serveDeploy,
		UpdateFunction: p.serveUpdate,
		DeleteFunction: p.serveDelete,
		FunctionStatus: p.serveStatus,
		ScaleFunction:  p.serveScale,
		Secrets:        p.serveSecrets,
		Logs:           p.serveLogs,
		Health:         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
		Info:           p.serveInfo,
		ListNamespaces: func(w http.ResponseWriter, _ *http.Request) { writeBody(w, []string{Namespace}) },
	}
}

func (p *Platform) serveInfo(w http.ResponseWriter, _ *http.Request) {
	version := &types.VersionInfo{Release: p.config.Version, SHA: revision()}
	writeBody(w, struct {
		Provider types.ProviderInfo `json:"provider"`
		Version  *types.VersionInfo `json:"version"`
		Arch     string             `json:"arch"`
		Async    *AsyncCalls        `json:"async,omitempty"` // beyond OpenFaaS
	}{types.ProviderInfo{Name: "farmhand", Orchestration: "processes", Version: version}, version, arch(), p.async.calls()})
}

// revision is the commit the program was built from, or "".
func revision() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func arch() string {
	if runtime.GOARCH == "amd64" {
		return "x86_64"
	}
	return runtime.GOARCH
}

func (p *Platform) serveList(w http.ResponseWriter, r *http.Request) {
	if err := checkNamespace(r.URL.Query().Get("namespace"), http.StatusBadRequest); err != nil {
		writeError(w, p, err)
		return
	}
	list := []types.FunctionStatus{}
	for _, f := range p.list() {
		s := f.status()
		s.InvocationCount = float64(f.calls.Load())
		list = append(list, s)
	}
	writeBody(w, list)
}

func (p *Platform) serveStatus(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	f, err := p.find(r.PathValue("name"), query.Get("namespace"))
	if err != nil {
		writeError(w, p, err)
		return
	}
	if u := query.Get("usage"); u == "1" || u == "true" {
		writeBody(w, f.detail())
		return
	}
	writeBody(w, f.status())
}

func (p *Platform) serveDeploy(w http.ResponseWriter, r *http.Request) { p.serveApply(w, r, false) }
func (p *Platform) serveUpdate(w http.ResponseWriter, r *http.Request) { p.serveApply(w, r, true) }

func (p *Platform) serveApply(w http.ResponseWriter, r *http.Request, mustExist bool) {
	// The program may have to be built first, so it takes the time it takes.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(buildTime))
	ctx, cancel := context.WithTimeout(r.Context(), buildTime)
	defer cancel()
	var d types.FunctionDeployment
	err := readBody(r, &d, `{"service":"NAME","image":"IMAGE"}`)
	if err == nil {
		d.Namespace, err = bodyNamespace(d.Namespace, r)
	}
	if err == nil {
		d.Service = strings.TrimSuffix(d.Service, "."+Namespace)
		err = p.apply(ctx, d, mustExist)
	}
	if err != nil {
		writeError(w, p, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (p *Platform) serveDelete(w http.ResponseWriter, r *http.Request) {
	var d types.DeleteFunctionRequest
	err := readBody(r, &d, `{"functionName":"NAME"}`)
	if err == nil {
		d.Namespace, err = bodyNamespace(d.Namespace, r)
	}
	if err == nil && d.FunctionName == "" {
		err = badRequest(`functionName: missing; want {"functionName":"NAME"}`)
	}
	if err == nil {
		err = p.remove(d.FunctionName)
	}
	if err != nil {
		writeError(w, p, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (p *Platform) serveScale(w http.ResponseWriter, r *http.Request) {
	var s types.ScaleServiceRequest
	name := r.PathValue("name")
	err := readBody(r, &s, `{"serviceName":"NAME","replicas":2}`)
	if err != nil && !errors.Is(err, errTooLarge) {
		err = badRequest("Error unmarshalling request body: %v", err)
	}
	if err == nil {
		s.Namespace, err = bodyNamespace(s.Namespace, r)
	}
	if err == nil && s.ServiceName != "" && strings.TrimSuffix(s.ServiceName, "."+Namespace) != strings.TrimSuffix(name, "."+Namespace) {
		err = badRequest("serviceName %q differs from the path's %q", s.ServiceName, name)
	}
	if err == nil {
		err = p.scale(name, s.Replicas)
	}
	if err != nil {
		writeError(w, p, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// bodyNamespace returns the namespace of a write: of the body, or of the query,
// where a gateway's own calls have it.
func bodyNamespace(body string, r *http.Request) (string, error) {
	if body == "" {
		body = r.URL.Query().Get("namespace")
	}
	return Namespace, checkNamespace(body, http.StatusBadRequest)
}

func checkNamespace(ns string, status int) error {
	if ns != "" && ns != Namespace {
		return refuse(status, "namespace %q: this platform has only %s", ns, Namespace)
	}
	return nil
}

// bareName strips the namespace from a name.
func bareName(name string) (string, error) {
	short, ns, _ := strings.Cut(name, ".")
	return short, checkNamespace(ns, http.StatusNotFound)
}

var errTooLarge = refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", maxSystemBody)

// readBody reads a JSON object; want is one, for the error.
func readBody(r *http.Request, v any, want string) error {
	in := json.NewDecoder(r.Body)
	err := in.Decode(v)
	if err == nil {
		if _, more := in.Token(); more == nil {
			err = errors.New("there is more after it")
		} else if more != io.EOF {
			err = more
		}
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return errTooLarge
	}
	if overdue(err) {
		return refuse(http.StatusRequestTimeout, "%v", bodyProblem(err))
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return badRequest("%s: %s is no %s; want JSON such as %s", kind.Field, kind.Value, inWords(kind.Type), want)
	}
	if err != nil {
		return badRequest("the body is no JSON object (%v); want one such as %s", err, want)
	}
	return nil
}

// inWords names a type of a field as a client knows it.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text in quotes"
	case reflect.Uint64:
		return "whole number of 0 or more"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	default:
		return "object"
	}
}

func writeBody(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
}

func writeError(w http.ResponseWriter, p *Platform, err error) {
	var r *refusal
	if !errors.As(err, &r) {
		p.log.Error("a management call failed", "error", err)
		r = &refusal{http.StatusInternalServerError, fmt.Sprintf("the platform failed: %v", err)}
	}
	http.Error(w, shortened(r.text), r.status)
}

// maxErrorText bounds an error's text: it may quote what the client sent.
const maxErrorText = 8 << 10

func shortened(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + " …"
}
