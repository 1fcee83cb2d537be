package reduce

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mlxc/mlxc/cmd/internal/part"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
)

// Options say what is looked for and how long.
type Options struct {
	// Check reports whether a module is still what is looked for. An error ends the reduction.
	Check func(ctx context.Context, m *ir.Module) (bool, error)
	// Better, if not nil, is called with each smaller module that was found.
	Better func(m *ir.Module) error
	Time   time.Duration // 0: no limit. A check that is under way then is broken off, but for the first
	Tries  int           // how often Check is called; 0: no limit
	Faults bool          // try graphs without meaning too
	// Progress, if not nil, is called with the number of tries and the number of commands that are left.
	Progress func(tries, commands int)
}

// Why a reduction has ended.
const (
	Smallest    = "nothing can be left out of it" // of what this package knows to leave out
	OutOfTime   = "the time is over"
	OutOfTries  = "there are no more tries"
	Interrupted = "it was interrupted"
)

// Result is what was found.
type Result struct {
	Module *ir.Module
	Tries  int
	Kept   int // tries that led to a smaller module
	Why    string
}

// errTime ends what is under way when the time is over.
var errTime = errors.New(OutOfTime)

// ErrNot is returned if the check does not hold for the module itself.
var ErrNot = errors.New("the check does not hold for the graph itself")

// reducer is the state of one reduction.
type reducer struct {
	ctx  context.Context // ends with the one that was given, and when the time is over
	o    Options
	m    *ir.Module // the smallest so far
	r    Result
	err  error
	bare bool // faults are not looked for
}

// Module finds a small module for which the check holds. If ctx ends, it returns what it has found and the cause.
func Module(ctx context.Context, m *ir.Module, o Options) (*Result, error) {
	r := &reducer{ctx: ctx, o: o, m: m, bare: o.Faults}
	if o.Time > 0 {
		var cancel context.CancelFunc
		r.ctx, cancel = context.WithDeadlineCause(ctx, time.Now().Add(o.Time), errTime)
		defer cancel()
	}
	for _, g := range m.Graphs {
		if r.bare {
			break
		}
		found, err := meaning.Of(ctx, g)
		if err != nil {
			return nil, err
		}
		r.bare = len(found.Faults) > 0 || found.Undescribed != nil
	}
	r.r.Tries++
	ok, err := o.Check(ctx, m)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNot
	}
	for changed := true; changed && !r.over(); {
		before := r.r.Kept
		r.graphs()
		r.data()
		r.contents()
		for i := range r.m.Graphs {
			r.commands(i)
			r.marks(i)
			r.params(i)
			r.memories(i)
			r.words(i)
		}
		changed = r.r.Kept > before
	}
	r.r.Module = r.m
	if r.r.Why == "" {
		r.r.Why = Smallest
	}
	if r.err == nil && ctx.Err() != nil {
		r.err = context.Cause(ctx)
	}
	return &r.r, r.err
}

// over reports whether the reduction has to end.
func (r *reducer) over() bool {
	switch {
	case errors.Is(context.Cause(r.ctx), errTime):
		r.r.Why = OutOfTime
	case r.ctx.Err() != nil:
		r.r.Why = Interrupted
	case r.err != nil:
	case r.o.Tries > 0 && r.r.Tries >= r.o.Tries:
		r.r.Why = OutOfTries
	default:
		return false
	}
	return true
}

// try takes a module in the place of the best one if the check holds for it.
func (r *reducer) try(m *ir.Module) bool {
	if m == nil || r.over() || len(m.Graphs) == 0 || !r.whole(m) {
		return false
	}
	r.r.Tries++
	ok, err := r.o.Check(r.ctx, m)
	if err != nil {
		if r.ctx.Err() == nil {
			r.err = err
		}
		return false
	}
	if ok {
		r.r.Kept++
		r.m = m
		if r.o.Better != nil {
			r.err = r.o.Better(m)
		}
	}
	if r.o.Progress != nil {
		n := 0
		for _, g := range r.m.Graphs {
			n += len(part.Commands(g))
		}
		r.o.Progress(r.r.Tries, n)
	}
	return ok
}

// whole reports whether a module may be tried, and mends what it can.
func (r *reducer) whole(m *ir.Module) bool {
	for i, g := range m.Graphs {
		if slices.Contains(r.m.Graphs, g) { // it is as it was
			continue
		}
		if g = r.mended(g); g == nil {
			return false
		}
		m.Graphs[i] = g
	}
	return m.Check() == nil
}

// mended returns g if it may be tried, or what was made of it, or nil.
func (r *reducer) mended(g *ir.Graph) *ir.Graph {
	if g.CheckContext(r.ctx) != nil {
		return nil
	}
	if r.bare {
		return g
	}
	for {
		found, err := meaning.Of(r.ctx, g)
		if err != nil || found.Undescribed != nil {
			return nil
		}
		if len(found.Faults) == 0 {
			return g
		}
		roots := map[ir.MemID]bool{}
		for _, f := range found.Faults {
			if f.Kind != "undefined" {
				return nil
			}
			root, _ := g.Root(f.Mem)
			roots[root] = true
		}
		if g = given(g, roots); g == nil || g.CheckContext(r.ctx) != nil {
			return nil
		}
	}
}

// given returns a copy of g in which some memories, and those that lie in them, are states with contents of their own; nil if they
// are so already.
func given(g *ir.Graph, roots map[ir.MemID]bool) *ir.Graph {
	out := *g
	out.Memories = slices.Clone(g.Memories)
	changed := map[ir.MemID]bool{}
	for i := range out.Memories {
		m := &out.Memories[i]
		if root, _ := g.Root(ir.MemID(i)); roots[root] && (m.Kind == ir.Scratch || m.Kind == ir.Output) {
			m.Kind, m.Every = ir.State, false
			changed[root] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	others := boundAsOthers(g)
	for root := range changed {
		m := &out.Memories[root]
		if other, bound := others[root]; bound && !other && !m.DType.Valid() && m.Size%4 == 0 {
			m.DType, m.Shape = ir.F32, []int64{m.Size / 4}
		}
		m.Init = made(m, int(root))
	}
	return &out
}

// boundAsOthers says of each memory that dispatches bind whether some of it is bound as anything but floats of 32 bits.
func boundAsOthers(g *ir.Graph) map[ir.MemID]bool {
	out := map[ir.MemID]bool{}
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		for i := range d.Bindings {
			if b := &d.Bindings[i]; b.Kind == ir.BindView {
				root, _ := g.Root(b.View.Mem)
				a, _ := g.Kernels[d.Kernel].Arg(b.Slot)
				out[root] = out[root] || a.Type != ir.F32
			}
		}
	}
	return out
}

// made are contents for a memory: numbers where it holds floats of 32 bits, ones where it holds shorter ones, else zeros, which
// are sound indices too.
func made(m *ir.Memory, i int) ir.Init {
	switch m.DType {
	case ir.F32:
		return ir.Init{Kind: ir.InitRandom, Seed: uint64(i) + 1}
	case ir.F16:
		return ir.FillU32(0x3c003c00)
	case ir.BF16:
		return ir.FillU32(0x3f803f80)
	}
	return ir.Init{Kind: ir.InitFill}
}

// fewest leaves out as many of n members as it can. with returns the module with those that are kept.
func (r *reducer) fewest(n int, with func(keep []bool) *ir.Module) {
	left := members(n)
	without := func(at, end int) bool {
		keep := make([]bool, n)
		rest := slices.Concat(left[:at], left[end:])
		for _, k := range rest {
			keep[k] = true
		}
		if !r.try(with(keep)) {
			return false
		}
		left = rest
		return true
	}
	if n == 0 || without(0, n) {
		return
	}
	for size := (n + 1) / 2; size > 0 && len(left) > 0; size /= 2 {
		for end := len(left); end > 0 && !r.over(); end -= size {
			without(max(0, end-size), end)
		}
	}
}

func members(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// chosen are the members of a list that are kept.
func chosen[T any](list []T, keep []bool) (out []T) {
	for i, x := range list {
		if keep[i] {
			out = append(out, x)
		}
	}
	return out
}

// graphs leaves out graphs.
func (r *reducer) graphs() {
	base := r.m
	if len(base.Graphs) < 2 {
		return
	}
	r.fewest(len(base.Graphs), func(keep []bool) *ir.Module {
		return &ir.Module{Graphs: chosen(base.Graphs, keep), Data: base.Data}
	})
}

// data leaves out data beside the graphs.
func (r *reducer) data() {
	base := r.m
	r.fewest(len(base.Data), func(keep []bool) *ir.Module {
		return &ir.Module{Graphs: slices.Clone(base.Graphs), Data: chosen(base.Data, keep)}
	})
}

// contents puts made-up contents in the place of those that are stored. Memories of one name in several graphs are one.
func (r *reducer) contents() {
	base := r.m
	number := map[string]int{}
	for _, g := range base.Graphs {
		for i := range g.Memories {
			m := &g.Memories[i]
			if _, known := number[m.Name]; !known && m.Init.Kind == ir.InitBlob {
				number[m.Name] = len(number)
			}
		}
	}
	r.fewest(len(number), func(keep []bool) *ir.Module {
		out := &ir.Module{Data: base.Data}
		for _, g := range base.Graphs {
			x := *g
			x.Memories = slices.Clone(g.Memories)
			for i := range x.Memories {
				m := &x.Memories[i]
				if at := number[m.Name]; m.Init.Kind == ir.InitBlob && !keep[at] {
					m.Init = made(m, at)
				}
			}
			out.Graphs = append(out.Graphs, &x)
		}
		return out
	})
}

// with returns the best module with another graph in the place of graph i, which has lost what nothing names.
func (r *reducer) with(i int, g *ir.Graph) *ir.Module {
	out := &ir.Module{Graphs: slices.Clone(r.m.Graphs), Data: r.m.Data}
	g = g.Clone()
	g.Source = nil
	optimize.Prune(g)
	out.Graphs[i] = g
	return out
}

// commands leaves out commands of graph i; marks stay.
func (r *reducer) commands(i int) {
	base := r.m.Graphs[i]
	var at []int
	for k, n := range base.Nodes {
		if _, ok := n.(ir.Command); ok {
			at = append(at, k)
		}
	}
	r.fewest(len(at), func(keep []bool) *ir.Module {
		drop := make([]bool, len(base.Nodes))
		for k, x := range at {
			drop[x] = !keep[k]
		}
		return r.with(i, without(base, drop))
	})
}

// marks leaves out groups, and barriers and commits: first all barriers that no command stands before, or none since another one.
func (r *reducer) marks(i int) {
	all := func(drop func(n ir.Node) bool) {
		base, some := r.m.Graphs[i], false
		out := make([]bool, len(base.Nodes))
		for k, n := range base.Nodes {
			out[k] = drop(n)
			some = some || out[k]
		}
		if some {
			r.try(r.with(i, without(base, out)))
		}
	}
	all(func(n ir.Node) bool {
		switch n.(type) {
		case *ir.GroupBegin, *ir.GroupEnd:
			return true
		}
		return false
	})
	behind := true
	all(func(n ir.Node) bool {
		before := behind
		_, barrier := n.(*ir.Barrier)
		if _, command := n.(ir.Command); barrier || command {
			behind = barrier
		}
		return barrier && before
	})
	base := r.m.Graphs[i]
	var at []int
	for k, n := range base.Nodes {
		switch n.(type) {
		case *ir.Barrier, *ir.Commit:
			at = append(at, k)
		}
	}
	r.fewest(len(at), func(keep []bool) *ir.Module {
		drop := make([]bool, len(base.Nodes))
		for k, x := range at {
			drop[x] = !keep[k]
		}
		return r.with(i, without(base, drop))
	})
	g := *r.m.Graphs[i]
	if g.NextHost {
		g.NextHost = false
		r.try(r.with(i, &g))
	}
}

// mostSources bounds the commands that stand for one that is left out. A join takes the place of one that has more.
const mostSources = 64

// without returns g without some nodes of its list. Where edges order it, what waited for a command that is left out waits for
// what that has waited for.
func without(g *ir.Graph, drop []bool) *ir.Graph {
	out := *g
	out.Nodes = nil
	if len(g.Edges) == 0 {
		for k, n := range g.Nodes {
			if !drop[k] {
				out.Nodes = append(out.Nodes, n)
			}
		}
		return &out
	}
	waits := map[ir.ID][]ir.Edge{}
	for _, e := range g.Edges {
		waits[e.To] = append(waits[e.To], e)
	}
	// sources are the commands that are kept and that paths through others lead from: within a replay, and from the one before.
	type sources struct{ same, before []ir.ID }
	gone := map[ir.ID]*sources{}
	add := func(list []ir.ID, more ...ir.ID) []ir.ID {
		for _, id := range more {
			if !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
		return list
	}
	for k, n := range g.Nodes { // the list has a command behind those of its replay that it waits for
		c, ok := n.(ir.Command)
		if !ok || !drop[k] {
			if !drop[k] {
				out.Nodes = append(out.Nodes, n)
			}
			continue
		}
		s := &sources{}
		for _, e := range waits[c.Num()] {
			if from := gone[e.From]; !e.Previous && from != nil {
				s.same = add(s.same, from.same...)
			} else if !e.Previous {
				s.same = add(s.same, e.From)
			}
		}
		if len(s.same) > mostSources {
			out.Nodes = append(out.Nodes, &ir.Join{ID: c.Num()})
			continue
		}
		gone[c.Num()] = s
	}
	before := func(s *sources, e ir.Edge) []ir.ID {
		from := gone[e.From]
		switch {
		case e.Previous && from == nil:
			return add(s.before, e.From)
		case e.Previous:
			return add(s.before, from.same...)
		case from != nil:
			return add(s.before, from.before...)
		}
		return s.before
	}
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok && gone[c.Num()] != nil {
			s := gone[c.Num()]
			for _, e := range waits[c.Num()] {
				if len(s.before) <= mostSources { // more of them would make nothing that is tried better: a check refuses races
					s.before = before(s, e)
				}
			}
		}
	}
	out.Edges = nil
	for _, n := range out.Nodes {
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		var s sources
		for _, e := range waits[c.Num()] {
			if from := gone[e.From]; from == nil && !e.Previous {
				s.same = add(s.same, e.From)
			} else if !e.Previous {
				s.same = add(s.same, from.same...)
			}
			s.before = before(&s, e)
		}
		for _, id := range s.same {
			out.Edges = append(out.Edges, ir.Edge{From: id, To: c.Num()})
		}
		for _, id := range s.before {
			out.Edges = append(out.Edges, ir.Edge{From: id, To: c.Num(), Previous: true})
		}
	}
	out.SortEdges()
	return &out
}

// params narrows the bounds of params: to one value, or to a half again and again, and leaves out constraints.
func (r *reducer) params(i int) {
	set := func(p int, lo, hi float64) bool {
		g := *r.m.Graphs[i]
		g.Params = slices.Clone(g.Params)
		g.Params[p].Min, g.Params[p].Max = lo, hi
		if lo == hi {
			g.Params[p].Advance = 0
		}
		return r.try(r.with(i, &g))
	}
	for p := range r.m.Graphs[i].Params {
		for !r.over() {
			q := &r.m.Graphs[i].Params[p]
			if q.Min == q.Max || set(p, q.Min, q.Min) || set(p, q.Max, q.Max) {
				break
			}
			if q.Type != ir.U32 || q.Max-q.Min < 2 {
				break
			}
			mid := q.Min + float64(int64(q.Max-q.Min)/2)
			if !set(p, q.Min, mid) && !set(p, mid+1, q.Max) {
				break
			}
		}
	}
	base := r.m.Graphs[i]
	r.fewest(len(base.Constraints), func(keep []bool) *ir.Module {
		g := *base
		g.Constraints = chosen(base.Constraints, keep)
		return r.with(i, &g)
	})
}

// memories shortens memories to the bytes that commands name.
func (r *reducer) memories(i int) {
	base := r.m.Graphs[i]
	ends := make([]int64, len(base.Memories))
	name := func(m ir.MemID, end ir.Affine) {
		_, hi, ok := base.Range(end)
		if !ok {
			hi = base.Memories[m].Size
		}
		ends[m] = max(ends[m], hi)
	}
	for _, n := range base.Nodes {
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		c.EachView(func(v *ir.View) { name(v.Mem, v.End()) }) // effects beyond what is bound make Check refuse
	}
	aliased := make([]bool, len(base.Memories))
	for k := range base.Memories {
		if a := base.Memories[k].Alias; a != ir.NoMem {
			aliased[a] = true
		}
	}
	var at []int
	for k := range base.Memories {
		m := &base.Memories[k]
		if m.Alias == ir.NoMem && !aliased[k] && m.Init.Kind != ir.InitBlob && m.Init.Kind != ir.InitValues && ends[k] > 0 && ends[k] < m.Size {
			at = append(at, k)
		}
	}
	r.fewest(len(at), func(keep []bool) *ir.Module {
		g := *base
		g.Memories = slices.Clone(base.Memories)
		for k, x := range at {
			if m := &g.Memories[x]; !keep[k] {
				m.Size, m.Shape = ends[x], nil
				if m.DType.Valid() && m.DType.Bits()%8 == 0 && m.Size%max(1, m.DType.Size()) == 0 {
					m.Shape = []int64{m.Size / max(1, m.DType.Size())}
				} else {
					m.DType = ir.Invalid
				}
			}
		}
		return r.with(i, &g)
	})
}

// words leaves out what is for people: labels and what commands were made of.
func (r *reducer) words(i int) {
	g := r.m.Graphs[i].Clone()
	any := false
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Dispatch:
			any = any || n.Label != "" || n.From != nil
			n.Label, n.From = "", nil
		case *ir.Copy:
			any = any || n.Label != "" || n.From != nil
			n.Label, n.From = "", nil
		case *ir.Fill:
			any = any || n.Label != "" || n.From != nil
			n.Label, n.From = "", nil
		case *ir.Commit:
			any = any || n.Label != ""
			n.Label = ""
		}
	}
	if any {
		r.try(r.with(i, g))
	}
}
