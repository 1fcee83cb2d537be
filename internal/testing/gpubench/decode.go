package main

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// demonstration has the shapes of SmolLM2-135M, with codes of 4 bits, and of 8 bits for the embedding.
var demonstration = decoder.Synthetic{
	Config: decoder.Config{
		Name: "SmolLM2-135M", Layers: 30, Embedding: 576, FFN: 1536, Heads: 9, KVHeads: 3, HeadDim: 64,
		Vocab: 49152, Context: 2048, RopeTheta: 100000, NormEps: 1e-5,
	}, Bits: 4, EmbeddingBits: 8,
}

// billions has the shapes of a model of 8 billion parameters.
var billions = decoder.Synthetic{
	Config: decoder.Config{
		Name: "8B", Layers: 32, Embedding: 4096, FFN: 14336, Heads: 32, KVHeads: 8, HeadDim: 128,
		Vocab: 128256, Context: 1024, RopeTheta: 500000, NormEps: 1e-5,
	}, Bits: 4, EmbeddingBits: 4, Untied: true,
}

// small is a model with the same kernels, for a try.
func small(m decoder.Synthetic) decoder.Synthetic {
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
	blindly  bool
}

// optimized runs a pipeline on the graphs of a module, by the model as it is now, and remembers the result.
func (b *bench) optimized(m *ir.Module, pipeline string) (*ir.Module, error) {
	return b.optimizedBy(b.choice(), making{m, pipeline, false})
}

// blindly is optimized by a chip's public figures, as if nothing had been measured. Each command then costs a launch
// and a typical time beside it, so that what saves commands is chosen, even where the figures of kernels say that it
// does not pay: what is never chosen is never measured, and that those figures are wrong would go unnoticed. It does
// not depend on the run either, so that such rows are the same in each.
func (b *bench) blindly(m *ir.Module, pipeline string) (*ir.Module, error) {
	chip := cost.DefaultChip
	if b.device == "cuda" {
		chip = cost.H200
	}
	model, err := cost.Chip(chip)
	if err != nil {
		return nil, err
	}
	return b.optimizedBy(model, making{m, pipeline, true})
}

func (b *bench) optimizedBy(model cost.Model, how making) (*ir.Module, error) {
	m, pipeline := how.of, how.pipeline
	if pipeline == "" {
		return m, nil
	}
	if made := b.made[how]; made != nil {
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
		r, err := optimize.Run(b.ctx, g, optimize.Options{Pipeline: p, Passes: passes.Options{Model: model}})
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
	b.made[how] = out
	return b.optimizedBy(model, how) // copies, which the caller may change
}

// setter sets the params and inputs with which a replay begins.
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
	recorded, err := shape.Record(b.ctx, frontend.Options{Advance: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\n%s, %d tokens from position 0, ids found and carried on the device\n", shape.Name, tokens)
	fmt.Fprintf(b.out, "\n| form | dispatches | epochs | tokens/s | µs a token | host, µs a token | floor, µs | modelled, µs | µs, min–max |\n|---|---|---|---|---|---|---|---|---|\n")
	recorded = &ir.Module{Graphs: recorded.Graphs[:1]}
	took := map[string]float64{} // seconds of a token, of forms with programmatic dependent launches
	form := func(name, pipeline string, p plan, made func(*ir.Module, string) (*ir.Module, error)) {
		if b.late(name) {
			return
		}
		m, err := made(recorded, pipeline)
		if err != nil {
			b.fail(name, err)
			return
		}
		each, err := b.tokensOf(name, m, p, tokens, 0)
		if err != nil {
			b.fail(name, err)
			return
		}
		if p == waiting {
			took[name] = each
		}
	}
	names := defaults()
	all := strings.Join(names, ",")
	deeper, fused, err := b.deeper(recorded, all)
	if err != nil {
		return err
	}
	if err := b.looked(recorded, deeper, tokens/2); err != nil {
		b.fail("commands, one by one", err)
	}
	if err := b.settle(recorded, tokens/2, first, func() ([]string, error) { return []string{"", all}, nil }); err != nil {
		b.fail("commands, one by one", err)
	}
	form("recorded, on a stream", "", onStream, b.optimized)
	form("recorded, graph", "", asChain, b.optimized)
	form("recorded, graph, kernels wait by themselves", "", waiting, b.optimized)
	chosen := ""
	for i := range names {
		if i == 0 {
			continue // to annotate changes nothing that runs
		}
		chosen = "passes to " + names[i]
		form(chosen, strings.Join(names[:i+1], ","), waiting, b.optimized)
	}
	form("all passes, on a stream", all, onStream, b.optimized)
	form("all passes, graph", all, asChain, b.optimized)
	form("all passes and edges, graph of edges", all+",edges", byEdges, b.optimized)
	form("all passes and edges, graph of edges, kernels wait by themselves", all+",edges", edgesToo, b.optimized)

	// What each fused kernel is worth: none of them, then one more in each row. What a profile says of them does
	// not count here, so that each has its row.
	for i, p := range deeper {
		name := "all passes, without fused kernels"
		if i > 0 {
			name = "and " + fused[i-1]
		}
		form(name, p, waiting, b.blindly)
	}
	if text, lost := verdict(chosen, took); text != "" {
		fmt.Fprintf(b.out, "\n%s\n", text)
		b.rows = append(b.rows, map[string]any{"what": "the form that is chosen, beside the fastest", "text": text, "microseconds": 1e6 * lost})
	}
	return nil
}

// deeper returns the fused kernels that a pipeline brings in, and pipelines without all of them, with the first,
// with the first two, and so on to all.
func (b *bench) deeper(recorded *ir.Module, all string) (pipelines, fused []string, err error) {
	m, err := b.blindly(recorded, all)
	if err != nil {
		return nil, nil, err
	}
	fused = newFunctions(recorded.Graphs[0], m.Graphs[0])
	for i := range fused {
		pipelines = append(pipelines, strings.Replace(all, "fuse", "fuse{without="+strings.Join(fused[i:], "+")+"}", 1))
	}
	return append(pipelines, all), fused, nil
}

// looked measures the kernels that pipelines choose for a recording blindly, also those that measured figures would
// keep from being chosen.
func (b *bench) looked(recorded *ir.Module, pipelines []string, pos int) error {
	for _, p := range pipelines {
		m, err := b.blindly(recorded, p)
		if err == nil {
			err = b.each(m, pos, first)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alike is the relative difference up to which the times of two forms count as equal.
const alike = 0.01

// verdict says whether the form that is chosen is the fastest of those measured, and the seconds that are lost if
// not. It says nothing where the chosen one was not measured.
func verdict(chosen string, took map[string]float64) (text string, lost float64) {
	t, ok := took[chosen]
	if !ok {
		return "", 0
	}
	best := chosen
	for _, name := range slices.Sorted(maps.Keys(took)) {
		if took[name] < took[best] {
			best = name
		}
	}
	if lost = t - took[best]; lost <= alike*t {
		return fmt.Sprintf("What is chosen (%s) is the fastest of these %d forms, within %.0f %%.", chosen, len(took), 100*alike), 0
	}
	return fmt.Sprintf("What is chosen (%s) takes %.1f µs a token more than the fastest of these %d forms (%s): the cost model misjudges its kernels.",
		chosen, 1e6*lost, len(took), best), lost
}

// newFunctions returns the library's kernels that g has and the recording has not, in order of appearance.
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

// tokensOf measures steps of one token in a row, and returns the seconds of one.
func (b *bench) tokensOf(name string, m *ir.Module, p plan, tokens, pos int) (each float64, err error) {
	d, end, err := b.open(p)
	if err != nil {
		return 0, err
	}
	defer end()
	t, err := b.time(d, m, "decode", tokens, b.rounds, first(pos))
	if err != nil {
		return 0, err
	}
	b.report(name, m.Graphs[0], p, t, pos+tokens/2)
	return measure.Median(t.wall), nil
}

// report prints a row of steps of one token, whose graph is g, launched by a plan; pos is the position in
// the middle of them.
func (b *bench) report(name string, g *ir.Graph, p plan, t sample, pos int) {
	f, err := optimize.Measure(b.ctx, g, b.model)
	if err != nil {
		b.fail(name, err)
		return
	}
	each := measure.Median(t.wall)
	floor, modelled := float64(f.Epochs)*b.serial, 1e6*b.modelled(g, p, pos)
	b.row(name, map[string]any{
		"dispatches": f.Dispatches, "epochs": f.Epochs, "microseconds": 1e6 * each, "device_microseconds": 1e6 * measure.Median(t.device),
		"host_microseconds": 1e6 * measure.Median(t.host), "floor_microseconds": 1e6 * floor, "modelled_microseconds": modelled, "position": pos,
		"kernels": histogram(g),
	}, "| %s | %d | %d | %.0f | %.1f | %.1f | %.0f | %.0f (%+.0f %%) | %s |\n", name, f.Dispatches, f.Epochs, 1/each, 1e6*each, 1e6*measure.Median(t.host),
		1e6*floor, modelled, 100*(modelled/(1e6*each)-1), around(t.wall))
}

// reportStep prints a row of a step of n tokens at once, where times are those of the whole step.
func (b *bench) reportStep(name string, g *ir.Graph, n int, t sample) {
	each, device, s := measure.Median(t.wall), measure.Median(t.device), g.Stats()
	b.row(name, map[string]any{"step": n, "tokens": n, "dispatches": s.Dispatches, "microseconds": 1e6 * each, "device_microseconds": 1e6 * device, "host_microseconds": 1e6 * measure.Median(t.host),
		"kernels": histogram(g)}, "| %s | %d | | %.0f | %.1f, all | %.1f, all | | %.0f on the GPU, all | %s, all |\n", name, s.Dispatches, float64(n)/each, 1e6*each, 1e6*measure.Median(t.host), 1e6*device, around(t.wall))
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

// large measures the model of 8 billion parameters with activations of f32.
func (b *bench) large() error {
	return b.modelOf(billions, ir.F32, []int{0, 512}, []int{512})
}

// half measures models with activations, scales and biases of f16, at longer contexts, and steps that verify guesses.
func (b *bench) half() error {
	if err := b.modelOf(demonstration, ir.F16, []int{0}, []int{512}); err != nil {
		return err
	}
	shape := billions
	shape.Context = 8192
	return b.modelOf(shape, ir.F16, []int{0, 512, 4096}, []int{512, 4096}, 64, 32, 16, 8, 4, 2)
}

// dense measures the model of 8 billion parameters with weights of f16.
func (b *bench) dense() error {
	shape := billions
	shape.Name, shape.Context, shape.Bits, shape.EmbeddingBits = "8B, weights of f16", 8192, 16, 16
	return b.modelOf(shape, ir.F16, []int{0, 4096}, []int{512, 4096}, 64, 8)
}

// caches measures the model of 8 billion parameters with a KV cache of f16 and of 8 bits, at long contexts.
func (b *bench) caches() error {
	for _, cache := range []ir.DType{ir.F16, ir.I8} {
		shape := billions
		shape.Name, shape.Context = "8B, a cache of "+cache.String(), 32768
		if err := b.modelWith(shape, frontend.Options{Type: ir.F16, Cache: cache}, []int{512, 4096, 32000}, []int{512}); err != nil {
			return err
		}
	}
	return nil
}

// modelOf is modelWith for a type of activations.
func (b *bench) modelOf(shape decoder.Synthetic, t ir.DType, positions, prompts []int, rows ...int) error {
	return b.modelWith(shape, frontend.Options{Type: t}, positions, prompts, rows...)
}

// modelWith measures tokens from some positions on, steps of several rows, and prompts, the first of which is also measured without tensor cores, or
// without code for compute capability 9.0 where that multiplies it.
func (b *bench) modelWith(shape decoder.Synthetic, o frontend.Options, positions, prompts []int, rows ...int) error {
	t := o.Type
	tokens := min(b.tokens, 64)
	b.shape = shape.Name
	defer func() { b.shape = "" }()
	if b.tiny {
		shape, tokens, positions, prompts = small(shape), 4, []int{0, 8}, []int{8, 16}[:min(2, len(prompts))]
		rows = []int{6, 8}[:min(2, len(rows))]
	}
	prompt := prompts[0]
	o.Advance, o.Prefill, o.Context = true, int64(slices.Max(prompts)), shape.Context
	weights, err := shape.Decoder(b.ctx, o)
	if err != nil {
		return err
	}
	recorded, err := weights.Module()
	if err != nil {
		return err
	}
	steps := &ir.Module{}
	for _, n := range rows {
		g, err := stepOf(weights, n)
		if err != nil {
			return err
		}
		steps.Graphs = append(steps.Graphs, g)
	}
	all := strings.Join(defaults(), ",")
	// Figures of small matrices say little of large ones: the kernels of a step are measured in these sizes.
	step := &ir.Module{Data: recorded.Data, Graphs: recorded.Graphs[:1]}
	// Attention is measured behind few tokens and behind many.
	for _, pos := range []int{tokens / 2, prompt} {
		err := b.looked(step, []string{all}, pos)
		if err == nil {
			err = b.settle(step, pos, first, func() ([]string, error) { return b.others(step, all) })
		}
		if err != nil {
			b.fail("commands, one by one", err)
		}
	}
	m, err := b.optimized(recorded, all)
	if err != nil {
		return err
	}
	if steps, err = b.blindly(steps, all); err != nil { // their kernels are not measured one by one
		return err
	}
	m.Graphs = append(m.Graphs, steps.Graphs...)
	fmt.Fprintf(b.out, "\n| %s, %s | dispatches | epochs | tokens/s | µs a token | host, µs a token | floor, µs | modelled, µs | µs, min–max |\n|---|---|---|---|---|---|---|---|---|\n", shape.Name, t)
	if m, err = b.faster(m, step, all, tokens); err != nil {
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
	g := m.Graphs[0]
	for _, pos := range positions {
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
				bytes/1e9, 1/bound, 1e6*bound, 100*bound/measure.Median(t.wall))
		}
	}
	ids := make([]byte, 4*slices.Max(prompts))
	for i := range slices.Max(prompts) {
		binary.LittleEndian.PutUint32(ids[4*i:], uint32(i)%uint32(shape.Vocab))
	}
	for _, n := range prompts {
		if b.late("prompt") {
			return nil
		}
		if err := b.prompt(in, "", m, n, ids[:4*n]); err != nil {
			return err
		}
	}
	for i, n := range rows {
		if b.late("steps") {
			return nil
		}
		g := m.Graphs[2+i]
		t, err := b.timeOn(in, g.Name, 1, 5, several(n, ids))
		if err != nil {
			return err
		}
		b.reportStep(g.Name, g, n, t)
	}
	ids = ids[:4*prompt]
	without, how := plain, ", without tensor cores"
	if t != ir.F32 {
		without, how = generic, ", by code for any GPU"
		if _, err := b.tokensOf("tokens, by code for any GPU", &ir.Module{Data: m.Data, Graphs: m.Graphs[:1]}, generic, tokens, 0); err != nil {
			return err
		}
	}
	if err := b.without(without, how, m, prompt, ids); err != nil {
		return err
	}
	if len(rows) > 0 {
		few := slices.Index(rows, 8)
		if err := b.where(m, m.Graphs[2+max(0, few)].Name, rows[max(0, few)], ids); err != nil {
			return err
		}
	}
	return b.where(m, "prefill", prompt, ids)
}

// stepOf records a step of so many rows that verifies guesses.
func stepOf(weights *decoder.Decoder, rows int) (*ir.Graph, error) {
	s := record.New(fmt.Sprintf("a step of %d rows", rows), record.WeightsOnce())
	weights.Verify(s, int64(rows-1))
	return s.Graph()
}

// several sets what a step or a prompt of n tokens begins with.
func several(n int, ids []byte) setter {
	return func(f *replay.Frame) error {
		if err := f.SetParam("pos", 0); err != nil {
			return err
		}
		if err := f.SetParam("n", float64(n)); err != nil {
			return err
		}
		return f.SetInput("tokens", ids[:4*n])
	}
}

// faster returns m with the faster of two forms of its step: of kernels as their measured times have it, and as a chip's public figures do. Kernels that
// are measured one by one do not show what a launch gains by beginning before the one before it has ended.
func (b *bench) faster(m, step *ir.Module, all string, tokens int) (*ir.Module, error) {
	blind, err := b.blindly(step, all)
	if err != nil {
		return nil, err
	}
	best, found := 0.0, m
	for _, x := range []struct {
		name string
		g    *ir.Graph
	}{{"kernels chosen by measured times", m.Graphs[0]}, {"kernels chosen by public figures", blind.Graphs[0]}} {
		if b.late(x.name) {
			break
		}
		each, err := b.tokensOf(x.name, &ir.Module{Data: m.Data, Graphs: []*ir.Graph{x.g}}, waiting, tokens, 0)
		if err != nil {
			return nil, err
		}
		if best == 0 || each < best {
			best, found = each, &ir.Module{Data: m.Data, Graphs: append([]*ir.Graph{x.g}, m.Graphs[1:]...)}
		}
	}
	return found, nil
}

// others returns the empty pipeline, a pipeline, and that one without each kernel that it brings in: of several
// kernels that compute the same only the chosen one is measured, and without it the next best is chosen.
func (b *bench) others(recorded *ir.Module, all string) ([]string, error) {
	m, err := b.optimized(recorded, all)
	if err != nil {
		return nil, err
	}
	out := []string{"", all}
	for _, f := range newFunctions(recorded.Graphs[0], m.Graphs[0]) {
		out = append(out, strings.Replace(all, "fuse", "fuse{without="+f+"}", 1))
	}
	return out, nil
}

// prompt measures a prompt whose tokens are processed at once.
func (b *bench) prompt(in *replay.Instance, how string, m *ir.Module, prompt int, ids []byte) error {
	t, err := b.timeOn(in, "prefill", 1, 5, several(prompt, ids))
	if err != nil {
		return err
	}
	each := measure.Median(t.wall)
	b.row("prompt"+how, map[string]any{"tokens": prompt, "microseconds": 1e6 * each, "device_microseconds": 1e6 * measure.Median(t.device), "host_microseconds": 1e6 * measure.Median(t.host),
		"kernels": histogram(m.Graphs[1])}, "| a prompt of %d tokens%s | | | %.0f | %.1f | %.1f | | %.0f on the GPU, all | %s, all |\n", prompt, how, float64(prompt)/each, 1e6*each/float64(prompt),
		1e6*measure.Median(t.host)/float64(prompt), 1e6*measure.Median(t.device), around(t.wall))
	return nil
}

// without measures a prompt by another plan, which shows what it leaves out is worth.
func (b *bench) without(p plan, how string, m *ir.Module, prompt int, ids []byte) error {
	if b.late("prompt" + how) {
		return nil
	}
	d, end, err := b.open(p)
	if err != nil {
		return err
	}
	defer end()
	in, err := replay.Open(d, m, replay.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	return b.prompt(in, how, m, prompt, ids)
}

// bytesAt returns how many bytes the commands of g move at a position.
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

// where says which kernels take the time of a prompt, or of a step, of n tokens, each timed by itself.
func (b *bench) where(m *ir.Module, graph string, n int, ids []byte) error {
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
	g, err := in.Graph(b.ctx, graph)
	if err != nil {
		return err
	}
	for name, v := range map[string]int{"pos": 0, "n": n} {
		if err := g.SetParam(name, float64(v)); err != nil {
			return err
		}
	}
	if err := g.SetInput("tokens", ids[:4*n]); err != nil {
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
	b.rows = append(b.rows, map[string]any{"what": "kernels of " + graph + ", seconds", "tokens": n, "seconds": sums})
	if total == 0 {
		return nil
	}
	fmt.Fprintf(b.out, "\n| kernel of %s, %d tokens | ms | share |\n|---|---|---|\n", graph, n)
	names := slices.SortedFunc(maps.Keys(sums), func(l, r string) int { return int(1e9*sums[r]) - int(1e9*sums[l]) })
	for _, k := range names[:min(6, len(names))] {
		fmt.Fprintf(b.out, "| %.80s | %.2f | %.0f %% |\n", k, 1e3*sums[k], 100*sums[k]/total)
	}
	return nil
}

// choice is the model by which kernels are chosen: the measured one, but with --tiny the usual one. What small sizes
// measure says nothing, and would have each try choose other kernels.
func (b *bench) choice() cost.Model {
	if b.tiny {
		return cost.Model{}.OrDefault()
	}
	return b.model
}
