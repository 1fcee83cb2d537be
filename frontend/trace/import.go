package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Options of an import.
type Options struct {
	// Folder is where the module names the libraries that it needs, relative to its own file.
	Folder string
	// Param is the name of the number that counts the runs of steps which do not say their params; default pos.
	Param string
	// Max has the greatest values of params; default: as far as the buffers reach.
	Max map[string]uint32
	// Builtin takes kernels that have names of MLX's from the builtin library, which declares what they do. Whether the program's own
	// compute the same is not looked at.
	Builtin bool
	// Outputs are the names of memories that shall be outputs though kernels read them last: that the host reads them too is in no log.
	Outputs []string
	// Values takes it that a kernel which may touch everything behind what it gets, since indices in memory say what, touches no more than
	// the value that lies there: what some dispatch of the step has written, as one run of bytes.
	Values bool
	// Trust compiles Metal sources of the log where the compiler cannot be confined.
	Trust bool
}

// Result is what a log became.
type Result struct {
	Module  *ir.Module
	Files   []File   // libraries, to be written at their paths
	Runs    []Run    // of the graphs, in the order of the log
	Remarks []string // what the log does not say, and what was made of that
}

// maxGraphs bounds the number of graphs of a module; those that ran most often are kept.
const maxGraphs = 32

// Import makes graphs of a log: one of each step, or of each sequence of command buffers between two waits of the host. Steps that
// differ in numbers alone are runs of one graph. The module refers to the log's bytes: it must not be used after Log.Close.
func Import(ctx context.Context, l *Log, o Options) (_ *Result, err error) {
	defer mmap.Catch(&err)()
	defer interrupt.Catch(&err)
	o.Param = cmp.Or(o.Param, "pos")
	out, parts, err := importAs(ctx, l, o, true)
	if err != nil && parts && ctx.Err() == nil {
		// Lives of parts of buffers are not the same in all runs, perhaps.
		if again, _, e := importAs(ctx, l, o, false); e == nil {
			return again, nil
		}
	}
	return out, err
}

// importAs is Import. With parts set lives may begin anywhere in a buffer, else where the buffer does; it reports whether that matters.
func importAs(ctx context.Context, l *Log, o Options, parts bool) (_ *Result, some bool, err error) {
	w, err := follow(ctx, l)
	if err != nil {
		return nil, some, err
	}
	out := &Result{Module: &ir.Module{}}
	remark := func(format string, args ...any) { out.Remarks = append(out.Remarks, fmt.Sprintf(format, args...)) }
	if l.Cut > 0 {
		remark("the last %d bytes of the log belong to an event that was not finished: the program ended there", l.Cut)
	}
	for _, what := range w.unknown {
		remark("not in the graph as it was: %s", what)
	}
	k := newKernels(ctx, w, l, &o)
	defer func() {
		// What a kernel that nobody could read is taken to do may contradict what the log says of memory.
		if err != nil && ctx.Err() == nil && len(k.reasons) > 0 {
			err = fmt.Errorf("%w; kernels %s", err, k.reasons[0])
		}
	}()
	for _, s := range w.steps {
		if w.graph(s) {
			k.zeroUnread(s)
		}
	}
	if k.kept, err = k.keep(w); err != nil {
		return nil, some, err
	}
	k.parts = parts && k.kept != nil
	some = k.parts
	groups, err := w.groups(ctx, k)
	if fine := len(groups); err == nil && k.parts && fine > 1 {
		// Where runs differ in their lives alone, one graph of fewer lives is better than several.
		k.parts = false
		if groups, err = w.groups(ctx, k); err == nil && len(groups) == fine {
			k.parts = true
			groups, err = w.groups(ctx, k)
		}
	}
	if err != nil {
		return nil, some, err
	}
	if len(groups) == 0 {
		return nil, some, l.fault(headerSize, "no dispatch was committed")
	}
	if len(groups) > maxGraphs {
		remark("%d different sequences of commands were committed; the %d that ran most often are kept (mark steps in the log)", len(groups), maxGraphs)
		slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(len(b.runs), len(a.runs)) })
		groups = groups[:maxGraphs]
		slices.SortFunc(groups, func(a, b *group) int { return cmp.Compare(a.runs[0].index, b.runs[0].index) })
	}
	for name := range o.Max {
		if !slices.ContainsFunc(groups, func(g *group) bool {
			return name == o.Param || slices.ContainsFunc(g.runs[0].params, func(p param) bool { return p.name == name })
		}) {
			return nil, some, fmt.Errorf("%s: no step has the param %q, whose greatest value is given", l.Name, name)
		}
	}
	for _, g := range groups {
		g.join()
	}
	if err := w.enter(k, groups); err != nil {
		return nil, some, err
	}
	if groups, err = fitAll(ctx, l, k, groups, o.Param, remark); err != nil {
		return nil, some, err
	}
	builders := make([]*builder, len(groups))
	by := map[*group]*builder{}
	windows := false
	remarks := out.Remarks
	for pass := range 2 {
		for i, g := range groups {
			if builders[i], err = build(ctx, w, g, k, &o, remark); err != nil {
				return nil, some, err
			}
			by[g] = builders[i]
		}
		if pass == 1 {
			break
		}
		for _, b := range builders {
			windows = b.window(ctx) || windows
		}
		if !windows {
			break
		}
		out.Remarks = remarks
		if err := w.enter(k, groups); err != nil {
			return nil, some, err
		}
	}
	c, err := w.carry(ctx, groups, func(p part) bool { return by[p.g].finds[p.role] }, func(p part) bool { return by[p.g].unsure[p.role] }, remark)
	if err != nil {
		return nil, some, err
	}
	names := &stateNames{map[part]string{}, map[string]bool{}}
	for _, b := range builders {
		graph, err := b.finish(ctx, c, names)
		if err != nil {
			return nil, some, err
		}
		out.Module.Graphs = append(out.Module.Graphs, graph)
	}
	for _, name := range o.Outputs {
		if !slices.ContainsFunc(out.Module.Graphs, func(g *ir.Graph) bool {
			return slices.ContainsFunc(g.Memories, func(m ir.Memory) bool { return m.Name == name && m.Kind == ir.Output })
		}) {
			return nil, some, fmt.Errorf("%s: no graph writes a memory %q that could be an output", l.Name, name)
		}
	}
	out.Runs = w.runs(builders)
	for _, why := range k.reasons {
		names := k.unknown[why]
		if n := len(names); n > 8 {
			names = append(names[:8:8], fmt.Sprintf("and %d more", n-8))
		}
		remark("kernels %s: %s", why, strings.Join(names, ", "))
	}
	if n := len(k.byName); n > 0 {
		remark("%d kernels are those of the builtin library, by their names alone: whether the program's compute the same is not known", n)
	}
	if n := len(k.reachers); n > 0 && o.Values {
		remark("what %s touches follows from memory: that it lies within the value that a dispatch gets is believed", strings.Join(k.reachers, ", "))
	} else if n > 0 {
		remark("%s may touch all that lies behind what a dispatch gets, which keeps the parts of a buffer together (--values believes that it stays within the value there)", strings.Join(k.reachers, ", "))
	}
	out.Files = k.files
	return out, some, nil
}

// fitAll finds the numbers of groups. Runs of one shape whose buffers have several sizes, or whose numbers follow no param but
// repeat, are several graphs if they cannot be one.
func fitAll(ctx context.Context, l *Log, k *kernels, groups []*group, param string, remark func(string, ...any)) (out []*group, err error) {
	names := map[string]int{}
	for _, g := range groups {
		names[g.name]++
	}
	for _, g := range groups {
		if err := g.give(k); err != nil {
			return nil, err
		}
		fault := error(nil)
		if g.fitted, fault = g.fit(ctx, k, param); fault == nil {
			out = append(out, g)
			continue
		}
		parts := g.bySize()
		if parts == nil {
			if parts = g.split(); len(parts) < 2 || len(groups)+len(parts) > maxGraphs {
				return nil, fault
			}
			remark("graph %s: its numbers follow no param: %d graphs, each of runs that are the same", g.name, len(parts))
		}
		for i, p := range parts {
			for _, r := range p.runs {
				r.of, r.numbers, r.grid = p, r.numbers[:g.hard], r.grid[:g.hard]
			}
			for base, n := p.name, 2; i > 0 && names[p.name] > 0; n++ {
				p.name = fmt.Sprintf("%s.%d", base, n)
			}
			names[p.name]++
			if err := p.give(k); err != nil {
				return nil, err
			}
			p.again = g.again
			if p.fitted, err = p.fit(ctx, k, param); err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// groups returns the steps with dispatches, those of one shape together, in the order in which they first ran.
func (w *world) groups(ctx context.Context, k *kernels) (out []*group, err error) {
	type kind struct {
		shape [32]byte
		name  string
	}
	by := map[kind]*group{}
	names := map[string]int{}
	clear(k.wrote)
	count := 0 // of steps that become runs: what else is committed between them does not count
	for i, s := range w.steps {
		if !w.graph(s) {
			continue
		}
		r, err := canonical(ctx, k, s, i, count)
		if err != nil {
			return nil, err
		}
		count++
		key := kind{r.shape, s.name}
		g := by[key]
		if g == nil {
			g = &group{name: cmp.Or(s.name, "step")}
			if names[g.name]++; names[g.name] > 1 {
				g.name = fmt.Sprintf("%s%d", g.name, names[g.name])
			}
			by[key] = g
			out = append(out, g)
		}
		g.runs = append(g.runs, r)
	}
	return out, nil
}

// graph reports whether a step becomes a graph: it has dispatches and, if any step of the log is marked, is marked.
func (w *world) graph(s *step) bool { return s.dispatches() > 0 && (s.marked || !w.marked) }
