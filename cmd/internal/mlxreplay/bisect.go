package mlxreplay

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/part"
	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/replay"
)

// found is the first command that differs.
type found struct {
	Command  ir.ID  `json:"command"`
	What     string `json:"what"`
	Kernel   string `json:"kernel,omitempty"`
	Label    string `json:"label,omitempty"`
	Number   int    `json:"number"`   // how many commands of the list stand before it
	Commands int    `json:"commands"` // of the graph
	Replays  int    `json:"replays"`  // for which it was looked, on each device
	// Writes are how what it writes differs, by memory. Reads is the max difference of what it read, beside the max value of each
	// piece.
	Writes []difference `json:"writes"`
	Reads  float64      `json:"reads_relative_difference"`
}

func (f *found) print(env *cli.Env, sides [2]*side) error {
	kernel := ""
	if f.Kernel != "" {
		kernel = ", kernel " + f.Kernel
	}
	label := ""
	if f.Label != "" {
		label = fmt.Sprintf(", %q", f.Label)
	}
	times := "1 replay"
	if f.Replays != 1 {
		times = fmt.Sprintf("%d replays", f.Replays)
	}
	reads := "what it reads is equal to the bit"
	if f.Reads > 0 {
		reads = fmt.Sprintf("what it reads differs by %.3g of its max value at most", f.Reads)
	}
	fmt.Fprintf(env.Stdout, "\nthe first command that differs by more: %s%s%s, after %d of %d commands; %s; found by %s on each device\n", f.What, kernel, label, f.Number, f.Commands, reads, times)
	t := cli.Table{Header: []string{"what it writes", "type", "elements", "other bits", "max difference", "max value", "relative", "ulps", "where", sides[0].name, sides[1].name}}
	for _, x := range f.Writes {
		t.Add(append([]any{x.Output}, x.cells()...)...)
	}
	return t.Print(env.Stdout)
}

// written is a region that a command writes.
type written struct {
	command int // how many commands stand before it
	t       ir.DType
	region  ir.Region
	root    ir.MemID
	base    int64 // of the region's memory in the root
	first   int64 // the first byte of the region in the root
}

// probe is the memory of both devices after the first n commands.
type probe struct {
	n        int
	contents [2]map[string][]byte
	writes   []written
	// owner is which write each byte of a root was last written by.
	owner map[ir.MemID]*interval.Partition[int32]
	// bad is the first command of which a byte that is still there differs by more than the tolerance; -1: none.
	bad    int
	differ map[int32]*difference
}

// bisection looks for the first command that differs.
type bisection struct {
	c        *compareCmd
	env      *cli.Env
	sides    [2]*side
	graph    *ir.Graph    // that of the first side, so that its memory can be read, see [part.Kept], with the effects that kernels declare
	graphs   [2]*ir.Graph // those of both sides
	commands []ir.Command
	params   []uint32
	replays  int
	polls    interrupt.Every
}

// bisect finds the first command that differs by more than the tolerance though what it reads does not. It replays the first n
// commands of the graph on both devices, from the same initial contents, and compares every byte that they have written and that
// none of them has overwritten: after none of them all is equal, after all of them something differs, and in between the number is
// halved. why says why there is none, or what is odd about it.
func (c *compareCmd) bisect(env *cli.Env, sides [2]*side) (_ *found, why string, err error) {
	g := sides[0].module.Graph(sides[0].graph.IR().Name)
	b := &bisection{c: c, env: env, sides: sides, graph: optimize.Annotated(env.Context, part.Kept(g)), params: sides[0].graph.Params()}
	b.graphs = [2]*ir.Graph{b.graph, b.graph}
	if other := sides[1].module.Graph(sides[1].graph.IR().Name); other != g {
		b.graphs[1] = part.Kept(other)
	}
	b.commands = part.Commands(b.graph)
	if len(b.commands) == 0 {
		return nil, "", nil
	}
	if len(b.params) != len(b.graph.Params) {
		return nil, "", fmt.Errorf("graph %s: the device has other params", ir.QuoteName(g.Name))
	}
	bar := cli.StartProgress(env.Stderr, "looking for the first command that differs")
	defer bar.End()
	steps := 2
	for n := len(b.commands); n > 1; n /= 2 {
		steps++
	}
	last, err := b.probe(len(b.commands))
	if err != nil {
		return nil, "", err
	}
	if last.bad < 0 {
		why := "no command differs by more than the tolerance in one replay with all that commands write kept"
		if c.Replays > 1 {
			return nil, why + ": what differs has come of " + fmt.Sprint(c.Replays) + " replays", nil
		}
		return nil, why + ": each differs a little, or what differs is overwritten", nil
	}
	lo, hi := 0, last.bad+1 // what is bad and still there at the end was bad as soon as it was written
	var good *probe
	for hi-lo > 1 {
		bar.Set(float64(b.replays) / float64(steps))
		p, err := b.probe((lo + hi) / 2)
		if err != nil {
			return nil, "", err
		}
		if p.bad >= 0 {
			hi, last = p.bad+1, p
		} else {
			lo, good = p.n, p
		}
	}
	if last.n != hi {
		if last, err = b.probe(hi); err != nil {
			return nil, "", err
		}
		switch {
		case last.bad >= 0:
		case last.differs(hi - 1):
			why = "what differs is within the tolerance beside the max of all that this command writes, and beyond it beside the max of what later commands leave of that"
		default:
			return nil, fmt.Sprintf("%s differs in one replay and not in another: a device does not compute the same each time", b.graph.Describe(b.commands[hi-1])), nil
		}
	}
	return b.found(last, good), why, nil
}

// differs reports whether what a command wrote has other bits.
func (p *probe) differs(command int) bool {
	for n, d := range p.differ {
		if p.writes[n].command == command && d.Bits > 0 {
			return true
		}
	}
	return false
}

// alike reports whether two graphs have the same memories, and commands with the same IDs in the same order: what remains to
// differ is what commands do.
func alike(a, b *ir.Graph) bool {
	if a == b {
		return true
	}
	x, y := part.Commands(a), part.Commands(b)
	return slices.EqualFunc(x, y, func(c, d ir.Command) bool { return c.Num() == d.Num() }) &&
		slices.EqualFunc(a.Memories, b.Memories, func(m, n ir.Memory) bool {
			return m.Name == n.Name && m.Kind == n.Kind && m.Size == n.Size && m.Alias == n.Alias && m.AliasOff == n.AliasOff
		}) &&
		slices.EqualFunc(a.Params, b.Params, func(p, q ir.Param) bool { return p.Name == q.Name && p.Type == q.Type })
}

// probe replays the first n commands on both devices.
func (b *bisection) probe(n int) (*probe, error) {
	p := &probe{n: n, bad: -1, owner: map[ir.MemID]*interval.Partition[int32]{}, differ: map[int32]*difference{}}
	b.replays++
	for i, x := range b.sides {
		m := &ir.Module{Graphs: []*ir.Graph{part.First(b.graphs[i], n)}}
		err := func() error {
			s, err := replay.Open(x.device, m, replay.Options{})
			if err != nil {
				return err
			}
			defer s.Close()
			g, err := s.Graph(b.env.Context, "")
			if err != nil {
				return fmt.Errorf("the first %d commands: %w", n, err)
			}
			if err := b.c.prepare(g, b.c.Seed); err != nil {
				return err
			}
			if _, err := g.Run(b.env.Context); err != nil {
				return err
			}
			p.contents[i], err = read(g, m.Graphs[0])
			return err
		}()
		if err != nil {
			return nil, err
		}
	}
	if err := b.own(p); err != nil {
		return nil, err
	}
	return p, b.judge(p)
}

// own finds out which write each byte was last written by.
func (b *bisection) own(p *probe) (err error) {
	defer interrupt.Catch(&err)
	for i, c := range b.commands[:p.n] {
		for _, w := range b.writes(p, i, c) {
			n := int32(len(p.writes))
			p.writes = append(p.writes, w)
			o := p.owner[w.root]
			if o == nil {
				o = &interval.Partition[int32]{}
				p.owner[w.root] = o
			}
			b.runs(&w.region, w.base, func(lo, end int64) {
				b.polls.Poll(b.env.Context, 1)
				o.Set(lo, end, n)
			})
		}
	}
	return nil
}

// writes lists what command i writes.
func (b *bisection) writes(p *probe, i int, c ir.Command) (out []written) {
	add := func(r ir.Region, t ir.DType) {
		root, base := b.graph.Root(r.Mem)
		if b.graph.Memories[root].Kind == ir.State {
			out = append(out, written{i, t, r, root, base, base + r.Off.Eval(b.params)})
		}
	}
	typed := func(m ir.MemID, t ir.DType) ir.DType {
		if !t.Valid() {
			t = b.graph.Memories[m].DType
		}
		if !t.Valid() {
			return ir.U8
		}
		return t
	}
	switch c := c.(type) {
	case *ir.Copy: // elements are of the type of what is copied
		root, base := b.graph.Root(c.Src.Mem)
		t := b.graph.Memories[c.Src.Mem].DType
		if o := p.owner[root]; o != nil {
			if _, _, n, ok := o.At(base + c.Src.Off.Eval(b.params)); ok {
				t = p.writes[n].t
			}
		}
		add(c.Dst.Contiguous(), typed(c.Dst.Mem, t))
	case *ir.Fill:
		add(c.Dst.Contiguous(), typed(c.Dst.Mem, ir.Invalid))
	case *ir.Dispatch:
		k := &b.graph.Kernels[c.Kernel]
		bound := func(r *ir.Region) ir.DType { // the type of the argument by which a region is written
			at := r.Off.Eval(b.params)
			for j := range c.Bindings {
				x := &c.Bindings[j]
				a, _ := k.Arg(x.Slot)
				if x.Kind != ir.BindView || x.View.Mem != r.Mem || a.Access == ir.ReadArg {
					continue
				}
				if lo := x.View.Off.Eval(b.params); lo <= at && at < lo+max(1, x.View.Len.Eval(b.params)) {
					return a.Type
				}
			}
			return ir.Invalid
		}
		if c.Effects.Known() {
			for j := range c.Effects.Writes {
				r := c.Effects.Writes[j].Region
				add(r, typed(r.Mem, bound(&r)))
			}
			break
		}
		for j := range c.Bindings { // all that it may write
			x := &c.Bindings[j]
			if a, _ := k.Arg(x.Slot); x.Kind == ir.BindView && a.Access != ir.ReadArg {
				add(x.View.Contiguous(), typed(x.View.Mem, a.Type))
			}
		}
	}
	return out
}

// runs calls yield with every run of a region's bytes, in a root in which its memory begins at base.
func (b *bisection) runs(r *ir.Region, base int64, yield func(lo, end int64)) {
	run := r.Run.Eval(b.params)
	if run <= 0 {
		return
	}
	var visit func(at int64, dims []ir.Dim)
	visit = func(at int64, dims []ir.Dim) {
		if len(dims) == 0 {
			yield(at, at+run)
			return
		}
		count := dims[0].Count.Eval(b.params)
		if dims[0].Stride == 0 { // the same bytes again, however often
			count = min(count, 1)
		}
		for i := range count {
			visit(at+i*dims[0].Stride, dims[1:])
		}
	}
	visit(base+r.Off.Eval(b.params), r.Dims)
}

// judge compares what was written.
func (b *bisection) judge(p *probe) (err error) {
	defer interrupt.Catch(&err)
	for root, o := range p.owner {
		name := b.graph.Memories[root].Name
		x, y := p.contents[0][name], p.contents[1][name]
		if bytes.Equal(x, y) {
			continue
		}
		o.Each(0, int64(len(x)), func(lo, end int64, n int32) bool {
			b.polls.Poll(b.env.Context, 1)
			w := &p.writes[n]
			size := max(1, w.t.Size())
			// A write that others have cut has whole elements left, counted from its beginning.
			from := lo + (size-(lo-w.first)%size)%size
			if from >= end {
				return true
			}
			d := p.differ[n]
			if d == nil {
				d = new(difference)
				*d = newDifference(w.t)
				p.differ[n] = d
			}
			d.add(w.t, x[from:end], y[from:end], (from-w.first)/size)
			return true
		})
	}
	for n, d := range p.differ {
		d.judge(b.c.Tolerance)
		if c := p.writes[n].command; !d.OK && (p.bad < 0 || c < p.bad) {
			p.bad = c
		}
	}
	return nil
}

// found describes the last command of bad, before which the memory was as good says; nil: as it began.
func (b *bisection) found(bad, good *probe) *found {
	c := b.commands[bad.n-1]
	f := &found{Command: c.Num(), What: b.graph.Describe(c), Number: bad.n - 1, Commands: len(b.commands), Replays: b.replays}
	switch c := c.(type) {
	case *ir.Dispatch:
		f.Kernel, f.Label = b.graph.Kernels[c.Kernel].Function, c.Label
	case *ir.Copy:
		f.Label = c.Label
	case *ir.Fill:
		f.Label = c.Label
	}
	for n := range bad.writes {
		w := &bad.writes[n]
		if d := bad.differ[int32(n)]; d != nil && w.command == bad.n-1 {
			d.Output, d.Kind = b.graph.FormatRegion(w.region), "region"
			if d.at >= 0 {
				d.At = []int64{d.at}
			}
			f.Writes = append(f.Writes, *d)
		}
	}
	slices.SortStableFunc(f.Writes, func(x, y difference) int { return cmp.Compare(y.Max, x.Max) })
	if good == nil || good.n != bad.n-1 {
		return f
	}
	reads := func(r *ir.Region) {
		root, base := b.graph.Root(r.Mem)
		o := good.owner[root]
		if o == nil {
			return
		}
		b.runs(r, base, func(lo, end int64) {
			o.Each(lo, end, func(_, _ int64, n int32) bool {
				if d := good.differ[n]; d != nil && d.Of > 0 {
					f.Reads = max(f.Reads, d.Max/d.Of)
				}
				return true
			})
		})
	}
	switch c := c.(type) {
	case *ir.Copy:
		r := c.Src.Contiguous()
		reads(&r)
	case *ir.Dispatch:
		if c.Effects.Known() {
			for i := range c.Effects.Reads {
				reads(&c.Effects.Reads[i])
			}
		}
	}
	return f
}
