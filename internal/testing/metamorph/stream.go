package metamorph

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// Stream is several consecutive replays of a graph, unrolled into one graph without
// params. Each command has the constants that the replay's params give. As with a host
// that does not wait, each replay has inputs and argument memory of its own, while
// states and scratch memory are shared. If the graph carries something, all replays
// share the inputs of the first one and what is carried to them. Outputs are shared
// too, unless the host reads them after each replay; then each replay has its own.
type Stream struct {
	graph   *ir.Graph // the memories and kernels, and the commands in written order
	spots   []spot    // by command: where it stands
	orders  []ir.CommitOrder
	paths   [][]bool // if the graph is ordered by edges: [j][i] says that a path leads from command i to command j
	hosted  bool     // the host waits between two replays
	replays int
	own     map[ir.MemID]owner // the inputs, outputs and argument memory that belong to one replay
	params  [][]uint32
}

// spot says where a command stands: in which replay, in which command buffer of the
// stream, and after how many barriers.
type spot struct{ replay, buffer, epoch int }

type owner struct {
	replay int
	name   string
}

// NewStream unrolls g into one replay for each element of params. The end of a replay
// does not end a command buffer. With ownOutputs each replay has its own outputs.
func NewStream(g *ir.Graph, params [][]uint32, ownOutputs bool) *Stream {
	s := &Stream{graph: &ir.Graph{Name: g.Name, Memories: slices.Clone(g.Memories), Kernels: g.Kernels}, replays: len(params), own: map[ir.MemID]owner{}, params: params, hosted: g.NextHost}
	if g.Ordering == ir.Serial {
		s.graph.Ordering = ir.Serial
	}
	carries := slices.ContainsFunc(g.Nodes, isCarry)
	epoch := 0
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
				s.own[to[i]] = owner{r, g.Memories[i].Name}
			}
		}
		for _, n := range g.Nodes {
			switch n := n.(type) {
			case *ir.Barrier:
				epoch++
			case *ir.Commit:
				s.orders = append(s.orders, n.Order)
			default:
				if isCommand(n) {
					s.graph.Nodes = append(s.graph.Nodes, constant(n, v, to, r == len(params)-1))
					s.spots = append(s.spots, spot{r, len(s.orders), epoch})
				}
			}
		}
	}
	if g.Ordering == ir.ByEdges {
		s.paths = paths(g, len(params))
	}
	return s
}

func isCarry(n ir.Node) bool {
	_, ok := n.(*ir.Carry)
	return ok
}

// isCommand reports whether n does something; joins do not.
func isCommand(n ir.Node) bool {
	_, join := n.(*ir.Join)
	_, ok := n.(ir.Command)
	return ok && !join
}

// paths returns which commands are ordered by paths of a graph's edges, over several
// replays in a row.
func paths(g *ir.Graph, replays int) [][]bool {
	n := len(g.Nodes)
	place := map[ir.ID]int{}
	for i, x := range g.Nodes {
		if c, ok := x.(ir.Command); ok {
			place[c.Num()] = i
		}
	}
	all := make([][]bool, n*replays) // by node of the stream: the nodes before it
	for r := range replays {
		for i := range n {
			all[r*n+i] = make([]bool, n*replays)
		}
		for _, e := range g.Edges {
			from := r*n + place[e.From]
			if e.Previous {
				from -= n
			}
			if from >= 0 {
				all[r*n+place[e.To]][from] = true
			}
		}
	}
	for j := range all {
		for i := j - 1; i >= 0; i-- {
			for k := 0; all[j][i] && k < i; k++ {
				all[j][k] = all[j][k] || all[i][k]
			}
		}
	}
	var out [][]bool
	for j := range all {
		if !isCommand(g.Nodes[j%n]) {
			continue
		}
		var row []bool
		for i, before := range all[j] {
			if isCommand(g.Nodes[i%n]) {
				row = append(row, before)
			}
		}
		out = append(out, row)
	}
	return out
}

// constant returns a command with the constants that the params v give, and with its
// memories renamed. A carry becomes a copy, unless it belongs to the last replay.
func constant(n ir.Node, v []uint32, to []ir.MemID, last bool) ir.Node {
	n = ir.CloneNode(n)
	fix := func(a *ir.Affine) { *a = ir.Const(a.Eval(v)) }
	view := func(x *ir.View) {
		fix(&x.Off)
		fix(&x.Len)
		x.Mem = to[x.Mem]
	}
	switch n := n.(type) {
	case *ir.Copy:
		view(&n.Src)
		view(&n.Dst)
	case *ir.Carry:
		view(&n.Src)
		view(&n.Dst)
		if last {
			n.Src.Len, n.Dst.Len = ir.Const(0), ir.Const(0)
		}
		return &ir.Copy{ID: n.ID, Dst: n.Dst, Src: n.Src}
	case *ir.Fill:
		view(&n.Dst)
	case *ir.Dispatch:
		n.Effects = nil
		for i := range n.Bindings {
			switch b := &n.Bindings[i]; b.Kind {
			case ir.BindView:
				view(&b.View)
			case ir.BindScalar:
				bits := uint64(b.Expr.Eval(v))
				if b.Type == ir.F32 {
					bits = uint64(v[b.Expr.Terms()[0].Param])
				}
				*b = ir.BytesArg(b.Slot, binary.LittleEndian.AppendUint64(nil, bits)[:b.Type.Size()])
			}
		}
		for i := range n.Grid {
			n.Grid[i] = ir.Ext(n.Grid[i].Eval(v))
		}
	}
	return n
}

// Before reports whether the stream orders command i before command j: by a barrier
// within one command buffer, by an ordered commit, by the list itself if it is serial,
// or by a path of edges.
func (s *Stream) Before(i, j int) bool {
	if s.graph.Ordering == ir.Serial {
		return i < j
	}
	a, b := s.spots[i], s.spots[j]
	switch {
	case s.hosted && a.replay != b.replay:
		return a.replay < b.replay
	case s.paths != nil:
		return s.paths[j][i]
	}
	if a.buffer == b.buffer {
		return a.epoch < b.epoch
	}
	return a.buffer < b.buffer && slices.ContainsFunc(s.orders[a.buffer:b.buffer], func(o ir.CommitOrder) bool { return o != ir.OrderNone })
}

// Order returns an order of the commands that the stream allows. At each step pick
// chooses among the commands that may come next.
func (s *Stream) Order(pick func(ready []int) int) []int {
	waits := make([]int, len(s.spots))
	for i := range waits {
		for j := range waits {
			if s.Before(i, j) {
				waits[j]++
			}
		}
	}
	var out, ready []int
	for i, w := range waits {
		if w == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := pick(ready)
		ready = slices.DeleteFunc(ready, func(k int) bool { return k == i })
		out = append(out, i)
		for j := range waits {
			if s.Before(i, j) {
				if waits[j]--; waits[j] == 0 {
					ready = append(ready, j)
				}
			}
		}
		slices.Sort(ready)
	}
	return out
}

// Written, when given to [Stream.Order], yields the written order.
func Written(ready []int) int { return ready[0] }

// Adverse yields the order that runs every command as late as possible.
func Adverse(ready []int) int { return ready[len(ready)-1] }

// Random yields a random order.
func Random(rng *rand.Rand) func([]int) int {
	return func(ready []int) int { return ready[rng.IntN(len(ready))] }
}

// Run executes the commands in the given order. It returns, for each replay, the bytes
// of the outputs that belong to it, by name, and with the last replay also the final
// bytes of every state. Scratch memory and outputs begin with bytes that depend on
// poison; the inputs are those of package metamorph for each replay.
func (s *Stream) Run(d backend.Device, order []int, poison uint64) (out []map[string][]byte, err error) {
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
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Argument { // the params are known, so its values are bytes
			m.Kind, m.Init = ir.Input, ir.Init{}
		}
	}
	p := &backend.Program{Graph: &g, Places: make([]backend.Place, len(g.Memories))}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem {
			continue
		}
		b, err := d.Alloc(backend.Spec(m))
		if err != nil {
			return nil, err
		}
		defer b.Close()
		p.Places[i] = backend.At(b)
		data := make([]byte, m.Size)
		switch s.graph.Memories[i].Kind {
		case ir.Weight, ir.State:
			err = m.WriteInit(data)
		case ir.Argument:
			s.graph.Memories[i].WriteValues(data, s.params[s.own[ir.MemID(i)].replay])
		case ir.Input:
			x := s.own[ir.MemID(i)]
			err = writeInput(data, x.replay, x.name)
		default:
			err = ir.Init{Kind: ir.InitRandom, Seed: poison}.Write(data)
		}
		if err == nil {
			err = backend.Wait(ctx)(q.Upload(ctx, p.Places[i], data))
		}
		if err != nil {
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
	for range s.replays {
		out = append(out, map[string][]byte{})
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem {
			continue
		}
		data := make([]byte, m.Size)
		if err := backend.Wait(ctx)(q.Download(ctx, data, p.Places[i])); err != nil {
			return nil, err
		}
		switch m.Kind {
		case ir.Output:
			x := s.own[ir.MemID(i)]
			out[x.replay][x.name] = data
		case ir.State:
			out[s.replays-1][m.Name] = data
		}
	}
	return out, nil
}

// writeInput fills an input with numbers that differ from replay to replay.
func writeInput(data []byte, replay int, name string) error {
	seed := uint64(1000 + replay)
	for _, c := range name {
		seed = 31*seed + uint64(c)
	}
	m := ir.Memory{Size: int64(len(data)), DType: ir.F32, Init: ir.Init{Kind: ir.InitRandom, Seed: seed}}
	return m.WriteInit(data)
}
