package profile

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/cmd/internal/part"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/replay"
)

// By says whence the times of kernels are known.
type By string

// The ways.
const (
	ByCommands By = "commands" // the device has taken the times of commands
	ByAblation By = "ablation" // replays were timed with kernels left out
	ByNothing  By = "nothing"  // only whole replays were timed
)

// Report is the measurement of one or more graphs on one device.
type Report struct {
	Title   string // the name of the file
	Device  string
	About   string // more about the device
	Program string // the version of the program
	Model   cost.Model
	// Fitted says that the model was made of these measurements: see the package's comment.
	Fitted bool
	Graphs []*Graph
	// Notes are what a reader should know of how it was measured.
	Notes []string
}

// MostCommands bounds how many times of commands a graph keeps. Replays after that are timed, and not kept, but for a graph's first.
const MostCommands = 1 << 18

// Graph holds the measurements of one graph.
type Graph struct {
	IR *ir.Graph
	// Unprofiled are durations of replays of which no commands were timed; nil if there were none.
	Unprofiled []time.Duration
	// Ablated has the times of kernels where commands have none.
	Ablated []Ablated

	full     *ir.Graph // with the effects that kernels declare
	commands []ir.Command
	number   map[ir.ID]int32
	kernels  []string // by command
	epochs   []epoch
	epochOf  []int32 // by command
	replays  []replay.Timing
	timed    int // times of commands that are kept
	dropped  int // replays that are not kept
}

// New returns a Graph without measurements.
func New(ctx context.Context, g *ir.Graph) *Graph {
	out := &Graph{IR: g, full: optimize.Annotated(ctx, g), number: map[ir.ID]int32{}, epochs: epochsOf(g)}
	out.commands = part.Commands(out.full)
	for i, c := range out.commands {
		out.number[c.Num()] = int32(i)
		out.kernels = append(out.kernels, KernelOf(out.full, c))
	}
	out.epochOf = make([]int32, len(out.commands))
	for i, e := range out.epochs {
		for _, c := range e.commands {
			out.epochOf[c] = int32(i)
		}
	}
	return out
}

// KernelOf names what a command is summed up under.
func KernelOf(g *ir.Graph, c ir.Command) string {
	if d, ok := c.(*ir.Dispatch); ok {
		return g.Kernels[d.Kernel].Function
	}
	return "(copy or fill)"
}

// Add adds the times of one replay.
func (g *Graph) Add(t replay.Timing) {
	if len(g.replays) > 0 && (g.timed+len(t.Commands) > MostCommands || len(g.replays) >= MostCommands) {
		g.dropped++
		return
	}
	g.timed += len(t.Commands)
	g.replays = append(g.replays, t)
}

// Fit adds the measurements to a fit.
func (g *Graph) Fit(f *cost.Fit) {
	works := g.works(cost.Model{Cores: 1, Bandwidth: 1, Rate: 1})
	if g.by() == ByAblation && len(g.replays) > 0 {
		g.fitAblated(f, works(g.replays[0].Params))
		return
	}
	for i := range g.replays {
		t := &g.replays[i]
		if len(t.Commands) == 0 {
			continue
		}
		work, beside := works(t.Params), t.Duration()
		for k := range t.Commands {
			x := &t.Commands[k]
			beside -= x.Duration()
			n, ok := g.number[x.ID]
			if !ok {
				continue
			}
			if _, ok := g.commands[n].(*ir.Dispatch); ok {
				f.Run(g.kernels[n], work[n], cost.Seconds(x.Duration().Seconds()))
			}
		}
		f.Replay(cost.Seconds(beside.Seconds()), g.IR.Stats().Barriers, cost.Seconds(t.Encode.Seconds()), len(t.Commands))
	}
}

// fitAblated is Fit for times by ablation: each of a kernel's dispatches counts as an equal part of its time.
func (g *Graph) fitAblated(f *cost.Fit, work []cost.Work) {
	var whole, sum time.Duration
	for i := range g.replays {
		whole += g.replays[i].Duration()
	}
	whole /= time.Duration(len(g.replays))
	for _, a := range g.Ablated {
		var mean cost.Work
		n := 0.0
		for i, k := range g.kernels {
			if _, ok := g.commands[i].(*ir.Dispatch); ok && k == a.Kernel {
				mean.Bytes, mean.Operations, n = mean.Bytes+work[i].Bytes, mean.Operations+work[i].Operations, n+1
			}
		}
		sum += max(0, a.Takes)
		if n > 0 && a.Takes > 0 {
			mean.Bytes, mean.Operations = mean.Bytes/n, mean.Operations/n
			f.Run(a.Kernel, mean, cost.Seconds(a.Takes.Seconds()/n))
		}
	}
	f.Replay(cost.Seconds((whole - sum).Seconds()), g.IR.Stats().Barriers, 0, 0)
}

// works returns a function from values of the params to the work of each command.
func (g *Graph) works(m cost.Model) func(params []uint32) []cost.Work {
	known := map[string][]cost.Work{}
	return func(params []uint32) []cost.Work {
		key := make([]byte, 0, 4*len(g.full.Params))
		for _, v := range params {
			key = binary.LittleEndian.AppendUint32(key, v)
		}
		out, ok := known[string(key)]
		if ok {
			return out
		}
		e := m.For(g.full)
		if len(params) == len(g.full.Params) {
			e = m.At(g.full, params)
		}
		for _, c := range g.commands {
			out = append(out, e.Work(c))
		}
		known[string(key)] = out
		return out
	}
}

// Kernel is where the time of one kernel goes. Times are means of one replay, in microseconds.
type Kernel struct {
	Name         string  `json:"kernel"`
	Dispatches   float64 `json:"dispatches"`
	Microseconds float64 `json:"microseconds"`
	Share        float64 `json:"share"` // of the times of all kernels
	Modelled     float64 `json:"modelled_microseconds"`
	Bytes        float64 `json:"bytes"`
	Operations   float64 `json:"operations"`
	Bandwidth    float64 `json:"gbs"`      // attained, 10^9 bytes a second
	Rate         float64 `json:"gops"`     // attained, 10^9 operations a second
	Bound        string  `json:"bound"`    // bandwidth or arithmetic: the ceiling that its work meets first; "" if it does no work that is known
	Roofline     float64 `json:"roofline"` // the share of that ceiling that it attained
	// Spread is how far, in microseconds, a time by ablation may be off: half of the range between the quartiles.
	Spread float64 `json:"spread_microseconds,omitempty"`

	family int
	spent  time.Duration // of all replays
}

// Epoch is one epoch of a graph, in means of one replay, in microseconds from its beginning.
type Epoch struct {
	Commands []int32 `json:"commands"`
	Begin    float64 `json:"begin"`
	End      float64 `json:"end"`
	Gap      float64 `json:"gap"` // idle time before it
	From     float64 `json:"modelled_begin"`
	To       float64 `json:"modelled_end"`
}

// Summary is what is said of one graph. Times are means of one replay in microseconds unless they say otherwise.
type Summary struct {
	Graph     string   `json:"graph"`
	By        By       `json:"by"`
	Replays   int      `json:"replays"`
	Dropped   int      `json:"replays_left_out,omitempty"`
	Commands  int      `json:"commands"`
	Unsampled float64  `json:"commands_without_time,omitempty"` // of one replay
	Mean      float64  `json:"mean_microseconds"`
	Median    float64  `json:"median_microseconds"`
	Min       float64  `json:"min_microseconds"`
	Max       float64  `json:"max_microseconds"`
	Plain     float64  `json:"unprofiled_median_microseconds,omitempty"`
	Sum       float64  `json:"kernels_microseconds"` // of the times of all kernels
	Busy      float64  `json:"busy_microseconds"`
	Idle      float64  `json:"idle_microseconds"`
	Encode    float64  `json:"encode_microseconds"`
	Modelled  float64  `json:"modelled_microseconds"`
	Bytes     float64  `json:"bytes"`
	Kernels   []Kernel `json:"kernels"` // the longest first
	Epochs    []Epoch  `json:"-"`

	each []command
}

// command is the mean of one command.
type command struct{ us, modelled, bytes, operations float64 }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// by says whence the times of g's kernels are.
func (g *Graph) by() By {
	switch {
	case g.timed > 0:
		return ByCommands
	case len(g.Ablated) > 0:
		return ByAblation
	}
	return ByNothing
}

// ceilings are the two of the roofline, in bytes and operations a second; 0 is unknown.
type ceilings struct{ bandwidth, rate float64 }

// Ceilings returns the roofline's ceilings.
func (r *Report) ceilings(all []*Summary) (c ceilings) {
	if !r.Fitted {
		return ceilings{r.Model.Bandwidth, r.Model.Rate}
	}
	for _, s := range all {
		for i := range s.Kernels {
			if k := &s.Kernels[i]; k.Share >= 0.005 { // shorter ones are measured too badly
				c.bandwidth, c.rate = max(c.bandwidth, k.Bandwidth*1e9), max(c.rate, k.Rate*1e9)
			}
		}
	}
	return c
}

// Summaries sums up the measurements, graph by graph.
func (r *Report) Summaries() []*Summary {
	var all []*Summary
	for _, g := range r.Graphs {
		all = append(all, g.summary(&r.Model))
	}
	c := r.ceilings(all)
	for _, s := range all {
		for i := range s.Kernels {
			k := &s.Kernels[i]
			memory, arithmetic := 0.0, 0.0
			if c.bandwidth > 0 {
				memory = k.Bytes / c.bandwidth
			}
			if c.rate > 0 {
				arithmetic = k.Operations / c.rate
			}
			switch {
			case memory == 0 && arithmetic == 0 || k.Microseconds <= 0:
			case memory >= arithmetic:
				k.Bound, k.Roofline = "bandwidth", memory*1e6/k.Microseconds
			default:
				k.Bound, k.Roofline = "arithmetic", arithmetic*1e6/k.Microseconds
			}
		}
	}
	return all
}

// Measured reports whether there is anything to sum up.
func (g *Graph) Measured() bool { return len(g.replays) > 0 }

func (g *Graph) summary(m *cost.Model) *Summary {
	s := &Summary{Graph: g.IR.Name, By: g.by(), Replays: len(g.replays), Dropped: g.dropped, Commands: len(g.commands), each: make([]command, len(g.commands))}
	if len(g.replays) == 0 {
		return s
	}
	n := float64(len(g.replays))
	works := g.works(*m)
	epochs := make([]Epoch, len(g.epochs))
	seen := make([]float64, len(g.epochs)) // replays in which an epoch has a time
	for i, e := range g.epochs {
		epochs[i].Commands = e.commands
	}
	byKernel := map[string]*Kernel{}
	kernel := func(c int32) *Kernel {
		k := byKernel[g.kernels[c]]
		if k == nil {
			k = &Kernel{Name: g.kernels[c], family: familyOf(g.full, g.commands[c])}
			byKernel[k.Name] = k
		}
		return k
	}
	var whole []time.Duration
	type extent struct{ begin, end time.Duration }
	for i := range g.replays {
		t := &g.replays[i]
		whole = append(whole, t.Duration())
		work := works(t.Params)
		lay := layOut(m, g.epochs, work)
		s.Modelled += lay.whole.Microseconds()
		s.Encode += micros(t.Encode)
		s.Unsampled += float64(t.Unsampled)
		for k := range g.commands {
			x, w := kernel(int32(k)), work[k]
			x.Bytes, x.Operations, x.Modelled = x.Bytes+w.Bytes, x.Operations+w.Operations, x.Modelled+w.Alone.Microseconds()
			s.Bytes += w.Bytes
			e := &s.each[k]
			e.modelled, e.bytes, e.operations = e.modelled+w.Alone.Microseconds()/n, e.bytes+w.Bytes/n, e.operations+w.Operations/n
			if g.timed == 0 {
				x.Dispatches++
			}
		}
		for k := range epochs {
			epochs[k].From += lay.epochs[k].begin.Microseconds() / n
			epochs[k].To += lay.epochs[k].end.Microseconds() / n
		}
		if len(t.Commands) == 0 {
			continue
		}
		at := map[int32]extent{}
		for k := range t.Commands {
			x := &t.Commands[k]
			c, ok := g.number[x.ID]
			if !ok {
				continue
			}
			y := kernel(c)
			y.spent, y.Dispatches = y.spent+x.Duration(), y.Dispatches+1
			s.each[c].us += micros(x.Duration()) / n
			b, e := x.Begin.Sub(t.Begin), x.End.Sub(t.Begin)
			if old, ok := at[g.epochOf[c]]; ok {
				b, e = min(b, old.begin), max(e, old.end)
			}
			at[g.epochOf[c]] = extent{b, e}
		}
		busy, gaps := covered(t)
		s.Busy += micros(busy)
		for k, x := range at {
			epochs[k].Begin, epochs[k].End, seen[k] = epochs[k].Begin+micros(x.begin), epochs[k].End+micros(x.end), seen[k]+1
		}
		for _, p := range gaps {
			if c, ok := g.number[p.before]; ok {
				epochs[g.epochOf[c]].Gap += micros(p.length) / n
			}
		}
	}
	for k := range epochs {
		if seen[k] > 0 {
			epochs[k].Begin, epochs[k].End = epochs[k].Begin/seen[k], epochs[k].End/seen[k]
		}
	}
	slices.Sort(whole)
	total := time.Duration(0)
	for _, d := range whole {
		total += d
	}
	s.Mean = micros(total) / n
	s.Median, s.Min, s.Max = micros(whole[len(whole)/2]), micros(whole[0]), micros(whole[len(whole)-1])
	if p := slices.Sorted(slices.Values(g.Unprofiled)); len(p) > 0 {
		s.Plain = micros(p[len(p)/2])
	}
	if s.By == ByCommands {
		s.Busy /= n
		s.Idle = max(0, s.Mean-s.Busy)
	}
	s.Epochs = epochs
	s.Modelled, s.Encode, s.Unsampled, s.Bytes = s.Modelled/n, s.Encode/n, s.Unsampled/n, s.Bytes/n
	ablated := map[string]Ablated{}
	for _, a := range g.Ablated {
		ablated[a.Kernel] = a
	}
	for _, k := range byKernel {
		k.Dispatches, k.Modelled, k.Bytes, k.Operations = k.Dispatches/n, k.Modelled/n, k.Bytes/n, k.Operations/n
		k.Microseconds = micros(k.spent) / n
		if a, ok := ablated[k.Name]; ok && s.By == ByAblation {
			k.Microseconds, k.Spread = max(0, micros(a.Takes)), micros(a.Spread)
		}
		if k.Microseconds > 0 {
			k.Bandwidth, k.Rate = k.Bytes/k.Microseconds/1e3, k.Operations/k.Microseconds/1e3
		}
		s.Sum += k.Microseconds
		s.Kernels = append(s.Kernels, *k)
	}
	for i := range s.Kernels {
		if s.Sum > 0 {
			s.Kernels[i].Share = s.Kernels[i].Microseconds / s.Sum
		}
	}
	slices.SortFunc(s.Kernels, func(a, b Kernel) int {
		return cmp.Or(cmp.Compare(b.Microseconds, a.Microseconds), cmp.Compare(a.Name, b.Name))
	})
	return s
}

// gap is a time in which no command of a replay runs.
type gap struct {
	before ir.ID // the command that ends it
	length time.Duration
}

// covered returns for how long at least one command of a replay runs, and the times between in which none does.
func covered(t *replay.Timing) (busy time.Duration, gaps []gap) {
	all := slices.Clone(t.Commands)
	slices.SortStableFunc(all, func(a, b backend.CommandTime) int { return a.Begin.Compare(b.Begin) })
	end := t.Begin
	for i := range all {
		x := &all[i]
		if d := x.Begin.Sub(end); d > 0 {
			gaps = append(gaps, gap{x.ID, d})
			end = x.Begin
		}
		if d := x.End.Sub(end); d > 0 {
			busy += d
			end = x.End
		}
	}
	return busy, gaps
}

// familyOf is the kind of work of a command, as [page.Families] numbers them.
func familyOf(g *ir.Graph, c ir.Command) int {
	switch c := c.(type) {
	case *ir.Dispatch:
		return page.Family(c.Op, g.Kernels[c.Kernel].Function)
	case *ir.Fill:
		return page.Family("fill", "")
	}
	return page.Family("copy", "")
}

// Round rounds all figures to three digits after the point, and makes those finite that a model's are not, as JSON wants them.
func (s *Summary) Round() {
	round := func(all ...*float64) {
		for _, x := range all {
			*x = math.Round(finite(*x)*1e3) / 1e3
		}
	}
	round(&s.Unsampled, &s.Mean, &s.Median, &s.Min, &s.Max, &s.Plain, &s.Sum, &s.Busy, &s.Idle, &s.Encode, &s.Modelled, &s.Bytes)
	for i := range s.Kernels {
		k := &s.Kernels[i]
		round(&k.Dispatches, &k.Microseconds, &k.Share, &k.Modelled, &k.Bytes, &k.Operations, &k.Bandwidth, &k.Rate, &k.Roofline, &k.Spread)
	}
}
