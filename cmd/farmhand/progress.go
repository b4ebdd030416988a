package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on a terminal, and a plain line now and then elsewhere.
type progress struct {
	bar   *progressbar.ProgressBar
	w     io.Writer
	what  string
	total int
	n     int
	told  time.Time
}

const tellEvery = 2 * time.Second

func newProgress(w io.Writer, what string, total int) progress {
	p := progress{w: w, what: what, total: total, told: time.Now()}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		most := int64(total)
		if total == 0 {
			most = -1
		}
		p.bar = progressbar.NewOptions64(most, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p
}

func (p *progress) add(n int) {
	p.n += n
	switch {
	case p.bar != nil:
		_ = p.bar.Add(n) // only a picture
	case p.w != nil && time.Since(p.told) >= tellEvery:
		p.told = time.Now()
		p.tell()
	}
}

func (p *progress) tell() {
	if p.total > 0 {
		fmt.Fprintf(p.w, "%s: %d of %d\n", p.what, p.n, p.total)
		return
	}
	fmt.Fprintf(p.w, "%s: %d\n", p.what, p.n)
}

// finish takes the picture away.
func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Clear() // only a picture
	}
}
