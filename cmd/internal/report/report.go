package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/graphdiff"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// Kind is the kind of a finding.
type Kind string

// The kinds.
const (
	Fusion  Kind = "fusion"  // dispatches that one kernel of the library would do
	Unread  Kind = "unread"  // commands whose results nobody reads
	Barrier Kind = "barrier" // barriers that no conflict asks for
	Order   Kind = "order"   // what another order of the commands, or other places of scratch, would save
	Cores   Kind = "cores"   // dispatches of fewer threadgroups than the chip has cores
	Lanes   Kind = "lanes"   // threadgroups that do not fill SIMD groups
	Unknown Kind = "unknown" // dispatches of unknown effects
	Defect  Kind = "defect"  // what the checker found: accesses outside, races, undefined reads
)

// Finding is one thing that costs.
type Finding struct {
	Kind  Kind    `json:"kind"`
	What  string  `json:"what"`
	Count int     `json:"count"`    // how often
	Saves float64 `json:"saves_us"` // modelled, of all of them
	// Examples are the first few, each a list of commands.
	Examples [][]Command `json:"examples"`
}

// Command is a command as the engine called it.
type Command struct {
	ID    ir.ID  `json:"id"`
	Op    string `json:"op"`
	Label string `json:"label,omitempty"`
}

func (c Command) String() string {
	if c.Label != "" {
		return fmt.Sprintf("%s %s", c.ID, c.Label)
	}
	return fmt.Sprintf("%s %s", c.ID, c.Op)
}

// Report is what costs in one graph.
type Report struct {
	Graph      string                `json:"graph"`
	Model      string                `json:"model"`
	ModelledAt []optimize.ParamValue `json:"modelled_at"`
	Now        float64               `json:"now_us"`       // modelled time of a replay
	Optimized  float64               `json:"optimized_us"` // after the default pipeline
	Proof      *prove.Result         `json:"proof"`        // of that
	Unknown    int                   `json:"unknown"`      // dispatches of unknown effects
	Defects    int                   `json:"defects"`      // what [Report.Add] was given
	Findings   []Finding             `json:"findings"`     // all of them, the dearest first; before them defects
}

// Saves returns the share of the modelled time that the default pipeline saves.
func (r *Report) Saves() float64 {
	if r.Now <= 0 {
		return 0
	}
	return max(0, 1-r.Optimized/r.Now)
}

// Options are how a report is made.
type Options = optimize.Options

// examples is how many examples a finding has.
const examples = 3

// least is the share of lanes from which on idle ones are a finding.
const least = 0.05

type builder struct {
	ctx      context.Context
	g        *ir.Graph // with effects
	model    cost.Model
	estimate *cost.Estimator
	commands []ir.Command // in the order of the list
	epoch    []int32      // by command
	first    []int32      // by epoch, with one more at the end
	found    map[string]*Finding
	unknown  int // dispatches of unknown effects
	order    []string
}

// Of makes the report of a graph. Its errors are those of [optimize.Run].
func Of(ctx context.Context, g *ir.Graph, o Options) (out *Report, err error) {
	defer interrupt.Catch(&err)
	if o.Pipeline == nil {
		o.Pipeline = passes.DefaultPipeline()
	}
	r, err := optimize.Run(ctx, g, o)
	if err != nil {
		return nil, err
	}
	out = &Report{Graph: g.Name, Model: r.Model, ModelledAt: r.ModelledAt, Now: r.Before.Modelled.GPU, Optimized: r.Before.Modelled.GPU, Proof: r.Proof}
	b := &builder{ctx: ctx, g: optimize.Annotated(ctx, g), model: o.Passes.Model.OrDefault(), found: map[string]*Finding{}}
	b.estimate = b.model.For(b.g)
	b.epochs()
	if r.Optimized != nil {
		out.Optimized = r.After.Modelled.GPU
		diff, err := graphdiff.Graphs(ctx, g, r.Optimized)
		if err != nil {
			return nil, err
		}
		b.replaced(r, diff.Images)
		b.reordered(r)
	}
	if err := b.barriers(g, o.Proof); err != nil {
		return nil, err
	}
	b.threads()
	out.Unknown = b.unknown
	out.Findings = make([]Finding, 0, len(b.order))
	for _, key := range b.order {
		out.Findings = append(out.Findings, *b.found[key])
	}
	slices.SortStableFunc(out.Findings, func(x, y Finding) int { return cmp.Compare(y.Saves, x.Saves) })
	return out, nil
}

// epochs finds which commands run at once.
func (b *builder) epochs() {
	open := false
	for _, n := range b.g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier, *ir.Commit:
			open = false
		case *ir.Join:
		case ir.Command:
			if !open || b.g.Ordering == ir.Serial {
				b.first = append(b.first, int32(len(b.commands)))
			}
			open = true
			b.commands = append(b.commands, n)
			b.epoch = append(b.epoch, int32(len(b.first)-1))
		}
	}
	b.first = append(b.first, int32(len(b.commands)))
}

func (b *builder) command(c ir.Command) Command {
	_, op, _ := strings.Cut(b.g.Describe(c), " ")
	return Command{ID: c.Num(), Op: op, Label: ir.LabelOf(c)}
}

// add counts one more finding of a form.
func (b *builder) add(kind Kind, what string, saves cost.Seconds, of ...ir.Command) {
	key := string(kind) + " " + what
	f := b.found[key]
	if f == nil {
		f = &Finding{Kind: kind, What: what, Examples: [][]Command{}}
		b.found[key] = f
		b.order = append(b.order, key)
	}
	f.Count++
	f.Saves += saves.Microseconds()
	if len(f.Examples) < examples && len(of) > 0 {
		var list []Command
		for _, c := range of {
			list = append(list, b.command(c))
		}
		f.Examples = append(f.Examples, list)
	}
}

// few is the size of an epoch up to which it is modelled anew without some of its commands.
const few = 64

// without returns how much less a graph takes without some of its commands, which are in the order
// of the list, by the model: in their epochs, and for the barriers of those that are then empty. keep
// says that one epoch stays for what takes their place.
func (b *builder) without(commands []int, keep bool) (saves cost.Seconds) {
	empty := 0
	touched := 0
	for len(commands) > 0 {
		e := b.epoch[commands[0]]
		n := 1
		for n < len(commands) && b.epoch[commands[n]] == e {
			n++
		}
		touched++
		first, end := b.first[e], b.first[e+1]
		var gone, left, all cost.Epoch
		for _, i := range commands[:n] {
			gone.Add(b.estimate.Work(b.commands[i]))
		}
		switch {
		case int(end-first) == n:
			saves += b.model.Of(gone)
			empty++
		case end-first > few:
			// What such an epoch takes is the sum of its work, nearly.
			saves += b.model.Of(gone)
		default:
			k := 0
			for i := first; i < end; i++ {
				w := b.estimate.Work(b.commands[i])
				all.Add(w)
				if k < n && commands[k] == int(i) {
					k++
				} else {
					left.Add(w)
				}
			}
			saves += b.model.Of(all) - b.model.Of(left)
		}
		commands = commands[n:]
	}
	if keep && empty == touched {
		empty--
	}
	return saves + b.model.Barrier*cost.Seconds(empty)
}

// replaced finds what fusions and the removal of commands save.
func (b *builder) replaced(r *optimize.Result, images [][]int) {
	after := b.model.For(r.Optimized)
	// Of both graphs the commands without joins are numbered.
	number := func(g *ir.Graph) (out []int, commands []ir.Command) {
		n := 0
		for _, x := range g.Nodes {
			c, ok := x.(ir.Command)
			if !ok {
				continue
			}
			if _, join := c.(*ir.Join); join {
				out = append(out, -1)
				continue
			}
			out, commands = append(out, n), append(commands, c)
			n++
		}
		return out, commands
	}
	before, _ := number(b.g)
	at, commands := number(r.Optimized)
	kept := make([]bool, len(b.commands))
	var polls interrupt.Every
	for k, js := range images {
		polls.Poll(b.ctx, 64)
		if at[k] < 0 {
			continue
		}
		var of []int
		for _, j := range js {
			if i := before[j]; i >= 0 {
				of = append(of, i)
				kept[i] = true
			}
		}
		d, ok := commands[at[k]].(*ir.Dispatch)
		if !ok || len(of) < 2 {
			continue
		}
		var ops []string
		var list []ir.Command
		for _, i := range of {
			ops, list = append(ops, b.command(b.commands[i]).Op), append(list, b.commands[i])
		}
		saves := b.without(of, true) - after.Work(d).Alone
		b.add(Fusion, fmt.Sprintf("%s would be one dispatch of %s", short(ops), ir.Shorten(r.Optimized.Kernels[d.Kernel].Function)), max(0, saves), list...)
	}
	for i, c := range b.commands {
		if !kept[i] {
			b.add(Unread, fmt.Sprintf("nobody reads what %s writes", b.command(c).Op), b.without([]int{i}, false), c)
		}
	}
}

// short joins the operations of a fusion; of many it has the first few.
func short(ops []string) string {
	const most = 12
	if len(ops) > most {
		return strings.Join(ops[:most], "+") + fmt.Sprintf("+… (%d)", len(ops))
	}
	return strings.Join(ops, "+")
}

// reordered adds what the passes save that change no command.
func (b *builder) reordered(r *optimize.Result) {
	now := r.Before
	for _, row := range r.Rows {
		saves := now.Modelled.GPU - row.After.Modelled.GPU
		now = row.After
		name, _, _ := strings.Cut(row.Pass, "{")
		switch name {
		case "annotate", "fuse", "dce", "barriers":
			continue
		}
		if row.Undone == "" && saves > 0 {
			b.add(Order, fmt.Sprintf("the pass %s brings it to %d epoch(s) and %d barrier(s)", name, now.Epochs, now.Barriers), cost.Seconds(saves*1e-6))
		}
	}
}

// threads finds dispatches that leave cores or lanes idle, and those of unknown effects.
func (b *builder) threads() {
	var polls interrupt.Every
	for _, c := range b.commands {
		polls.Poll(b.ctx, 64)
		d, ok := c.(*ir.Dispatch)
		if !ok {
			continue
		}
		if !d.Effects.Known() {
			b.unknown++
			b.add(Unknown, fmt.Sprintf("nobody knows what %s touches: nothing crosses it (mlxc effects --infer)", ir.Shorten(b.g.Kernels[d.Kernel].Function)), 0, c)
		}
		o := b.estimate.Occupancy(d)
		op := b.command(c).Op
		if o.Cores < 1 && o.Saves > 0 {
			b.add(Cores, fmt.Sprintf("%s has %.0f threadgroup(s) for %d cores", op, o.Groups, b.model.Cores), o.Saves, c)
		}
		if o.Idle >= least {
			size := d.Threadgroup[0] * d.Threadgroup[1] * d.Threadgroup[2]
			b.add(Lanes, fmt.Sprintf("%s leaves %.0f %% of its lanes idle: threadgroups of %d threads", op, 100*o.Idle, size), 0, c)
		}
	}
}
