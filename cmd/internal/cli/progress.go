package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows on a terminal which share, from 0 to 1, of some work is done. It
// appears once the work has taken half a second. End must be called.
type Progress struct {
	bar     *progressbar.ProgressBar
	w       io.Writer
	what    string
	started time.Time
	graph   string // of the last call of Graph
}

const (
	steps  = 1000
	appear = 500 * time.Millisecond
)

// StartProgress begins to watch work that is described by what.
func StartProgress(w io.Writer, what string) *Progress {
	p := &Progress{w: w, what: what, started: time.Now()}
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		p.w = nil
	}
	return p
}

// Set says which share of the work is done.
func (p *Progress) Set(done float64) {
	if p.w == nil || p.bar == nil && time.Since(p.started) < appear {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions(steps, progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(p.what),
			progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	_ = p.bar.Set(int(done * steps)) // failing to draw the bar is no error
}

// Graph is Set for work on several graphs, one after another, each of which has its own half second.
func (p *Progress) Graph(name string, done float64) {
	if p.graph != "" && p.graph != name {
		p.End()
		p.started = time.Now()
	}
	p.graph = name
	p.Set(done)
}

// End removes the bar.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
