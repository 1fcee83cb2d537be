package cost

import (
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Work is what one command costs.
type Work struct {
	Bytes      float64 // moved
	Operations float64 // that its results need, each counted once
	Repeated   Repeated
	Alone      Seconds // the time that it takes alone
}

// Estimator is a model applied to one graph, at values of its params. It is for one
// goroutine.
type Estimator struct {
	Model
	g        *ir.Graph
	params   []uint32 // nil: each expression takes its max over all params
	declared *msl.Cache
	forms    map[*decl.Form]Work
}

// For returns an estimator for the commands of g, with each param in the middle of its bounds. It is for
// comparing schedules.
func (m Model) For(g *ir.Graph) *Estimator {
	params := make([]uint32, len(g.Params))
	for i, p := range g.Params {
		if p.Type == ir.U32 {
			params[i] = uint32((p.Min + p.Max) / 2)
		}
	}
	return m.At(g, params)
}

// AtMost returns an estimator for the commands of g which takes the max of every size over all params. It is
// for bounds.
func (m Model) AtMost(g *ir.Graph) *Estimator { return m.At(g, nil) }

// At returns an estimator for the commands of g at the given values of its params.
func (m Model) At(g *ir.Graph, params []uint32) *Estimator {
	return &Estimator{Model: m, g: g, params: params, declared: msl.NewCache(g), forms: map[*decl.Form]Work{}}
}

// Param returns the value of a param that times are modelled at.
func (e *Estimator) Param(p ir.ParamID) uint32 { return e.params[p] }

// value is the value of a at the estimator's params, or its max if there are none; never less than 0.
func (e *Estimator) value(a ir.Affine) float64 {
	if e.params != nil {
		return max(0, float64(a.Eval(e.params)))
	}
	_, hi, ok := e.g.Range(a)
	if !ok {
		return 0
	}
	return max(0, float64(hi))
}

// Dispatch returns the time that a command of g takes alone, or 0 for a node that executes nothing.
func (m Model) Dispatch(g *ir.Graph, n ir.Node) Seconds { return m.For(g).Work(n).Alone }

// Work returns the cost of a command, or none for a node that executes nothing.
func (e *Estimator) Work(n ir.Node) Work {
	switch n := n.(type) {
	case *ir.Dispatch:
		return e.dispatch(n)
	case *ir.Copy:
		return e.blit(2 * e.value(n.Dst.Len))
	case *ir.Carry:
		return e.blit(2 * e.value(n.Dst.Len))
	case *ir.Fill:
		return e.blit(e.value(n.Dst.Len))
	}
	return Work{}
}

// dispatch is Work of a dispatch. Dispatches of the same kernel and sizes do the same work, the one
// that the kernel declares.
func (e *Estimator) dispatch(d *ir.Dispatch) Work {
	k := &e.g.Kernels[d.Kernel]
	if !msl.Declared(k) {
		return e.work(d, d.Effects, k.Function, 0, Repeated{}, true)
	}
	form := e.declared.Form(d)
	if w, ok := e.forms[form]; invariants.Caches && ok {
		return w
	}
	effects, operations, again, some := d.Effects, 0.0, Repeated{}, true
	if in, err := e.declared.Bind(d); err == nil {
		operations, again = e.operations(in)
		some = gathers(in.Decl)
		if declared, err := in.Effects(); err == nil {
			effects = declared
		}
	}
	w := e.work(d, effects, k.Function, operations, again, some)
	if form != nil {
		e.forms[form] = w
	}
	return w
}

// Instance is Work of a dispatch with the given effects, which need not be part of the graph.
func (e *Estimator) Instance(in *decl.Instance, effects *ir.Effects) Work {
	operations, again := e.operations(in)
	return e.work(in.Dispatch, effects, in.Decl.Name, operations, again, gathers(in.Decl))
}

// Fused is Instance of a dispatch that replaces several others. It counts the given number of operations, that of
// the replaced dispatches, however its own terms are written; what its threadgroups repeat is added. longest
// is the time of the longest replaced dispatch alone, see [Model.Unmeasured].
func (e *Estimator) Fused(in *decl.Instance, effects *ir.Effects, operations float64, longest Seconds) Work {
	_, again := e.operations(in)
	w := e.work(in.Dispatch, effects, in.Decl.Name, operations, again, gathers(in.Decl))
	w.Alone = e.Unmeasured(in.Decl.Name, w.Alone, longest)
	return w
}

// Unmeasured corrects the modelled time of a kernel that replaces others, the longest of which takes `longest`.
// If the model has measured kernels but not this one, the result is at least longest: the overhead that was
// measured for the replaced kernels is the new one's too, and the typical latency may be too low.
func (m *Model) Unmeasured(function string, modelled, longest Seconds) Seconds {
	if _, ok := m.Kernels[function]; ok || len(m.Kernels) == 0 {
		return modelled
	}
	return max(modelled, longest)
}

func (e *Estimator) work(d *ir.Dispatch, effects *ir.Effects, function string, operations float64, again Repeated, some bool) Work {
	w := Work{Bytes: e.bytes(d, effects, some), Operations: operations, Repeated: again}
	if k, ok := e.Kernels[function]; ok {
		w.Alone = k.At(w.Bytes)
	} else {
		w.Alone = e.alone(w, e.groups(d))
	}
	return w
}

func (e *Estimator) blit(bytes float64) Work {
	w := Work{Bytes: bytes}
	w.Alone = e.alone(w, bytes/copyGroup)
	return w
}

// alone is the time of a dispatch of the given work, spread over a number of threadgroups, with nothing beside it.
func (e *Estimator) alone(w Work, groups float64) Seconds {
	share := min(1, max(1, groups)/float64(max(1, e.Cores)))
	return e.Launch + e.Latency + (e.busy(w.Bytes, w.Operations)+e.repeat(w.Repeated))/Seconds(share)
}

// repeat is how long the whole chip takes for work that threadgroups repeat. Threadgroups begin with this
// work, so that it overlaps with nothing else.
func (m *Model) repeat(again Repeated) Seconds {
	return Seconds(max(again.Bytes/(float64(max(1, m.Cores))*cacheOfCore), again.Operations/m.Rate))
}

// cacheOfCore is how many bytes a second a core reads from its cache: 64 a clock of 1.28 GHz [M1]. An
// assumption: nobody documents it.
const cacheOfCore = 64 * 1.28e9

// copyGroup is the number of bytes that a threadgroup of a blit is taken to
// move: 1024 threads of 16 bytes. An assumption: nobody documents it.
const copyGroup = 16 << 10

// perThread is the number of bytes of one argument that a thread reads at most.
// A gather may read any row of a table, so its effect is the whole table; but
// no thread of a kernel that is written to be fast reads more than this. An
// assumption: those of our library read 30 to 200 in a model's graph. Only products of
// dense matrices with long vectors read up to 3,600, and they read all that their effects name.
const perThread = 1 << 10

// perThreadScattered is the same of bytes that a thread writes to places that memory decides, such as rows of a cache: those of
// which a dispatch may write any. An assumption: those of ggml's kernels that set rows write 2 to 16.
const perThreadScattered = 64

// extent is the value of a dimension of a grid.
func (e *Estimator) extent(x ir.Extent) float64 {
	return math.Ceil(e.value(x.Num) / float64(x.Div))
}

func (e *Estimator) threads(d *ir.Dispatch) float64 {
	n := 1.0
	for i, x := range d.Grid {
		if x.Div < 1 {
			continue
		}
		v := e.extent(x)
		if d.GridKind == ir.Threadgroups {
			v *= float64(d.Threadgroup[i])
		}
		n *= v
	}
	return n
}

func (e *Estimator) groups(d *ir.Dispatch) float64 {
	n := 1.0
	for i, x := range d.Grid {
		if x.Div < 1 {
			continue
		}
		v := e.extent(x)
		if d.GridKind == ir.Threads {
			v /= float64(max(1, d.Threadgroup[i]))
		}
		n *= max(v, 1.0/1024)
	}
	return n
}

// gathers reports whether memory decides what a kernel reads: its terms have an element whose place is an element of something else.
func gathers(d *decl.Decl) (found bool) {
	look := func(x *term.Expr) {
		if x.Op != term.Load {
			return
		}
		for _, at := range x.Args {
			at.Walk(func(x *term.Expr) { found = found || x.Op == term.Load })
		}
	}
	for _, w := range d.Wheres {
		w.Body.Walk(look)
	}
	for _, r := range d.Results {
		r.Body.Walk(look)
	}
	return found
}

// bytes is how many bytes a dispatch moves; some: it may read only some of what its effects name.
func (e *Estimator) bytes(d *ir.Dispatch, effects *ir.Effects, some bool) float64 {
	total := 0.0
	if !effects.Known() {
		// The effects are not known; the sizes of the bound views are the best guess.
		for i := range d.Bindings {
			if b := &d.Bindings[i]; b.Kind == ir.BindView {
				total += e.value(b.View.Len)
			}
		}
		return total
	}
	threads := e.threads(d)
	for i := range effects.Reads {
		r := &effects.Reads[i]
		if slices.ContainsFunc(effects.Writes, func(w ir.Write) bool { return !w.Must && w.Region.Equal(*r) }) {
			continue // counted with the write
		}
		n := e.region(r)
		if some {
			n = min(n, threads*perThread)
		}
		total += n
	}
	for i := range effects.Writes {
		w := &effects.Writes[i]
		n := e.region(&w.Region)
		if !w.Must {
			n = 2 * min(n, threads*perThreadScattered) // bytes that may keep their old values are read too
		}
		total += n
	}
	return total
}

// region is the number of bytes of a region, at most its span: overlapping bytes count once.
func (e *Estimator) region(r *ir.Region) float64 {
	n := e.value(r.Run)
	span := n
	for _, d := range r.Dims {
		count := e.value(d.Count)
		span += max(0, count-1) * math.Abs(float64(d.Stride))
		if d.Stride != 0 { // stride 0 repeats the same bytes, which move once
			n *= count
		}
	}
	return min(n, span)
}
