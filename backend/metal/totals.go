//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/plan"
)

// Totals counts what a device has done since it was opened.
type Totals struct {
	CommandBuffers, Failed int // command buffers that have ended, and how many of them with an error
	Dispatches, Barriers   int // in these command buffers
	Pipelines              int
	Making                 time.Duration // the sum of times to make pipelines, compilation included
	GPU                    time.Duration // the sum over command buffers from GPUStartTime to GPUEndTime
	Waited                 time.Duration // for how long goroutines waited for command buffers, not part of GPU
	// Buffers are the times of command buffers by label. Commands are those of commands, if profiling was
	// asked for ([Options.Profile], [backend.Program.Profile]). The longest come first.
	Buffers, Commands []backend.Total
}

// counts adds up the Totals of a device.
type counts struct {
	mu sync.Mutex
	Totals
	buffers, commands map[string]*backend.Total
}

func newCounts() *counts {
	return &counts{buffers: map[string]*backend.Total{}, commands: map[string]*backend.Total{}}
}

func add(m map[string]*backend.Total, name string, n int, d time.Duration) {
	t := m[name]
	if t == nil {
		t = &backend.Total{Name: name}
		m[name] = t
	}
	t.Count += n
	t.Time += d
}

// pipeline counts a pipeline that took so long to make.
func (c *counts) pipeline(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Pipelines++
	c.Making += took
}

// made counts and logs a pipeline that was made.
func (d *Device) made(function string, p *pipeline, took time.Duration) {
	d.counts.pipeline(took)
	d.log.say(1, "pipeline %s made in %v: threadgroups of at most %d threads, %d bytes of threadgroup memory of its own", function, took.Round(time.Microsecond), p.threads, p.static)
}

// buffer counts command buffer i of a plan, which has ended; t is its outcome.
func (c *counts) buffer(p *plan.Plan, i int, t *settled) {
	b := &p.Buffers[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.CommandBuffers++
	if t.err != nil {
		c.Failed++
	}
	c.Dispatches += int(b.Dispatches)
	c.Barriers += int(b.Barriers)
	c.GPU += t.Duration()
	c.Waited += t.waited
	add(c.buffers, cmp.Or(b.Label, p.Graph.Name), 1, t.Duration())
}

// sampled adds the times of the commands of an operation.
func (c *counts) sampled(t *backend.Times) {
	if len(t.Commands) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range t.ByLabel() {
		add(c.commands, x.Name, x.Count, x.Time)
	}
}

// Totals returns what the device has done so far.
func (d *Device) Totals() Totals {
	c := d.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.Totals
	t.Buffers, t.Commands = longest(c.buffers), longest(c.commands)
	return t
}

func longest(m map[string]*backend.Total) []backend.Total {
	out := make([]backend.Total, 0, len(m))
	for _, t := range m {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b backend.Total) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// tell logs the totals when the device is closed, at level 1 or, with Options.Profile, always.
func (d *Device) tell() {
	level := 1
	if d.options.Profile {
		level = 0
	}
	if !d.log.at(level) {
		return
	}
	t := d.Totals()
	d.log.say(level, "%d command buffers with %d dispatches and %d barriers, %d of them failed; GPU %v, waited for %v; %d pipelines made in %v",
		t.CommandBuffers, t.Dispatches, t.Barriers, t.Failed, t.GPU.Round(time.Microsecond), t.Waited.Round(time.Microsecond), t.Pipelines, t.Making.Round(time.Microsecond))
	for _, l := range []struct {
		what string
		of   []backend.Total
	}{{"command buffers", t.Buffers}, {"commands", t.Commands}} {
		for _, x := range l.of {
			d.log.say(level, "%12v  %6d × %s (%s)", x.Time.Round(time.Microsecond), x.Count, x.Name, l.what)
		}
	}
}
