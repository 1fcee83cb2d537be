package metamorph

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Recipe says with numbers what a graph is made of, so that a property-testing library
// can draw and shrink it. Every recipe makes a valid graph: commands that would be
// ill-formed are left out. The zero Recipe makes a graph of one command.
type Recipe struct {
	Params  bool   // whether offsets, lengths and scalars may depend on params
	Effects uint8  // which dispatches store their effects: none, all, or every other one
	Commits uint8  // as bits: which of the commits order nothing, where that is sound
	Carries []byte // which words of the output are carried, and where to
	Extra   []byte // where superfluous barriers stand
	Ops     []Op
	Passes  []byte // see [Recipe.Pipeline]
}

// Op holds the choices for one operation. The first byte says which operation it is.
type Op [16]byte

// word is the size in bytes of an f32, the type of all elements.
const word = 4

// kitchen is a graph that is being made.
type kitchen struct {
	g       *ir.Graph
	params  bool
	pos, n  ir.ParamID
	eps     ir.ParamID
	vs      [][]uint32        // the params' values that matter here, all of them
	defined []map[wordAt]bool // by valuation: the words of outputs and scratch memory that are defined
	views   []ir.View         // constant ranges that are known to be defined, the latest last
	rows    []ir.View         // such ranges of n words
	kernels map[string]ir.KernelID
	op      Op
	at      int
	ids     ir.ID
}

type wordAt struct {
	mem ir.MemID // a root memory
	at  int64    // the index of the word
}

// The memories, by position in [ir.Graph.Memories].
const (
	in ir.MemID = iota
	weight
	one
	state
	cache
	out
	scratch
	small
	low
	middle
	inner
	upper
	codes // of three quantized matrices, each with codes, scales and biases
)

// rowsOf and columnsOf are the shape of the quantized matrices. They have 4-bit codes,
// and one scale and one bias for each row of 32.
const rowsOf, columnsOf = 8, 32

// values lists the values that the recipe's params may have.
func (k *kitchen) values() {
	if !k.params {
		k.vs = [][]uint32{nil}
		return
	}
	for pos := range uint32(4) {
		for n := uint32(1); n <= 3 && pos+n <= 4; n++ {
			k.vs = append(k.vs, []uint32{pos, n, 0x3727c5ac}) // eps = 1e-5
		}
	}
}

// Graph makes the graph. It passes [ir.Graph.Check], it has no races, neither within a
// replay nor from one replay to the next, and none of its commands reads undefined
// bytes.
func (r Recipe) Graph() (*ir.Graph, error) {
	k := &kitchen{g: &ir.Graph{Name: "g"}, params: r.Params, kernels: map[string]ir.KernelID{}}
	g := k.g
	if r.Params {
		k.pos, k.n, k.eps = 0, 1, 2
		g.Params = []ir.Param{{Name: "pos", Type: ir.U32, Max: 3}, {Name: "n", Type: ir.U32, Min: 1, Max: 3}, {Name: "eps", Type: ir.F32, Min: 1.0 / (1 << 20), Max: 1}}
		g.Constraints = []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Param: 0, Coeff: 1}, ir.Term{Param: 1, Coeff: 1}), Max: 4}}
	}
	random := func(seed uint64) ir.Init { return ir.Init{Kind: ir.InitRandom, Seed: seed} }
	root := func(name string, kind ir.MemKind, words int64, init ir.Init) {
		g.Memories = append(g.Memories, ir.Memory{Name: name, Kind: kind, Size: words * word, DType: ir.F32, Shape: []int64{words}, Init: init, Alias: ir.NoMem})
	}
	alias := func(name string, of ir.MemID, at, words int64) {
		g.Memories = append(g.Memories, ir.Memory{Name: name, Kind: g.Memories[of].Kind, Size: words * word, Alias: of, AliasOff: at * word})
	}
	root("in", ir.Input, 40, ir.Init{})
	root("w", ir.Weight, 16, random(7))
	root("one", ir.Weight, 1, ir.FillU32(0x3f800000))
	root("st", ir.State, 24, random(8))
	root("cache", ir.State, 16, random(9))
	root("out", ir.Output, 20, ir.Init{})
	root("s", ir.Scratch, 40, ir.Init{})
	root("t", ir.Scratch, 16, ir.Init{})
	alias("s_low", scratch, 0, 20)
	alias("s_mid", scratch, 12, 20)
	alias("s_in", middle, 4, 10)
	alias("st_up", state, 8, 16)
	for i := range 3 {
		root(fmt.Sprintf("q%d", i), ir.Weight, rowsOf*columnsOf/8, random(uint64(20+i)))
		q := &g.Memories[len(g.Memories)-1]
		q.DType, q.Shape = ir.U32, []int64{rowsOf, columnsOf / 8}
		root(fmt.Sprintf("q%d.scales", i), ir.Weight, rowsOf, random(uint64(30+i)))
		root(fmt.Sprintf("q%d.biases", i), ir.Weight, rowsOf, random(uint64(40+i)))
	}
	k.values()
	for range k.vs {
		k.defined = append(k.defined, map[wordAt]bool{})
	}
	for _, m := range []ir.MemID{in, weight, state, cache} {
		k.views = append(k.views, ir.ViewOf(m, 0, g.Memories[m].Size))
	}
	for _, op := range r.Ops {
		k.op, k.at = op, 0
		k.command()
	}
	// The last value is copied to the output, so that something is seen.
	k.op, k.at = Op{}, 0
	v := k.views[len(k.views)-1]
	v.Len = ir.Const(min(v.Len.Const, 4*word))
	k.add(&ir.Copy{Dst: ir.View{Mem: out, Off: ir.Const(15 * word), Len: v.Len}, Src: v})

	for _, c := range r.Carries {
		k.op, k.at = Op{1: c, 2: c >> 2, 3: c >> 5}, 1
		k.carry()
	}

	judge.PlaceBarriers(g)
	o := judge.Options{Valuations: len(k.vs) + 1}
	bit := 0
	for _, n := range g.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			old := c.Order
			if r.Commits>>(bit%8)&1 == 1 {
				if c.Order = ir.OrderNone; !judge.Sound(g, o) {
					c.Order = old
				}
			}
			bit++
		}
	}
	if r.Commits >= 128 { // one more commit, where no order is needed
		for i := range len(g.Nodes) - 1 {
			old := g.Nodes
			g.Nodes = slices.Insert(slices.Clone(old), 1+(i+int(r.Commits))%(len(old)-1), ir.Node(&ir.Commit{}))
			if judge.Sound(g, o) {
				break
			}
			g.Nodes = old
		}
	}
	for _, b := range r.Extra {
		g.Nodes = slices.Insert(g.Nodes, int(b)%(len(g.Nodes)+1), ir.Node(&ir.Barrier{}))
	}
	i := 0
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			if i++; r.Effects%3 == 1 || r.Effects%3 == 2 && i%2 == 0 {
				e, err := msl.Describe(g, d)
				if err != nil {
					return nil, err
				}
				d.Effects = e
			}
		}
	}
	if err := g.Check(); err != nil {
		return nil, err
	}
	if !judge.Sound(g, o) {
		return nil, fmt.Errorf("the graph races")
	}
	return g, nil
}

// carry adds a carry of words of the output, if they are defined.
func (k *kitchen) carry() {
	to := []ir.MemID{in, state, cache, in}[k.next(4)]
	n := int64(1 + k.next(4))
	dst := ir.ViewOf(to, word*int64(k.next(8)), n*word)
	for at := int64(15); at >= 0; at-- { // the last words are the likeliest
		if k.add(&ir.Carry{Dst: dst, Src: ir.ViewOf(out, at*word, n*word)}) {
			return
		}
	}
}

// next returns the next choice of the current op, a number below n.
func (k *kitchen) next(n int) int {
	if k.at == len(k.op) {
		k.at = 1
	}
	b := int(k.op[k.at])
	k.at++
	return b % n
}

// readable picks n words that are defined.
func (k *kitchen) readable(n int64) ir.View {
	for i := range k.views { // the latest writes come first
		v := k.views[len(k.views)-1-(k.next(6)+i)%len(k.views)]
		if v.Len.Const < n*word {
			continue
		}
		v.Off = v.Off.AddConst(word * int64(k.next(int(v.Len.Const/word-n)+1)))
		v.Len = ir.Const(n * word)
		if k.next(3) == 0 { // name the same bytes through an alias
			root, off := k.g.Root(v.Mem)
			v.Mem, v.Off = root, v.Off.AddConst(off)
		}
		return v
	}
	return ir.ViewOf(weight, 0, n*word)
}

// writable picks n words that may be written.
func (k *kitchen) writable(n int64) ir.View {
	mems := []ir.MemID{scratch, low, middle, inner, small, scratch, out, state, cache, upper}
	for i := range mems {
		m := mems[(k.next(len(mems))+i)%len(mems)]
		if room := k.g.Memories[m].Size/word - n; room >= 0 {
			return ir.ViewOf(m, word*int64(k.next(int(room)+1)), n*word)
		}
	}
	return ir.ViewOf(scratch, 0, n*word)
}

// row returns a view of one word, or of n words, that begins at word pos + base of a
// memory.
func (k *kitchen) row(m ir.MemID, base int64, rows bool) ir.View {
	v := ir.View{Mem: m, Off: ir.Linear(base*word, ir.Term{Param: k.pos, Coeff: word}), Len: ir.Const(word)}
	if rows {
		v.Len = ir.Linear(0, ir.Term{Param: k.n, Coeff: word})
	}
	return v
}

func (k *kitchen) kernel(name string, constants ...ir.FunctionConstant) ir.KernelID {
	id, ok := k.kernels[name]
	if !ok {
		x := msl.Declarations(name)[0].Kernel(name)
		x.Constants = constants
		k.g.Kernels = append(k.g.Kernels, x)
		id = ir.KernelID(len(k.g.Kernels) - 1)
		k.kernels[name] = id
	}
	return id
}

// dispatch adds a dispatch over a grid of threads, unless it would be ill-formed or
// read undefined bytes.
func (k *kitchen) dispatch(kernel ir.KernelID, x, y ir.Affine, group uint32, bs ...ir.Binding) bool {
	slices.SortFunc(bs, func(a, b ir.Binding) int { return int(a.Slot) - int(b.Slot) })
	return k.add(&ir.Dispatch{Kernel: kernel, Bindings: bs, GridKind: ir.Threads, Threadgroup: [3]uint32{group, 1, 1},
		Grid: [3]ir.Extent{{Num: x, Div: 1}, {Num: y, Div: 1}, ir.Ext(1)}})
}

func (k *kitchen) add(n ir.Node) bool {
	g := k.g
	var e *ir.Effects
	switch n := n.(type) {
	case *ir.Dispatch:
		n.ID = k.ids
		var err error
		if e, err = msl.Describe(g, n); err != nil {
			return false
		}
	case *ir.Copy:
		n.ID = k.ids
		if e = n.Touches(); k.overlap(n.Src, n.Dst) {
			return false
		}
	case *ir.Fill:
		n.ID = k.ids
		e = n.Touches()
	case *ir.Carry:
		n.ID = k.ids
		e = n.Touches()
	}
	g.Nodes = append(g.Nodes, n)
	if g.Check() != nil {
		g.Nodes = g.Nodes[:len(g.Nodes)-1]
		return false
	}
	for i, v := range k.vs {
		for _, r := range e.Reads {
			if !k.every(r, v, func(p wordAt) bool { return k.defined[i][p] || kept(g.Memories[p.mem].Kind) }) {
				g.Nodes = g.Nodes[:len(g.Nodes)-1]
				return false
			}
		}
	}
	for i, v := range k.vs {
		for _, w := range e.Writes {
			k.every(w.Region, v, func(p wordAt) bool { k.defined[i][p] = true; return true })
		}
	}
	k.ids++
	return true
}

// kept reports whether memory of this kind is defined when a replay begins.
func kept(m ir.MemKind) bool { return m != ir.Output && m != ir.Scratch }

func (k *kitchen) every(r ir.Region, v []uint32, f func(wordAt) bool) bool {
	root, off := k.g.Root(r.Mem)
	ok := true
	r.Runs(v, func(lo, hi int64) bool {
		for b := lo; b < hi && ok; b += word {
			ok = f(wordAt{root, (b + off) / word})
		}
		return ok
	})
	return ok
}

func (k *kitchen) overlap(a, b ir.View) bool {
	for _, v := range k.vs {
		words := map[wordAt]bool{}
		k.every(a.Contiguous(), v, func(p wordAt) bool { words[p] = true; return true })
		if !k.every(b.Contiguous(), v, func(p wordAt) bool { return !words[p] }) {
			return true
		}
	}
	return false
}

func (k *kitchen) wrote(ok bool, v ir.View) bool {
	if ok {
		k.views = append(k.views, v)
	}
	return ok
}
