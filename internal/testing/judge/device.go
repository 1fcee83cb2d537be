package judge

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// This file judges by bits: a device runs the kernels.

// Contents are the bytes of inputs, outputs or states, by name.
type Contents map[string][]byte

// SameBits reports whether two graphs with the same interface have the same bits on the
// CPU in written order, on the same random inputs, for three replays of each valuation.
// It sees what values do not show: that a constant of a kernel makes no difference for
// the arguments at hand. It is false if the CPU does not have all kernels.
func SameBits(before, after *ir.Graph, o Options) bool {
	for _, k := range slices.Concat(before.Kernels, after.Kernels) {
		if k.Library.Kind != ir.Builtin || cpu.Lookup(k.Function) == nil {
			return false
		}
	}
	o.setDefaults()
	device := cpu.New(1)
	defer device.Close()
	for _, v := range valuations(before, o.Valuations, rand.New(rand.NewPCG(o.Seed, 1))) {
		if Compare(device, before, after, [][]uint32{v, v, v}, 0, nil) != nil {
			return false
		}
	}
	return true
}

// Compare runs both graphs once for each element of params, as consecutive replays, and
// returns an error that says how their results differ, or nil. schedules is the number
// of orders in which the replays of after are also run as one stream; the written order
// and the most adverse one are among them. The commands of before must run on d.
func Compare(d backend.Device, before, after *ir.Graph, params [][]uint32, schedules int, rng *rand.Rand) error {
	if diff := paramDifference(before, after); diff != "" {
		return fmt.Errorf("%s", diff)
	}
	var translated [][]uint32
	for _, v := range params {
		translated = append(translated, translate(before, after, v))
	}
	undefined := undefinedBytes(before, params)
	want, err := Replayed(d, before, params, RandomInputs)
	if err != nil {
		return fmt.Errorf("before: %w", err)
	}
	got, err := Replayed(d, after, translated, RandomInputs)
	if err != nil {
		return fmt.Errorf("after: %w", err)
	}
	for r := range want {
		if err := difference(want[r], got[r], undefined[r], true); err != nil {
			return fmt.Errorf("replay %d of params %v: %w", r+1, params, err)
		}
	}
	if schedules == 0 {
		return nil
	}
	order := happensBefore(after, len(params), Options{})
	shared, own := newStream(after, translated, false), newStream(after, translated, true)
	for k := range schedules {
		s, pick, name := own, randomly(rng), fmt.Sprintf("random order %d", k)
		if k%4 == 1 {
			s = shared
		}
		switch k {
		case 0:
			pick, name = written, "written order"
		case 1, 2:
			pick, name = adverse, "adverse order"
		}
		list := order.extension(nil, pick)
		got, err := s.run(d, list, uint64(k))
		if err != nil {
			return fmt.Errorf("after, %s: %w", name, err)
		}
		for r := range got {
			last := r == len(got)-1
			if s == shared {
				if !last {
					continue // only what the last replay leaves can be compared
				}
				for _, c := range got[:r] {
					maps.Copy(got[r], c)
				}
			}
			if err := difference(want[r], got[r], undefined[r], last); err != nil {
				return fmt.Errorf("replay %d in a stream, params %v, %s (%s): %w", r+1, params, name, s.names(list), err)
			}
		}
	}
	return nil
}

// undefinedBytes says, by replay, which bytes of the outputs depend on nothing that is
// defined.
func undefinedBytes(g *ir.Graph, params [][]uint32) []map[string][]bool {
	l, u := newLowerer(g), unitFinder{}
	for _, v := range params {
		u.add(l.commands(v))
	}
	m := newMachine(g, namesOf(g, g), false, u.cell(false), true)
	out := make([]map[string][]bool, len(params))
	for r := range out {
		out[r] = map[string][]bool{}
	}
	for _, f := range m.written(l, params) {
		bytes := make([]bool, int64(len(f.cells))*m.unit)
		for i := range bytes {
			bytes[i] = f.cells[int64(i)/m.unit]&tainted != 0
		}
		out[f.replay][f.name] = bytes
	}
	return out
}

// difference compares results, but for undefined bytes. A stream keeps no states
// between replays, so that they can only be compared after the last one.
func difference(want, got Contents, undefined map[string][]bool, states bool) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w, mask := want[name], undefined[name]
		g, ok := got[name]
		if !ok && !states {
			continue
		}
		if len(w) != len(g) {
			return fmt.Errorf("%%%s has %d bytes, want %d", name, len(g), len(w))
		}
		for i := range w {
			if w[i] != g[i] && (mask == nil || !mask[i]) {
				at := i / word * word
				end := min(at+word, len(w))
				return fmt.Errorf("%%%s[%d:%d] is %x, want %x", name, at, end, g[at:end], w[at:end])
			}
		}
	}
	return nil
}

// RandomInputs fills an input with numbers that differ from replay to replay.
func RandomInputs(data []byte, m *ir.Memory, replay int) error {
	seed := uint64(1000 + replay)
	for _, c := range m.Name {
		seed = 31*seed + uint64(c)
	}
	random := ir.Memory{Size: int64(len(data)), DType: m.DType, Init: ir.Init{Kind: ir.InitRandom, Seed: seed}}
	return random.WriteInit(data)
}

// Replayed runs g through package replay, with scratch memory and outputs poisoned
// before each replay, and returns every output and state after each replay. input fills
// the inputs of a replay. If g carries something, only the first replay has inputs of
// its own, and the host copies what is carried between two replays.
func Replayed(d backend.Device, g *ir.Graph, params [][]uint32, input func(data []byte, m *ir.Memory, replay int) error) (out []Contents, err error) {
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := s.Graph(context.Background(), g.Name)
	if err != nil {
		return nil, err
	}
	carries := slices.ContainsFunc(g.Nodes, is[*ir.Carry])
	inputs := Contents{}
	for r, v := range params {
		for i, q := range g.Params {
			x := float64(v[i])
			if q.Type == ir.F32 {
				x = float64(math.Float32frombits(v[i]))
			}
			if err := p.SetParam(q.Name, x); err != nil {
				return nil, err
			}
		}
		for i := range g.Memories {
			m := &g.Memories[i]
			if m.Kind != ir.Input || m.Alias != ir.NoMem {
				continue
			}
			if r == 0 || !carries {
				inputs[m.Name] = make([]byte, m.Size)
				err = input(inputs[m.Name], m, r)
			}
			if err == nil {
				err = p.SetInput(m.Name, inputs[m.Name])
			}
			if err != nil {
				return nil, err
			}
		}
		if _, err := p.Run(context.Background()); err != nil {
			return nil, err
		}
		result := Contents{}
		for i := range g.Memories {
			switch m := &g.Memories[i]; {
			case m.Alias != ir.NoMem:
			case m.Kind == ir.Output:
				result[m.Name], err = p.Output(m.Name)
			case m.Kind == ir.State:
				result[m.Name], err = p.State(m.Name)
			}
			if err != nil {
				return nil, err
			}
		}
		out = append(out, result)
		for _, n := range g.Nodes {
			c, ok := n.(*ir.Carry)
			if !ok {
				continue
			}
			dst := &g.Memories[c.Dst.Mem]
			from, at := c.Src.Off.Eval(v), c.Dst.Off.Eval(v)
			data := result[g.Memories[c.Src.Mem].Name][from : from+c.Src.Len.Eval(v)]
			if dst.Kind == ir.Input {
				copy(inputs[dst.Name][at:], data)
				continue
			}
			state, err := p.State(dst.Name)
			if err != nil {
				return nil, err
			}
			copy(state[at:], data)
			if err := p.SetState(dst.Name, state); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// stream is several consecutive replays of a graph, unrolled into one graph without
// params. Each command has the constants that the replay's params give. As with a host
// that does not wait, each replay has inputs and argument memory of its own, while
// states and scratch memory are shared. If the graph carries something, all replays
// share the inputs of the first one and what is carried to them. Outputs are shared
// too, unless the host reads them after each replay; then each replay has its own.
type stream struct {
	graph  *ir.Graph           // the memories and kernels, and the commands in written order
	own    map[ir.MemID]belong // the inputs, outputs and argument memory that belong to one replay
	params [][]uint32
}

type belong struct {
	replay int
	memory *ir.Memory // of the graph that was unrolled
}

// newStream unrolls g into one replay for each element of params. With ownOutputs each
// replay has its own outputs.
func newStream(g *ir.Graph, params [][]uint32, ownOutputs bool) *stream {
	s := &stream{graph: &ir.Graph{Name: g.Name, Memories: slices.Clone(g.Memories), Kernels: g.Kernels, Ordering: ir.Serial}, own: map[ir.MemID]belong{}, params: params}
	carries := slices.ContainsFunc(g.Nodes, is[*ir.Carry])
	for r, v := range params {
		to := make([]ir.MemID, len(g.Memories))
		for i := range g.Memories {
			m := g.Memories[i]
			if to[i] = ir.MemID(i); m.Kind != ir.Input && m.Kind != ir.Output && m.Kind != ir.Argument {
				continue
			}
			if r > 0 && (m.Kind != ir.Output || ownOutputs) && !(carries && m.Kind == ir.Input) {
				m.Name = fmt.Sprintf("%s@%d", m.Name, r)
				if m.Alias != ir.NoMem {
					m.Alias = to[m.Alias]
				}
				to[i] = ir.MemID(len(s.graph.Memories))
				s.graph.Memories = append(s.graph.Memories, m)
			}
			if m.Alias == ir.NoMem && !(r > 0 && carries && m.Kind == ir.Input) {
				s.own[to[i]] = belong{r, &g.Memories[i]}
			}
		}
		for _, n := range g.Nodes {
			if isCommand(n) {
				s.graph.Nodes = append(s.graph.Nodes, constant(n, v, to, r == len(params)-1))
			}
		}
	}
	return s
}

// constant returns a command with the constants that the params v give, and with its
// memories renamed. A carry becomes a copy, which copies nothing in the last replay.
func constant(n ir.Node, v []uint32, to []ir.MemID, last bool) ir.Node {
	n = ir.CloneNode(n)
	for _, x := range views(n) {
		*x = ir.View{Mem: to[x.Mem], Off: ir.Const(x.Off.Eval(v)), Len: ir.Const(x.Len.Eval(v))}
	}
	switch n := n.(type) {
	case *ir.Carry:
		if last {
			n.Src.Len, n.Dst.Len = ir.Const(0), ir.Const(0)
		}
		return &ir.Copy{ID: n.ID, Dst: n.Dst, Src: n.Src}
	case *ir.Dispatch:
		n.Effects = nil
		for i := range n.Bindings {
			if b := &n.Bindings[i]; b.Kind == ir.BindScalar {
				*b = ir.BytesArg(b.Slot, scalarBytes(b, v))
			}
		}
		for i := range n.Grid {
			n.Grid[i] = ir.Ext(n.Grid[i].Eval(v))
		}
	}
	return n
}

// names lists commands with their replay: #3'2 is #3 of the second replay.
func (s *stream) names(order []int) string {
	per := len(s.graph.Nodes) / len(s.params)
	var b bytes.Buffer
	for k, i := range order {
		if k > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s'%d", s.graph.Nodes[i].(ir.Command).Num(), i/per+1)
	}
	return b.String()
}

// run executes the commands in the given order. It returns, for each replay, the outputs
// that belong to it, and with the last replay also the states. Scratch memory and
// outputs begin with bytes that depend on poison.
func (s *stream) run(d backend.Device, order []int, poison uint64) (out []Contents, err error) {
	g := *s.graph
	g.Nodes = make([]ir.Node, len(order))
	for k, i := range order {
		g.Nodes[k] = s.graph.Nodes[i]
	}
	ctx := context.Background()
	q, err := d.NewQueue()
	if err != nil {
		return nil, err
	}
	defer q.Close()
	g.Memories = slices.Clone(g.Memories)
	p := &backend.Program{Graph: &g, Places: make([]backend.Place, len(g.Memories))}
	for i := range g.Memories {
		m, of := &g.Memories[i], s.own[ir.MemID(i)]
		data := make([]byte, m.Size)
		switch m.Kind {
		case ir.Weight, ir.State:
			err = m.WriteInit(data)
		case ir.Argument: // the params are known, so its values are bytes
			if m.Alias == ir.NoMem {
				m.WriteValues(data, s.params[of.replay])
			}
			m.Kind, m.Init = ir.Input, ir.Init{}
		case ir.Input:
			if m.Alias == ir.NoMem {
				err = RandomInputs(data, of.memory, of.replay)
			}
		default:
			err = ir.Init{Kind: ir.InitRandom, Seed: poison}.Write(data)
		}
		if err != nil {
			return nil, err
		}
		if m.Alias != ir.NoMem {
			continue
		}
		b, err := d.Alloc(backend.Spec(m))
		if err != nil {
			return nil, err
		}
		defer b.Close()
		p.Places[i] = backend.At(b)
		if err := backend.Wait(ctx)(q.Upload(ctx, p.Places[i], data)); err != nil {
			return nil, err
		}
	}
	e, err := d.Compile(ctx, p)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	f, err := e.NewFrame(backend.FrameSpec{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := backend.Wait(ctx)(q.Submit(ctx, backend.Submission{Executable: e, Frame: f})); err != nil {
		return nil, err
	}
	for range s.params {
		out = append(out, Contents{})
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem || m.Kind != ir.Output && m.Kind != ir.State {
			continue
		}
		data := make([]byte, m.Size)
		if err := backend.Wait(ctx)(q.Download(ctx, data, p.Places[i])); err != nil {
			return nil, err
		}
		if m.Kind == ir.State {
			out[len(out)-1][m.Name] = data
		} else {
			of := s.own[ir.MemID(i)]
			out[of.replay][of.memory.Name] = data
		}
	}
	return out, nil
}
