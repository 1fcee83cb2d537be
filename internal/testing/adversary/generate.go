package adversary

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

const word = 4

// Generate draws a recording that has a meaning: it has no race, and nothing undefined
// reaches an output or a state.
func Generate(rng *rand.Rand) *ir.Graph {
	for {
		g := draw(rng)
		if g.Check() == nil && order(rng, g) && sound(rng, g) {
			return g
		}
	}
}

// sound reports whether every order that g allows ends with the bytes of the written
// order, whatever the undefined bytes are.
func sound(rng *rand.Rand, g *ir.Graph) bool {
	p := NewProgram(g, g, nil)
	for k := range 6 {
		params := pickParams(rng, p)
		var ends, again []uint64
		want := p.Run(Written(g, 3), &Host{Params: params, Garbage: 1, Fresh: true, Ends: &ends})
		p.Run(Written(g, 3), &Host{Params: params, Garbage: 2, Fresh: true, Ends: &again})
		if !slices.Equal(ends, again) || p.Run(Orders(rng, g, 3, k), &Host{Params: params, Garbage: 3}) != want {
			return false
		}
	}
	return true
}

// pickParams draws the params of three replays.
func pickParams(rng *rand.Rand, p *Program) (out [][]uint32) {
	for range 3 {
		out = append(out, p.params[rng.IntN(len(p.params))])
	}
	return out
}

type drawing struct {
	rng     *rand.Rand
	g       *ir.Graph
	params  bool
	defined []ir.View // views of memory that was written
}

func deviceArg(slot uint8, name string, access ir.ArgAccess) ir.Arg {
	return ir.Arg{Slot: slot, Name: name, Access: access, Type: ir.U32}
}

func constantArg(slot uint8, name string) ir.Arg {
	return ir.Arg{Slot: slot, Name: name, Kind: ir.ConstantArg, Type: ir.U32}
}

// The memories and kernels of every recording.
const (
	in ir.MemID = iota
	weight
	args
	state
	out
	scratch
	other
	low    // an alias of scratch
	middle // likewise
	argsAlias
)

const (
	kOne ir.KernelID = iota
	kTwo
	kUpdate
	kUnlisted
	kUnknown
)

func draw(rng *rand.Rand) *ir.Graph {
	x := &drawing{rng: rng, g: &ir.Graph{Name: "g"}, params: rng.IntN(3) > 0}
	g := x.g
	if x.params {
		g.Params = []ir.Param{{Name: "n", Type: ir.U32, Min: 0, Max: 3}, {Name: "m", Type: ir.U32, Min: 1, Max: 2}}
		if rng.IntN(2) == 0 {
			g.Constraints = []ir.Constraint{{LHS: x.at(0, 1, 1), Max: 4}}
		}
	}
	root := func(name string, kind ir.MemKind, size int64) {
		g.Memories = append(g.Memories, ir.Memory{Name: name, Kind: kind, Size: size, Alias: ir.NoMem})
	}
	root("in", ir.Input, 16*word)
	root("w", ir.Weight, 8*word)
	g.Memories[weight].Init = ir.Init{Kind: ir.InitRandom, Seed: rng.Uint64N(4)}
	root("args", ir.Argument, 12*word)
	g.Memories[args].Init = ir.Init{Kind: ir.InitValues, Values: x.values(12 * word)}
	root("st", ir.State, 16*word)
	root("out", ir.Output, 12*word)
	root("s", ir.Scratch, 24*word)
	root("t", ir.Scratch, 12*word)
	alias := func(name string, of ir.MemID, off, size int64) {
		m := &g.Memories[of]
		g.Memories = append(g.Memories, ir.Memory{Name: name, Kind: m.Kind, Size: size, Alias: of, AliasOff: off})
	}
	alias("s_lo", scratch, 0, 12*word)
	alias("s_mid", scratch, 8*word, 12*word)
	alias("args_2", args, 4*word, 8*word)
	kernel := func(name string, list ...ir.Arg) {
		g.Kernels = append(g.Kernels, ir.Kernel{Name: name, Function: name, Library: ir.Library{Kind: ir.Metallib, Path: "k.metallib", Digest: ir.Digest{1}},
			Args: list, Constants: []ir.FunctionConstant{{Index: 1, Name: "c", Type: ir.U32, Bits: rng.Uint64N(3)}}})
	}
	kernel("one", deviceArg(0, "a", ir.ReadArg), deviceArg(1, "o", ir.WriteArg), constantArg(2, "c"))
	kernel("two", deviceArg(0, "a", ir.ReadArg), deviceArg(1, "b", ir.ReadArg), deviceArg(2, "o", ir.WriteArg), constantArg(3, "c"), ir.Arg{Slot: 4, Name: "d", Kind: ir.ConstantArg, Type: ir.U32, Count: 1})
	kernel("update", deviceArg(0, "a", ir.ReadArg), deviceArg(1, "o", ir.ReadWriteArg), constantArg(2, "c"))
	kernel("unlisted", deviceArg(0, "a", ir.ReadArg), deviceArg(1, "o", ir.WriteArg), deviceArg(2, "u", ir.ReadArg), constantArg(3, "c"))
	kernel("unknown", deviceArg(0, "a", ir.ReadArg), deviceArg(1, "o", ir.WriteArg), constantArg(2, "c"))
	for _, m := range []ir.MemID{in, weight, state} {
		x.defined = append(x.defined, ir.ViewOf(m, 0, 8*word), ir.ViewOf(m, 2*word, 4*word))
	}
	g.Nodes = append(g.Nodes, &ir.Fill{ID: 100, Dst: ir.ViewOf(out, 0, 12*word)}) // so that all of it is defined
	unknown := rng.IntN(5) == 0
	commands := 3 + rng.IntN(7)
	for i := range commands {
		x.command(ir.ID(i), unknown && i == commands/2)
	}
	// The last command combines what came before in the output.
	x.dispatch(ir.ID(commands), kTwo, x.readable(), x.readable(), ir.ViewOf(out, 8*word, 4*word))
	if rng.IntN(3) == 0 {
		x.carry(ir.ID(commands + 1))
	}
	return g
}

// carry carries a part of the output to the input or to the state.
func (x *drawing) carry(id ir.ID) {
	n := 1 + x.rng.Int64N(4)
	to := []ir.MemID{in, state}[x.rng.IntN(2)]
	c := &ir.Carry{ID: id, Dst: ir.ViewOf(to, word*x.rng.Int64N(16-n), word*n), Src: ir.ViewOf(out, word*x.rng.Int64N(12-n), word*n)}
	if x.params && x.rng.IntN(3) == 0 {
		c.Dst.Off = x.at(word*x.rng.Int64N(16-n-3), word, 0)
	}
	x.g.Nodes = append(x.g.Nodes, c)
	for _, m := range []ir.MemID{in, state, out} {
		x.g.Memories[m].DType = ir.U32
	}
}

// at returns c + p·n + q·m, or c if there are no params.
func (x *drawing) at(c, p, q int64) ir.Affine {
	if !x.params {
		return ir.Const(c)
	}
	return ir.Linear(c, ir.Term{Param: 0, Coeff: p}, ir.Term{Param: 1, Coeff: q})
}

// values draws argument memory of the given size: bytes, scalars that depend on params,
// and gaps.
func (x *drawing) values(size int64) (out []ir.Value) {
	for off := int64(0); off+2*word <= size; {
		switch k := x.rng.IntN(6); {
		case k == 0: // a gap
			off += word
		case k <= 2 && x.params:
			out = append(out, ir.Value{Off: off, Type: ir.U32, Expr: x.at(x.rng.Int64N(3), x.rng.Int64N(2), x.rng.Int64N(2))})
			if out[len(out)-1].Expr.IsConst() {
				out[len(out)-1] = ir.Value{Off: off, Type: ir.U32, Bytes: []byte{byte(x.rng.IntN(3)), 0, 0, 0}}
			}
			off += word
		default:
			n := word * (1 + x.rng.Int64N(2))
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(x.rng.IntN(2))
			}
			out = append(out, ir.Value{Off: off, Type: ir.U32, Bytes: b})
			off += n
		}
	}
	if len(out) == 0 {
		out = append(out, ir.Value{Type: ir.U32, Bytes: []byte{1, 0, 0, 0}})
	}
	return out
}

func (x *drawing) readable() ir.View {
	v := x.defined[max(x.rng.IntN(len(x.defined)), x.rng.IntN(len(x.defined)))]
	if v.Len.IsConst() && v.Len.Const > word && x.rng.IntN(3) == 0 {
		n := word * (1 + x.rng.Int64N(v.Len.Const/word))
		v.Off = v.Off.AddConst(word * x.rng.Int64N((v.Len.Const-n)/word+1))
		v.Len = ir.Const(n)
	}
	if x.rng.IntN(3) == 0 {
		v = rooted(x.g, v)
	}
	return v
}

// writable draws a view of memory that commands write.
func (x *drawing) writable() ir.View {
	m := []ir.MemID{state, out, scratch, scratch, other, other, low, middle}[x.rng.IntN(8)]
	words := x.g.Memories[m].Size / word
	if m == out {
		words -= 4 // the rest is kept for the last command
	}
	if x.params && x.rng.IntN(3) == 0 {
		off := word * x.rng.Int64N(words-5)
		if x.rng.IntN(2) == 0 {
			return ir.View{Mem: m, Off: x.at(off, word, 0), Len: ir.Const(2 * word)}
		}
		return ir.View{Mem: m, Off: ir.Const(off), Len: x.at(word, word, 0)}
	}
	n := 1 + x.rng.Int64N(4)
	return ir.ViewOf(m, word*x.rng.Int64N(words-n+1), word*n)
}

// apart draws a writable view that shares no byte with the others.
func (x *drawing) apart(others ...ir.View) ir.View {
	all := Valuations(x.g)
	for {
		v := rooted(x.g, x.writable())
		if !slices.ContainsFunc(others, func(o ir.View) bool {
			o = rooted(x.g, o)
			return o.Mem == v.Mem && slices.ContainsFunc(all, func(p []uint32) bool { return meets(o.Contiguous(), v, p) })
		}) {
			return v
		}
	}
}

// constant draws an argument: inline bytes, a scalar, or a view of argument memory,
// which may cover several values or gaps, or begin at an offset that depends on a
// param.
func (x *drawing) constant(slot uint8, one bool) ir.Binding {
	switch k := x.rng.IntN(6); {
	case k == 0:
		return ir.BytesArg(slot, []byte{byte(x.rng.IntN(3)), 0, 0, 0})
	case k == 1 && x.params && one:
		return ir.ScalarArg(slot, ir.U32, x.at(x.rng.Int64N(3), 1, x.rng.Int64N(2)))
	case k == 2 && x.params:
		return ir.BufferArg(slot, ir.View{Mem: args, Off: x.at(word*x.rng.Int64N(4), word, 0), Len: ir.Const(2 * word)})
	}
	m := []ir.MemID{args, argsAlias}[x.rng.IntN(2)]
	n := 1 + x.rng.Int64N(4)
	return ir.BufferArg(slot, ir.ViewOf(m, word*x.rng.Int64N(x.g.Memories[m].Size/word-n+1), word*n))
}

func (x *drawing) command(id ir.ID, unknown bool) {
	src := x.readable()
	switch k := x.rng.IntN(10); {
	case unknown:
		x.dispatch(id, kUnknown, src, x.apart(src))
	case k == 0:
		v := x.writable()
		x.g.Nodes = append(x.g.Nodes, &ir.Fill{ID: id, Dst: v, Value: byte(x.rng.IntN(2))})
		x.defined = append(x.defined, v)
	case k <= 2:
		dst := x.apart(src)
		for !dst.Len.Equal(src.Len) {
			src = x.readable()
			dst = x.apart(src)
			if dst.Len.IsConst() && src.Len.IsConst() {
				n := min(dst.Len.Const, src.Len.Const)
				dst.Len, src.Len = ir.Const(n), ir.Const(n)
			}
		}
		x.g.Nodes = append(x.g.Nodes, &ir.Copy{ID: id, Dst: dst, Src: src})
		x.defined = append(x.defined, dst)
	case k <= 4:
		x.dispatch(id, kOne, src, x.apart(src))
	case k == 5:
		x.dispatch(id, kUnlisted, src, x.apart(src))
	case k == 6:
		dst := x.readable()
		for x.g.Memories[dst.Mem].Kind.ReadOnly() {
			dst = x.readable()
		}
		x.dispatch(id, kUpdate, ir.ViewOf(in, 0, 4*word), dst)
	default:
		b := x.readable()
		x.dispatch(id, kTwo, src, b, x.apart(src, b))
	}
}

// dispatch adds a dispatch of a kernel that writes its last view.
func (x *drawing) dispatch(id ir.ID, k ir.KernelID, views ...ir.View) {
	d := &ir.Dispatch{ID: id, Kernel: k, Threadgroup: [3]uint32{4, 1, 1}, Grid: [3]ir.Extent{{Num: x.at(2, 1, 0), Div: 1 + x.rng.Int64N(2)}, ir.Ext(1), ir.Ext(1)}}
	e := &ir.Effects{Complete: true}
	for i, v := range views {
		d.Bindings = append(d.Bindings, ir.BufferArg(uint8(i), v))
		r := v.Contiguous()
		if v.Len.IsConst() && v.Len.Const >= 3*word && x.rng.IntN(4) == 0 { // columns
			r.Run, r.Dims = ir.Const(word), []ir.Dim{{Count: ir.Const((v.Len.Const + word) / (2 * word)), Stride: 2 * word}}
		} else if v.Len.IsConst() && v.Len.Const > word && x.rng.IntN(6) == 0 {
			r.Run = ir.Const(v.Len.Const - word) // the effects leave out a part of the view
		}
		switch {
		case i < len(views)-1:
			e.Reads = append(e.Reads, r)
		default:
			e.Writes = append(e.Writes, ir.Write{Region: r, Must: k != kUpdate, Atomic: k == kUpdate && x.rng.IntN(3) == 0})
			if len(r.Dims) == 0 && k != kUpdate {
				x.defined = append(x.defined, ir.View{Mem: v.Mem, Off: r.Off, Len: r.Run})
			}
		}
	}
	slot := uint8(len(views))
	if k == kUnlisted { // the effects do not list this view
		u := ir.ViewOf([]ir.MemID{in, weight, state, other}[x.rng.IntN(4)], word*x.rng.Int64N(4), word*(1+x.rng.Int64N(4)))
		d.Bindings = append(d.Bindings, ir.BufferArg(slot, u))
		slot++
	}
	for c := range 1 + int(k&1) {
		if k == kTwo || c == 0 {
			d.Bindings = append(d.Bindings, x.constant(slot, c == 1))
			slot++
		}
	}
	if k != kUnknown {
		d.Effects = e
	}
	x.g.Nodes = append(x.g.Nodes, d)
}

// order puts barriers and commits where commands conflict, and some more. It returns
// false if that failed.
func order(rng *rand.Rand, g *ir.Graph) bool {
	p := NewProgram(g, g, nil)
	nodes := g.Nodes
	var out []ir.Node
	var epoch []int
	for i, n := range nodes {
		switch {
		case slices.ContainsFunc(epoch, func(j int) bool { return p.conflict(j, i) }) || rng.IntN(6) == 0:
			if rng.IntN(8) == 0 {
				out = append(out, &ir.Commit{Order: ir.OrderEvent})
			} else {
				out = append(out, &ir.Barrier{})
			}
			epoch = nil
		}
		out = append(out, n)
		epoch = append(epoch, i)
	}
	g.Nodes = append(out, &ir.Barrier{})
	return g.Check() == nil
}

// conflict reports whether two commands touch a byte that at least one of them writes.
func (p *Program) conflict(i, j int) bool {
	a, b := p.touched(i), p.touched(j)
	if a == nil || b == nil {
		return true
	}
	for k, w := range a {
		if v, ok := b[k]; ok && (w || v) {
			return true
		}
	}
	return false
}

type byteAt struct {
	mem ir.MemID
	at  int64
}

// touched returns the bytes that a command may touch, and whether it writes them; nil
// means all bytes.
func (p *Program) touched(i int) map[byteAt]bool {
	c, out := &p.of[i], map[byteAt]bool{}
	add := func(r ir.Region, write bool) {
		for _, q := range p.params {
			r.Runs(q, func(lo, end int64) bool {
				for at := lo; at < end; at++ {
					out[byteAt{r.Mem, at}] = out[byteAt{r.Mem, at}] || write
				}
				return true
			})
		}
	}
	switch n := c.node.(type) {
	case *ir.Copy:
		add(rooted(p.g, n.Src).Contiguous(), false)
		add(rooted(p.g, n.Dst).Contiguous(), true)
	case *ir.Fill:
		add(rooted(p.g, n.Dst).Contiguous(), true)
	case *ir.Carry:
		add(rooted(p.g, n.Src).Contiguous(), false)
		add(rooted(p.g, n.Dst).Contiguous(), true)
	case *ir.Dispatch:
		if !c.known {
			return nil
		}
		for _, r := range c.reads {
			add(r, false)
		}
		for _, w := range c.writes {
			add(w.Region, true)
		}
	}
	return out
}
