//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/ir"
)

// log writes messages for people, up to a level ([Options.Debug]).
type log struct {
	level int
	mu    sync.Mutex
	to    io.Writer
}

func newLog(o *Options) *log {
	l := &log{level: o.Debug, to: o.Log}
	if l.to == nil {
		l.to = os.Stderr
	}
	return l
}

// at reports whether messages of a level are written.
func (l *log) at(level int) bool { return l.level >= level }

// say writes a message of a level.
func (l *log) say(level int, format string, args ...any) {
	if !l.at(level) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, "mlxc: metal: "+format+"\n", args...)
}

// warn writes a warning; it is used if [Options.Warn] is nil.
func (l *log) warn(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, "mlxc: warning: %s\n", text)
}

// device logs what a device is and how it is set up, after it was opened.
func (l *log) device(d *Device) {
	if !l.at(1) {
		return
	}
	l.say(1, "%s", d.Description)
	residency := "off"
	if d.resident.on() {
		residency = fmt.Sprintf("a residency set, kept for %v", d.resident.keep)
	}
	l.say(1, "plan %s, residency: %s, references are %s", d.options.Plan, residency, map[bool]string{false: "retained", true: "not retained"}[d.options.Unretained])
}

// committed logs the command buffers first to end, without end, of a plan after they were committed.
func (l *log) committed(s *sending, first, end int, took time.Duration) {
	if !l.at(2) {
		return
	}
	for i := first; i < end; i++ {
		b := &s.plan.Buffers[i]
		name := b.Label
		if name == "" {
			name = s.plan.Graph.Name
		}
		l.say(2, "command buffer %q (%d of %d): %d dispatches, %d barriers", name, i+1, len(s.plan.Buffers), b.Dispatches, b.Barriers)
		if l.at(3) {
			s.eachDispatch(i, func(kernel string, g *plan.Grid, size [3]uint64) {
				l.say(3, "  %s %s of %v", kernel, grid(g, size), g.Group)
			})
		}
	}
	l.say(2, "%d command buffers encoded and committed in %v", end-first, took.Round(time.Microsecond))
}

// grid formats the size of a dispatch's grid for people.
func grid(g *plan.Grid, size [3]uint64) string {
	unit := "threads"
	if g.Unit != ir.Threads {
		unit = "threadgroups"
	}
	return fmt.Sprintf("%d×%d×%d %s", size[0], size[1], size[2], unit)
}

// eachDispatch calls f for each dispatch of command buffer i, with its grid in this replay. A grid that the
// GPU takes from memory is given as the largest that the graph allows.
func (s *sending) eachDispatch(i int, f func(kernel string, g *plan.Grid, size [3]uint64)) {
	p, kernel := s.plan, ""
	vars := p.Vars
	for n := p.Buffers[i].First; n < p.Buffers[i].End; n++ {
		o := &p.Ops[n]
		for len(vars) > 0 && vars[0].Op < n {
			vars = vars[1:]
		}
		switch o.Kind {
		case plan.SetPipeline:
			kernel = kernelOf(p, &p.Pipelines[o.Index])
		case plan.Dispatch, plan.DispatchIndirect:
			if o.Next && !s.next {
				continue
			}
			g := &p.Grids[o.Index]
			size := g.Size
			for k := 0; k < len(vars) && vars[k].Op == n; k++ {
				if part := vars[k].Part; part >= plan.Extent0 {
					size[part-plan.Extent0] = vars[k].Value(s.params)
				}
			}
			f(kernel, g, size)
		}
	}
}

// kernelOf returns the name of the kernel that a pipeline runs.
func kernelOf(p *plan.Plan, x *plan.Pipeline) string {
	switch x.Source {
	case plan.FromGraph:
		return p.Graph.Kernels[x.Kernel].Function
	case plan.Copy:
		return "copy"
	case plan.Fill:
		return "fill"
	}
	return "guard"
}
