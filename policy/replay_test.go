package policy

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// recording is a file of testdata/golden: what a published controller was given and
// what it decided. Its README tells the format.
type recording struct {
	header  map[string]string
	columns map[string]int
	rows    [][]string
	row     []string // the one that is read
	t       *testing.T
}

func open(t *testing.T, path string) *recording {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{header: map[string]string{}, columns: map[string]int{}, t: t}
	var table strings.Builder
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": "); ok && strings.HasPrefix(line, "# ") {
			r.header[key] = strings.TrimSpace(value)
			continue
		}
		table.WriteString(line)
	}
	rows, err := csv.NewReader(strings.NewReader(table.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range rows[0] {
		r.columns[name] = i
	}
	if r.rows = rows[1:]; strconv.Itoa(len(r.rows)) != r.header["decisions"] {
		t.Fatalf("%d decisions, want %s", len(r.rows), r.header["decisions"])
	}
	return r
}

// number is a number of the header.
func (r *recording) number(key string) float64 { return r.parse(key, r.header[key]) }

// text is a field of the row.
func (r *recording) text(column string) string {
	i, ok := r.columns[column]
	if !ok {
		r.t.Fatalf("no column %s", column)
	}
	return r.row[i]
}

// field is a number of the row, unknown where it is empty.
func (r *recording) field(column string) Maybe {
	if r.text(column) == "" {
		return Unknown
	}
	return Maybe(r.parse(column, r.text(column)))
}

func (r *recording) whole(column string) int { return int(r.field(column)) }

func (r *recording) parse(what, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
	return v
}

// replay plays each file of a folder, a sub-test each.
func replay(t *testing.T, folder string, want int, play func(r *recording)) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", folder, "*.csv"))
	if err != nil || len(files) != want {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".csv"), func(t *testing.T) { play(open(t, file)) })
	}
}
