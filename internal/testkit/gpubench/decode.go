package main

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/replay"
)

// demonstration has the shapes of SmolLM2-135M, with codes of 4 bits, of the embedding 8.
var demonstration = gguf.Synthetic{
	Config: gguf.Config{
		Name: "SmolLM2-135M", Layers: 30, Embedding: 576, FFN: 1536, Heads: 9, KVHeads: 3, HeadDim: 64,
		Vocab: 49152, Context: 2048, RopeTheta: 100000, NormEps: 1e-5,
	}, Bits: 4, EmbeddingBits: 8,
}

// billions has the shapes of a model of 8 billion parameters.
var billions = gguf.Synthetic{
	Config: gguf.Config{
		Name: "8B", Layers: 32, Embedding: 4096, FFN: 14336, Heads: 32, KVHeads: 8, HeadDim: 128,
		Vocab: 128256, Context: 1024, RopeTheta: 500000, NormEps: 1e-5,
	}, Bits: 4, EmbeddingBits: 4, Untied: true,
}

// small is a model with the same kernels, for a try.
func small(m gguf.Synthetic) gguf.Synthetic {
	m.Layers, m.Vocab, m.Context = 2, 256, 64
	m.Embedding, m.FFN = m.Embedding/9, m.FFN/6
	if m.Embedding%64 != 0 {
		m.Embedding, m.FFN = 512, 1024
	}
	m.Heads, m.KVHeads = m.Embedding/m.HeadDim, 1
	return m
}

// making is a module and the pipeline that runs on it.
type making struct {
	of       *ir.Module
	pipeline string
}

// optimized runs a pipeline on the graphs of a module, once by what is believed of kernels.
func (b *bench) optimized(m *ir.Module, pipeline string) (*ir.Module, error) {
	if pipeline == "" {
		return m, nil
	}
	if made := b.made[making{m, pipeline}]; made != nil {
		out := &ir.Module{Data: made.Data}
		for _, g := range made.Graphs {
			out.Graphs = append(out.Graphs, g.Clone())
		}
		return out, nil
	}
	p, err := passes.ParsePipeline(pipeline)
	if err != nil {
		return nil, err
	}
	out := &ir.Module{Data: m.Data}
	for _, g := range m.Graphs {
		r, err := optimize.Run(b.ctx, g, optimize.Options{Pipeline: p, Passes: passes.Options{Model: b.choice()}})
		if err != nil {
			return nil, err
		}
		if r.Proof.Verdict != prove.Proved {
			return nil, fmt.Errorf("not proved: %s", r.Proof)
		}
		out.Graphs = append(out.Graphs, r.Optimized)
	}
	if b.made == nil {
		b.made = map[making]*ir.Module{}
	}
	b.made[making{m, pipeline}] = out
	return b.optimized(m, pipeline)
}

// setter sets what a replay begins with.
type setter = func(*replay.Frame) error

// first sets a step's position and token.
func first(pos int) setter {
	return func(f *replay.Frame) error {
		if err := f.SetParam("pos", float64(pos)); err != nil {
			return err
		}
		return f.SetInput("tokens", binary.LittleEndian.AppendUint32(nil, 7))
	}
}

// defaults is the text of the default pipeline, pass by pass.
func defaults() (names []string) {
	for _, s := range passes.DefaultPipeline() {
		names = append(names, s.String())
	}
	return names
}

// decode measures the demonstration model in each form.
func (b *bench) decode() error {
	shape, tokens := demonstration, b.tokens
	if b.tiny {
		shape, tokens = small(shape), min(b.tokens, 8)
	}
	recorded, err := shape.Record(b.ctx, gguf.Options{Advance: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\n%s, %d tokens from position 0, ids found and carried on the device\n", shape.Name, tokens)
	fmt.Fprintf(b.out, "\n| form | dispatches | epochs | tokens/s | µs a token | host, µs a token | floor, µs | modelled, µs | µs, least–greatest |\n|---|---|---|---|---|---|---|---|---|\n")
	recorded = &ir.Module{Graphs: recorded.Graphs[:1]}
	form := func(name, pipeline string, p plan) {
		if b.late(name) {
			return
		}
		m, err := b.optimized(recorded, pipeline)
		if err != nil {
			b.fail(name, err)
			return
		}
		if err := b.tokensOf(name, m, p, tokens, 0); err != nil {
			b.fail(name, err)
		}
	}
	names := defaults()
	all := strings.Join(names, ",")
	// steps are the pipelines without fused kernels, with the first, and so on, and the kernels that are added.
	steps := func() (pipelines, fused []string, err error) {
		m, err := b.optimized(recorded, all)
		if err != nil {
			return nil, nil, err
		}
		fused = newFunctions(recorded.Graphs[0], m.Graphs[0])
		for i := range fused {
			pipelines = append(pipelines, strings.Replace(all, "fuse", "fuse{without="+strings.Join(fused[i:], "+")+"}", 1))
		}
		return append(pipelines, all), fused, nil
	}
	if err := b.settle(recorded, tokens/2, first, func() ([]string, error) {
		pipelines, _, err := steps()
		return append([]string{"", all}, pipelines...), err
	}); err != nil {
		b.fail("commands, one by one", err)
	}
	form("recorded, on a stream", "", onStream)
	form("recorded, graph", "", asChain)
	form("recorded, graph, kernels wait by themselves", "", waiting)
	for i := range names {
		if i == 0 {
			continue // what annotates changes nothing that runs
		}
		form("passes to "+names[i], strings.Join(names[:i+1], ","), waiting)
	}
	form("all passes, on a stream", all, onStream)
	form("all passes, graph", all, asChain)
	form("all passes, graph, kernels wait by themselves, in a loop", all, looping)
	form("all passes and edges, graph of edges", all+",edges", byEdges)
	form("all passes and edges, graph of edges, kernels wait by themselves", all+",edges", edgesToo)

	// What each fused kernel is worth: none of them, then one more in each row. The last has all, and so is the
	// form of the rows above.
	pipelines, fused, err := steps()
	if err != nil {
		return err
	}
	for i, p := range pipelines {
		name := "all passes, without fused kernels"
		if i > 0 {
			name = "and " + fused[i-1]
		}
		form(name, p, waiting)
	}
	return nil
}

// newFunctions are the kernels of the library that g has and the recording has not, as they come.
func newFunctions(recorded, g *ir.Graph) (out []string) {
	known := map[string]bool{}
	for _, k := range recorded.Kernels {
		known[k.Function] = true
	}
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		k := &g.Kernels[d.Kernel]
		if k.Library.Kind == ir.Builtin && !known[k.Function] {
			known[k.Function] = true
			out = append(out, k.Function)
		}
	}
	return out
}

// tokensOf measures steps of one token in a row.
func (b *bench) tokensOf(name string, m *ir.Module, p plan, tokens, pos int) error {
	d, end, err := b.open(p)
	if err != nil {
		return err
	}
	defer end()
	t, err := b.time(d, m, "decode", tokens, b.rounds, first(pos))
	if err != nil {
		return err
	}
	b.report(name, m.Graphs[0], p, t, pos+tokens/2)
	return nil
}

// report prints a row of steps of one token, whose graph is g, launched by a plan; pos is the position in
// the middle of them.
func (b *bench) report(name string, g *ir.Graph, p plan, t sample, pos int) {
	f, err := optimize.Measure(b.ctx, g, b.model)
	if err != nil {
		b.fail(name, err)
		return
	}
	each := middle(t.wall)
	floor, modelled := float64(f.Epochs)*b.serial, 1e6*b.modelled(g, p, pos)
	b.row(name, map[string]any{
		"dispatches": f.Dispatches, "epochs": f.Epochs, "microseconds": 1e6 * each, "device_microseconds": 1e6 * middle(t.device),
		"host_microseconds": 1e6 * middle(t.host), "floor_microseconds": 1e6 * floor, "modelled_microseconds": modelled, "position": pos,
		"kernels": histogram(g),
	}, "| %s | %d | %d | %.0f | %.1f | %.1f | %.0f | %.0f (%+.0f %%) | %s |\n", name, f.Dispatches, f.Epochs, 1/each, 1e6*each, 1e6*middle(t.host),
		1e6*floor, modelled, 100*(modelled/(1e6*each)-1), around(t.wall))
}

// histogram counts the dispatches of each kernel.
func histogram(g *ir.Graph) map[string]int {
	out := map[string]int{}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			out[g.Kernels[d.Kernel].Function]++
		}
	}
	return out
}

// large measures the model of 8 billion parameters.
func (b *bench) large() error {
	shape, tokens, prompt := billions, min(b.tokens, 64), 512
	if b.tiny {
		shape, tokens, prompt = small(shape), 4, 8
	}
	recorded, err := shape.Record(b.ctx, gguf.Options{Advance: true, Prefill: int64(prompt)})
	if err != nil {
		return err
	}
	names := defaults()
	m, err := b.optimized(recorded, strings.Join(names, ","))
	if err != nil {
		return err
	}
	d, end, err := b.open(waiting)
	if err != nil {
		return err
	}
	defer end()
	in, err := replay.Open(d, m, replay.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	fmt.Fprintf(b.out, "\n| %s | dispatches | epochs | tokens/s | µs a token | host, µs a token | floor, µs | modelled, µs | µs, least–greatest |\n|---|---|---|---|---|---|---|---|---|\n", shape.Name)
	g := m.Graphs[0]
	for _, pos := range []int{0, prompt} {
		if b.late("decode") || pos+tokens > int(shape.Context) {
			break
		}
		t, err := b.timeOn(in, "decode", tokens, max(2, b.rounds/2), first(pos))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d tokens from position %d", tokens, pos)
		b.report(name, g, waiting, t, pos+tokens/2)
		bytes := b.bytesAt(g, pos+tokens/2)
		if b.copy > 0 {
			bound := bytes / b.copy
			b.row(name+", bound", map[string]any{"bytes": bytes, "microseconds": 1e6 * bound}, "| its bytes, %.2f GB, at a copy's bandwidth | | | %.0f | %.0f | | | %.0f %% of it reached | |\n",
				bytes/1e9, 1/bound, 1e6*bound, 100*bound/middle(t.wall))
		}
	}
	if b.late("prompt") {
		return nil
	}
	ids := make([]byte, 4*prompt)
	for i := range prompt {
		binary.LittleEndian.PutUint32(ids[4*i:], uint32(i)%uint32(shape.Vocab))
	}
	if err := b.prompt(in, "", m, prompt, ids); err != nil {
		return err
	}
	if err := b.withoutTensorCores(m, prompt, ids); err != nil {
		return err
	}
	return b.where(m, prompt, ids)
}

// prompt measures a prompt at once.
func (b *bench) prompt(in *replay.Instance, how string, m *ir.Module, prompt int, ids []byte) error {
	t, err := b.timeOn(in, "prefill", 1, 3, func(f *replay.Frame) error {
		if err := f.SetParam("pos", 0); err != nil {
			return err
		}
		if err := f.SetParam("n", float64(prompt)); err != nil {
			return err
		}
		return f.SetInput("tokens", ids)
	})
	if err != nil {
		return err
	}
	each := middle(t.wall)
	b.row("prompt"+how, map[string]any{"tokens": prompt, "microseconds": 1e6 * each, "kernels": histogram(m.Graphs[1])}, "| a prompt of %d tokens%s | | | %.0f | %.1f | | | | %s, all |\n", prompt, how, float64(prompt)/each, 1e6*each/float64(prompt), around(t.wall))
	return nil
}

// withoutTensorCores measures what they are worth to a prompt.
func (b *bench) withoutTensorCores(m *ir.Module, prompt int, ids []byte) error {
	if b.late("prompt without tensor cores") {
		return nil
	}
	d, end, err := b.open(plain)
	if err != nil {
		return err
	}
	defer end()
	in, err := replay.Open(d, m, replay.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	return b.prompt(in, ", without tensor cores", m, prompt, ids)
}

// bytesAt is what the commands of g move at a position.
func (b *bench) bytesAt(g *ir.Graph, pos int) (bytes float64) {
	g = optimize.Annotated(b.ctx, g)
	e := b.model.OrDefault().At(g, at(g, pos))
	for _, n := range g.Nodes {
		if _, ok := n.(ir.Command); ok {
			bytes += e.Work(n).Bytes
		}
	}
	return bytes
}

// where says which kernels take the time of a prompt, each timed by itself.
func (b *bench) where(m *ir.Module, prompt int, ids []byte) error {
	d, end, err := b.open(onStream)
	if err != nil {
		return err
	}
	defer end()
	in, err := replay.Open(d, m, replay.Options{Profile: true})
	if err != nil {
		return err
	}
	defer in.Close()
	g, err := in.Graph(b.ctx, "prefill")
	if err != nil {
		return err
	}
	for name, v := range map[string]int{"pos": 0, "n": prompt} {
		if err := g.SetParam(name, float64(v)); err != nil {
			return err
		}
	}
	if err := g.SetInput("tokens", ids); err != nil {
		return err
	}
	if _, err := g.Run(b.ctx); err != nil { // fills caches
		return err
	}
	t, err := g.Run(b.ctx)
	if err != nil {
		return err
	}
	sums, kernels, total := map[string]float64{}, map[ir.ID]string{}, 0.0
	for _, n := range g.IR().Nodes {
		if x, ok := n.(*ir.Dispatch); ok {
			kernels[x.Num()] = g.IR().Kernels[x.Kernel].Function
		}
	}
	for _, c := range t.Commands {
		sums[kernels[c.ID]] += c.Duration().Seconds()
		total += c.Duration().Seconds()
	}
	b.rows = append(b.rows, map[string]any{"what": "kernels of the prompt, seconds", "seconds": sums})
	if total == 0 {
		return nil
	}
	fmt.Fprintf(b.out, "\n| kernel of the prompt | ms | share |\n|---|---|---|\n")
	names := slices.SortedFunc(maps.Keys(sums), func(l, r string) int { return int(1e9*sums[r]) - int(1e9*sums[l]) })
	for _, k := range names[:min(6, len(names))] {
		fmt.Fprintf(b.out, "| %.80s | %.2f | %.0f %% |\n", k, 1e3*sums[k], 100*sums[k]/total)
	}
	return nil
}

// choice is the profile by which kernels are chosen: the measured one. What the small sizes of a try
// measure says nothing, and would have each try choose other kernels, so that one has the usual profile.
func (b *bench) choice() cost.Model {
	if b.tiny {
		return cost.Model{}.OrDefault()
	}
	return b.model
}
