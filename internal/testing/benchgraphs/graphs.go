package benchgraphs

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Family is one kind of graph.
type Family struct {
	Name string
	Make func(commands int) *ir.Graph
}

// Families returns the families of graphs that cannot be executed.
func Families() []Family {
	return []Family{{"decode", Decode}, {"arena", Arena}, {"pingpong", PingPong}}
}

// builder adds dispatches until there are as many as asked for.
type builder struct {
	g    *ir.Graph
	left int
}

func begin(name string, commands int) *builder {
	g := &ir.Graph{Name: name, Nodes: make([]ir.Node, 0, 2*commands)}
	for _, f := range []string{"norm", "matvec", "rope", "attention", "zip"} {
		g.Kernels = append(g.Kernels, ir.Kernel{Name: f, Function: f, Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	}
	return &builder{g, commands}
}

func (b *builder) memory(name string, kind ir.MemKind, size int64) ir.MemID {
	m := ir.Memory{Name: name, Kind: kind, Size: size, Alias: ir.NoMem}
	if kind == ir.State || kind == ir.Weight {
		m.Init = ir.FillU32(0)
	}
	b.g.Memories = append(b.g.Memories, m)
	return ir.MemID(len(b.g.Memories) - 1)
}

const (
	norm ir.KernelID = iota
	matvec
	rope
	attention
	zip
)

// dispatch adds a command and a barrier after it, as a simple recorder would. It
// returns false once there are enough commands.
func (b *builder) dispatch(k ir.KernelID, groups int64, write ir.View, reads ...ir.View) bool {
	if b.left == 0 {
		return false
	}
	b.left--
	e := &ir.Effects{Complete: true, Reads: make([]ir.Region, len(reads)), Writes: []ir.Write{{Region: write.Contiguous(), Must: true}}}
	for i, r := range reads {
		e.Reads[i] = r.Contiguous()
	}
	id := ir.ID(len(b.g.Nodes) / 2)
	b.g.Nodes = append(b.g.Nodes, &ir.Dispatch{
		ID: id, Kernel: k, Grid: [3]ir.Extent{ir.Ext(groups), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{64, 1, 1}, Effects: e,
	}, &ir.Barrier{})
	return b.left > 0
}

// The sizes, in bytes, of the model of [Decode]: 30 layers, 576 wide, 9 heads of 64
// elements with 3 key heads, 1536 hidden, f32 activations, 4-bit weights, 2048
// positions.
const (
	layers    = 30
	hidden    = 4 * 576
	keys      = 4 * 192
	wide      = 4 * 1536
	positions = 2048
)

// Decode makes decode steps of a language model, one after another. Each has 30 layers
// of 16 dispatches, with weights, a key-value cache that is written at param pos, and
// scratch memory that every layer reuses.
func Decode(commands int) *ir.Graph {
	b := begin("decode", commands)
	pos := ir.ParamID(0)
	b.g.Params = []ir.Param{{Name: "pos", Type: ir.U32, Max: positions - 1}}
	weight := func(l int, name string, size int64) ir.View {
		return ir.ViewOf(b.memory(fmt.Sprintf("%s.%d", name, l), ir.Weight, size), 0, size)
	}
	type layer struct{ n1, q, k, v, o, n2, gate, up, down, kc, vc ir.View }
	ls := make([]layer, layers)
	for l := range ls {
		matrix := func(name string, rows, columns int64) ir.View { return weight(l, name, rows*columns/4/4*5/8) }
		ls[l] = layer{
			weight(l, "n1", hidden), matrix("q", hidden, hidden), matrix("k", hidden, keys), matrix("v", hidden, keys), matrix("o", hidden, hidden),
			weight(l, "n2", hidden), matrix("gate", hidden, wide), matrix("up", hidden, wide), matrix("down", wide, hidden),
			ir.ViewOf(b.memory(fmt.Sprintf("kc.%d", l), ir.State, positions*keys), 0, 0), ir.ViewOf(b.memory(fmt.Sprintf("vc.%d", l), ir.State, positions*keys), 0, 0),
		}
	}
	h := ir.ViewOf(b.memory("h", ir.State, hidden), 0, hidden)
	arena := b.memory("arena", ir.Scratch, 8*hidden+3*wide)
	at := int64(0)
	slot := func(n int64) ir.View {
		at += n
		return ir.ViewOf(arena, at-n, n)
	}
	x, q, qr, attended, o, h2, down := slot(hidden), slot(hidden), slot(hidden), slot(hidden), slot(hidden), slot(hidden), slot(hidden)
	k, v, gate, up, act := slot(keys), x, slot(wide), slot(wide), slot(wide)
	v = ir.ViewOf(arena, at, keys)
	row := func(c ir.View) ir.View {
		return ir.View{Mem: c.Mem, Off: ir.Linear(0, ir.Term{Param: pos, Coeff: keys}), Len: ir.Const(keys)}
	}
	rows := func(c ir.View) ir.View {
		return ir.View{Mem: c.Mem, Len: ir.Linear(keys, ir.Term{Param: pos, Coeff: keys})}
	}
	for {
		for i := range ls {
			w := &ls[i]
			more := b.dispatch(norm, 1, x, h, w.n1) &&
				b.dispatch(matvec, 72, q, x, w.q) &&
				b.dispatch(matvec, 24, k, x, w.k) &&
				b.dispatch(matvec, 24, v, x, w.v) &&
				b.dispatch(rope, 9, qr, q) &&
				b.dispatch(rope, 3, row(w.kc), k) &&
				b.dispatch(zip, 1, row(w.vc), v) &&
				b.dispatch(attention, 9, attended, qr, rows(w.kc), rows(w.vc)) &&
				b.dispatch(matvec, 72, o, attended, w.o) &&
				b.dispatch(zip, 1, h2, h, o) &&
				b.dispatch(norm, 1, x, h2, w.n2) &&
				b.dispatch(matvec, 192, gate, x, w.gate) &&
				b.dispatch(matvec, 192, up, x, w.up) &&
				b.dispatch(zip, 2, act, gate, up) &&
				b.dispatch(matvec, 72, down, act, w.down) &&
				b.dispatch(zip, 1, h, h2, down)
			if !more {
				return b.g
			}
		}
	}
}

// random is xorshift64 (Marsaglia 2003), which gives the same numbers everywhere.
type random uint64

func (r *random) below(n int64) int64 {
	*r ^= *r << 13
	*r ^= *r >> 7
	*r ^= *r << 17
	return int64(uint64(*r) % uint64(n))
}

// Arena makes commands that each read two of the last eight results and write a new
// one. The results have different sizes and fill an arena of 1 MiB from front to back,
// again and again.
func Arena(commands int) *ir.Graph {
	b := begin("arena", commands)
	const size = 1 << 20
	arena := b.memory("arena", ir.Scratch, size)
	rnd := random(88172645463325252)
	recent := make([]ir.View, 8)
	for i := range recent {
		recent[i] = ir.ViewOf(arena, int64(i)*4096, 4096)
	}
	at := int64(len(recent) * 4096)
	for i := 0; b.left > 0; i++ {
		n := 256 * (1 + rnd.below(64))
		if at+n > size {
			at = 0
		}
		to := ir.ViewOf(arena, at, n)
		at += n
		b.dispatch(zip, n/256, to, recent[rnd.below(8)], recent[rnd.below(8)])
		recent[i%8] = to
	}
	return b.g
}

// PingPong makes rounds over two buffers. Sixteen parts of one buffer are written, each
// from a part of the other; the whole of it is then read sixteen times, for results
// elsewhere; then the two buffers change roles.
func PingPong(commands int) *ir.Graph {
	b := begin("pingpong", commands)
	const parts, part = 16, 4096
	var buffers [2]ir.MemID
	for i := range buffers {
		buffers[i] = b.memory([]string{"ping", "pong"}[i], ir.Scratch, parts*part)
	}
	result := b.memory("result", ir.Scratch, parts*part)
	for i := 0; b.left > 0; i++ {
		to, from := buffers[i%2], buffers[1-i%2]
		for k := range int64(parts) {
			b.dispatch(zip, 16, ir.ViewOf(to, k*part, part), ir.ViewOf(from, (parts-1-k)*part, part))
		}
		for k := range int64(parts) {
			b.dispatch(norm, 16, ir.ViewOf(result, k*part, part), ir.ViewOf(to, 0, parts*part))
		}
	}
	return b.g
}
