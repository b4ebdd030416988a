package workload

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// fields reads a mapping of a scenario file: a field is asked for by its name,
// and what was never asked for is refused. It keeps the first error, so that a
// reader need not look after each field.
type fields struct {
	file   *source
	what   string // for errors: "farm", "poisson"
	line   int
	values map[string]field
	asked  []string
	err    error
}

type field struct {
	line int
	node ast.Node
}

// source is the file that is read.
type source struct {
	name    string // for errors
	folder  string // that files named in it are relative to
	options Options
}

func (s *source) wrong(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", s.name, line, fmt.Errorf(format, args...))
}

// parse reads YAML that has one document.
func (s *source) parse(text []byte) (ast.Node, error) {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			return nil, s.wrong(at.GetToken().Position.Line, "%s", at.GetMessage())
		}
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if len(tree.Docs) == 0 || len(tree.Docs) == 1 && tree.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s: the file is empty: want a scenario, see docs/scenarios.md", s.name)
	}
	if len(tree.Docs) > 1 {
		return nil, fmt.Errorf("%s: %d YAML documents: want one, see docs/scenarios.md", s.name, len(tree.Docs))
	}
	return tree.Docs[0].Body, nil
}

// fields makes a reader of a mapping. A node that is none is an error later on.
func (s *source) fields(node ast.Node, what string) *fields {
	f := &fields{file: s, what: what, line: line(node), values: map[string]field{}}
	var entries []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		f.err = s.wrong(f.line, "%s: %s: want a mapping of fields", what, show(node))
	}
	for _, e := range entries {
		name := e.Key.GetToken().Value
		if _, twice := f.values[name]; twice && f.err == nil {
			f.err = s.wrong(line(e.Key), "%s: %s stands twice: want it once", what, name)
		}
		f.values[name] = field{line: line(e.Key), node: e.Value}
	}
	return f
}

// done says what was wrong with the mapping; a field nobody asked for first, as it
// may be the misspelt name of one that is missing.
func (f *fields) done() error {
	var unknown []string
	for name := range f.values {
		if !slices.Contains(f.asked, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return f.err
	}
	slices.SortFunc(unknown, func(a, b string) int { return f.values[a].line - f.values[b].line })
	want := strings.Join(f.asked, ", ")
	if want == "" {
		want = "none"
	}
	return f.file.wrong(f.values[unknown[0]].line, "%s has no field %q: want %s", f.what, unknown[0], want)
}

// fail keeps the first error, at a line.
func (f *fields) fail(line int, format string, args ...any) {
	if f.err == nil {
		f.err = f.file.wrong(line, f.what+": "+format, args...)
	}
}

// keep keeps the first error as it is.
func (f *fields) keep(err error) {
	if f.err == nil {
		f.err = err
	}
}

// get asks for a field, and says whether it is there.
func (f *fields) get(name string) (field, bool) {
	if !slices.Contains(f.asked, name) {
		f.asked = append(f.asked, name)
	}
	v, ok := f.values[name]
	return v, ok
}

// need asks for a field that must be there.
func (f *fields) need(name string) (field, bool) {
	v, ok := f.get(name)
	if !ok {
		f.fail(f.line, "%s is missing", name)
	}
	return v, ok
}

// has says whether a field is there.
func (f *fields) has(name string) bool {
	_, ok := f.get(name)
	return ok
}

// bounds are the values that a number may have.
type bounds struct {
	want string
	ok   func(x float64) bool
}

var (
	positive = bounds{"a number above 0", func(x float64) bool { return x > 0 }}
	atLeast0 = bounds{"a number, 0 or more", func(x float64) bool { return x >= 0 }}
	anything = bounds{"a number", func(float64) bool { return true }}
	perSec   = bounds{"a number, 0 or more, up to 1e+06 per second", func(x float64) bool { return x >= 0 && x <= 1e6 }}
	share    = bounds{"a share from 0 to 1", func(x float64) bool { return x >= 0 && x <= 1 }}
)

// required stands for a default that there is none of.
var required = math.NaN()

// number asks for a number.
func (f *fields) number(name string, otherwise float64, b bounds) float64 {
	v, ok := f.ask(name, otherwise)
	if !ok {
		return otherwise
	}
	x, isNumber := numeric(v.node)
	if !isNumber || !b.ok(x) {
		f.fail(v.line, "%s %s: want %s", name, show(v.node), b.want)
	}
	return x
}

// seconds asks for a time: a number of seconds, or a duration such as 150ms.
func (f *fields) seconds(name string, otherwise float64, b bounds) float64 {
	v, ok := f.ask(name, otherwise)
	if !ok {
		return otherwise
	}
	x, isTime := duration(v.node)
	if !isTime || !b.ok(x) {
		f.fail(v.line, "%s %s: want seconds (%s) or a duration such as 150ms", name, show(v.node), b.want)
	}
	return x
}

// ask asks for a field, which must be there unless there is a default.
func (f *fields) ask(name string, otherwise float64) (field, bool) {
	if math.IsNaN(otherwise) {
		return f.need(name)
	}
	return f.get(name)
}

// integer asks for a whole number, lo or more.
func (f *fields) integer(name string, otherwise float64, lo int) int {
	x := f.number(name, otherwise, bounds{fmt.Sprintf("a whole number, %d or more", lo), func(x float64) bool {
		return x == math.Trunc(x) && x >= float64(lo) && x <= 1e9
	}})
	if math.IsNaN(x) {
		return lo
	}
	return int(x)
}

// flag asks for true or false.
func (f *fields) flag(name string, otherwise bool) bool {
	v, ok := f.get(name)
	if !ok {
		return otherwise
	}
	if n, ok := v.node.(*ast.BoolNode); ok {
		return n.Value
	}
	f.fail(v.line, "%s %s: want true or false", name, show(v.node))
	return otherwise
}

// text asks for a text, one of those allowed if any are named.
func (f *fields) text(name, otherwise string, allowed ...string) string {
	v, ok := f.get(name)
	if !ok {
		return otherwise
	}
	s, isText := v.node.(*ast.StringNode)
	if !isText || len(allowed) > 0 && !slices.Contains(allowed, s.Value) {
		want := "a text"
		if len(allowed) > 0 {
			want = "one of " + strings.Join(allowed, ", ")
		}
		f.fail(v.line, "%s %s: want %s", name, show(v.node), want)
		return otherwise
	}
	return s.Value
}

// list asks for a sequence that must be there, with so many items at least.
func (f *fields) list(name string, least int) []ast.Node {
	v, ok := f.need(name)
	if !ok {
		return nil
	}
	s, isList := v.node.(*ast.SequenceNode)
	if !isList || len(s.Values) < least {
		f.fail(v.line, "%s: want a list of %d or more", name, least)
		return nil
	}
	return s.Values
}

// numbers asks for a list of numbers.
func (f *fields) numbers(name string, least int, b bounds) []float64 {
	var all []float64
	for _, node := range f.list(name, least) {
		x, ok := numeric(node)
		if !ok || !b.ok(x) {
			f.fail(line(node), "%s: %s: want %s", name, show(node), b.want)
			return nil
		}
		all = append(all, x)
	}
	return all
}

// numeric reads a number; not NaN or infinite.
func numeric(node ast.Node) (float64, bool) {
	switch n := node.(type) {
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return float64(v), true
		case uint64:
			return float64(v), true
		}
	case *ast.FloatNode:
		return n.Value, !math.IsInf(n.Value, 0) && !math.IsNaN(n.Value)
	case *ast.StringNode: // 1e-3 has no point, and is a text to this parser
		if n.Token.Type == token.StringType {
			x, err := strconv.ParseFloat(n.Value, 64)
			return x, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
		}
	}
	return 0, false
}

// duration reads seconds, or a text such as 150ms.
func duration(node ast.Node) (float64, bool) {
	if s, ok := node.(*ast.StringNode); ok {
		if d, err := time.ParseDuration(s.Value); err == nil {
			return d.Seconds(), true
		}
	}
	return numeric(node)
}

// line of a node in its file.
func line(node ast.Node) int {
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	if m, ok := node.(*ast.MappingValueNode); ok {
		node = m.Key
	}
	if node == nil || node.GetToken() == nil || node.GetToken().Position == nil {
		return 1
	}
	return node.GetToken().Position.Line
}

// show is a value as it was written, for errors.
func show(node ast.Node) string {
	switch node.(type) {
	case nil:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	const most = 60
	s := fmt.Sprintf("%q", node.GetToken().Value)
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}
