package optimize

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// ReduceLimit is the max time for which [Reduce] looks for a smaller recording.
const ReduceLimit = 10 * time.Second

// Reduced is a small recording for which the proof refuses the result.
type Reduced struct {
	Before   *ir.Graph
	After    *ir.Graph // what the pipeline makes of it
	Pipeline passes.Pipeline
	Proof    *prove.Result
}

// Reduce makes a recording smaller for which the result of o's pipeline is refused. It takes at
// most limit. It leaves out passes that are not needed for that, then commands, halves first and
// then one by one, then contents, and memories and kernels that nothing uses. If the recording is
// proved equal to itself, so is the smaller one. It returns nil if the result for recorded is not
// refused.
func Reduce(ctx context.Context, recorded *ir.Graph, o Options, limit time.Duration) *Reduced {
	// The first and the last proof run in any case.
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	allowed, err := o.Pipeline.Allowed(o.Passes)
	if err != nil {
		return nil
	}
	o.Proof.Allow = slices.Concat(o.Proof.Allow, allowed)
	r := &reducer{ctx: ctx, o: o, g: recorded.Clone(), pipeline: o.Pipeline, own: prove.Check(ctx, recorded, recorded.Clone(), o.Proof).Verdict}
	r.g.Source = nil
	if !r.refused(r.g, r.pipeline) {
		return nil
	}
	r.ctx = limited
	r.dropPasses()
	r.dropCommands()
	for _, change := range []func(*ir.Graph){forgetContents, Prune} {
		g := r.g.Clone()
		change(g)
		r.try(g)
	}
	after := r.g.Clone()
	po := o.Passes
	po.After, po.Budget = nil, passes.Budget{}
	if _, err := passes.Run(ctx, after, r.pipeline, po); err != nil {
		return nil // it was refused when it ran before
	}
	return &Reduced{Before: r.g, After: after, Pipeline: r.pipeline, Proof: prove.Check(ctx, r.g, after, o.Proof)}
}

type reducer struct {
	ctx      context.Context
	o        Options
	own      prove.Verdict // verdict of the recording against itself
	g        *ir.Graph
	pipeline passes.Pipeline
}

// refused reports whether the result for g is refused, and g is proved equal to itself if the
// recording is.
func (r *reducer) refused(g *ir.Graph, p passes.Pipeline) bool {
	return g.Check() == nil && r.o.verdict(r.ctx, g, p) == prove.Refused && prove.Check(r.ctx, g, g.Clone(), r.o.Proof).Verdict == r.own
}

// try replaces the recording by g if the result for g is still refused.
func (r *reducer) try(g *ir.Graph) bool {
	if r.ctx.Err() != nil || !r.refused(g, r.pipeline) {
		return false
	}
	r.g = g
	return true
}

func (r *reducer) dropPasses() {
	for i := len(r.pipeline) - 1; i >= 0 && r.ctx.Err() == nil; i-- {
		shorter := append(append(passes.Pipeline(nil), r.pipeline[:i]...), r.pipeline[i+1:]...)
		if r.refused(r.g, shorter) {
			r.pipeline = shorter
		}
	}
}

// dropCommands removes runs of nodes, marks included, until none can be removed (Zeller,
// Hildebrandt 2002, without its complements).
func (r *reducer) dropCommands() {
	for size := (len(r.g.Nodes) + 1) / 2; size > 0 && r.ctx.Err() == nil; {
		dropped := false
		for end := len(r.g.Nodes); end > 0 && r.ctx.Err() == nil; end -= size {
			at := max(0, end-size)
			g := *r.g
			g.Nodes = append(append([]ir.Node(nil), r.g.Nodes[:at]...), r.g.Nodes[end:]...)
			g.DropLooseEdges()
			if r.try(&g) {
				dropped = true
			}
		}
		if !dropped || size > 1 {
			size /= 2
		}
	}
}

// forgetContents replaces blobs by random numbers, so that the text needs no other file.
func forgetContents(g *ir.Graph) {
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Init.Kind == ir.InitBlob {
			m.Init = ir.Init{Kind: ir.InitRandom, Seed: uint64(i) + 1}
		}
	}
}

// Prune removes memories and kernels that no command names.
func Prune(g *ir.Graph) {
	memories, kernels := make([]bool, len(g.Memories)), make([]bool, len(g.Kernels))
	eachMemory(g, func(m *ir.MemID) {
		for x := *m; x != ir.NoMem; x = g.Memories[x].Alias {
			memories[x] = true
		}
	})
	eachKernel(g, func(k *ir.KernelID) { kernels[*k] = true })
	toMemory, toKernel := make([]ir.MemID, len(memories)), make([]ir.KernelID, len(kernels))
	var ms []ir.Memory
	for i, used := range memories {
		if toMemory[i] = ir.MemID(len(ms)); used {
			ms = append(ms, g.Memories[i])
		}
	}
	var ks []ir.Kernel
	for i, used := range kernels {
		if toKernel[i] = ir.KernelID(len(ks)); used {
			ks = append(ks, g.Kernels[i])
		}
	}
	eachMemory(g, func(m *ir.MemID) { *m = toMemory[*m] })
	eachKernel(g, func(k *ir.KernelID) { *k = toKernel[*k] })
	for i := range ms {
		if m := &ms[i]; m.Alias != ir.NoMem {
			m.Alias = toMemory[m.Alias]
		}
	}
	g.Memories, g.Kernels = ms, ks
}

func eachKernel(g *ir.Graph, f func(*ir.KernelID)) {
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			f(&d.Kernel)
		}
	}
}

func eachMemory(g *ir.Graph, f func(*ir.MemID)) {
	for _, n := range g.Nodes {
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		c.EachView(func(v *ir.View) { f(&v.Mem) })
		if d, ok := c.(*ir.Dispatch); ok && d.Effects != nil {
			for i := range d.Effects.Reads {
				f(&d.Effects.Reads[i].Mem)
			}
			for i := range d.Effects.Writes {
				f(&d.Effects.Writes[i].Mem)
			}
		}
	}
}

// Reproduction returns a reduced refusal as text: an archive (txtar) of the recording, the result
// of the pipeline, and the proof.
func (r *Reduced) Reproduction(where string) []byte {
	var names []string
	for _, s := range r.Pipeline {
		names = append(names, s.String())
	}
	list := strings.Join(names, ",")
	if list == "" {
		list = "none"
	}
	a := &txtar.Archive{Comment: fmt.Appendf(nil, "The proof of an optimized graph was refused; this is a small recording for which it still is.\nGraph %s of %s. Extract before.mlxt, then:\n\n\tmlxc optimize --passes='%s' -o after.mlxg before.mlxt\n\n",
		ir.QuoteName(r.Before.Name), where, list)}
	add := func(name string, data []byte) { a.Files = append(a.Files, txtar.File{Name: name, Data: data}) }
	text := func(g *ir.Graph) []byte {
		var b bytes.Buffer
		// Contents that are too long to print are only named.
		o := mlxt.Options{InlineLimit: 4096, External: func(*ir.Blob) (string, int64, bool) { return "(left out)", 0, true }}
		if err := o.Print(&b, &ir.Module{Graphs: []*ir.Graph{g}}); err != nil {
			fmt.Fprintf(&b, "\n// %v\n", err)
		}
		return b.Bytes()
	}
	add("before.mlxt", text(r.Before))
	add("after.mlxt", text(r.After))
	add("proof", []byte(r.Proof.String()+"\n"))
	return txtar.Format(a)
}
