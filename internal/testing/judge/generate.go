package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Choices make the choices of a generator: a [rand.Rand], or what a library for property
// tests draws and shrinks.
type Choices interface {
	IntN(n int) int // a number below n
}

// word is the size in bytes of all elements in generated graphs.
const word = 4

// The memories of generated graphs, by position in [ir.Graph.Memories].
const (
	in ir.MemID = iota
	weight
	one
	two
	state
	cache
	out
	scratch
	small
	low // aliases: of scratch, of scratch, of middle, of state
	middle
	inner
	upper
	rest // of graphs of opaque kernels: argument memory, and an alias of it; else quantized matrices
)

// generator is a graph that is being made.
type generator struct {
	Choices
	g        *ir.Graph
	builtin  bool
	params   bool
	vs       [][]uint32        // the values of the params that matter, all of them
	defined  []map[byteAt]bool // by valuation: the first bytes of defined words of outputs and scratch memory
	views    []ir.View         // what commands wrote, or what is always defined; the latest last
	kernels  map[string]ir.KernelID
	products []func() // products of the results of norms, which are still to be added
}

// Generate draws a graph of 4 to 17 commands of opaque kernels, a few sums, and sometimes
// norms and products. Opaque kernels have arguments inline, in argument memory or in
// memory that commands write, views that their effects leave out or name a part of,
// strided effects, may-writes and atomics. Sometimes one has unknown effects. The graph has
// aliases, partial overlaps, matrices of which each column is written, a cache that is
// written at a param, states, carries and several command buffers. order places its
// barriers; sometimes edges take their place. The result has no race in the sense of
// [Judge], with replays ordered as o says, and no command reads undefined bytes.
func Generate(c Choices, o Options, order func(*ir.Graph) error) (*ir.Graph, error) {
	return generate(c, false, o, order)
}

// GenerateBuiltin draws a graph of builtin kernels only, which a device can run, of 1 to
// 14 groups of commands. Many groups look fusible. It is ordered by barriers.
func GenerateBuiltin(c Choices) (*ir.Graph, error) {
	return generate(c, true, Options{Valuations: 32}, placeBarriers)
}

func generate(c Choices, builtin bool, o Options, order func(*ir.Graph) error) (*ir.Graph, error) {
	for range 100 {
		x := &generator{Choices: c, g: &ir.Graph{Name: "g"}, builtin: builtin, kernels: map[string]ir.KernelID{}}
		x.memories()
		if builtin {
			for range 1 + x.IntN(14) {
				x.group()
			}
		} else {
			x.opaqueCommands()
		}
		x.end()
		if err := order(x.g); err != nil {
			return nil, fmt.Errorf("placing barriers: %w", err)
		}
		if !Close(x.g, o) {
			continue
		}
		x.commits(o)
		if err := x.effects(); err != nil {
			return nil, err
		}
		if !builtin && x.chance(5) {
			PlaceEdges(x, x.g)
		}
		return x.g, x.g.Check()
	}
	return nil, fmt.Errorf("no sound graph in 100 tries")
}

// Sound reports whether a graph has no race, within a replay or from one replay to the
// next as o orders them, for all values of the params that o looks at.
func Sound(g *ir.Graph, o Options) bool {
	o.setDefaults()
	return len(racesOf(newBareLowerer(g), valuations(g, o.Valuations, rand.New(rand.NewPCG(o.Seed, 1))), o, 0)) == 0
}

// Close makes it possible for replays of a graph to follow one another, if it has no
// other races: by a barrier at its end, or else by ordering its commits, or else by one
// more commit.
func Close(g *ir.Graph, o Options) bool {
	if Sound(g, o) {
		return true
	}
	g.Nodes = append(g.Nodes, &ir.Barrier{})
	if Sound(g, o) {
		return true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if c, ok := n.(*ir.Commit); ok && c.Order == ir.OrderNone {
			c.Order = ir.OrderEvent
			if Sound(g, o) {
				return true
			}
		}
	}
	g.Nodes[len(g.Nodes)-1] = &ir.Commit{Order: ir.OrderEvent}
	return Sound(g, o)
}

func (x *generator) chance(n int) bool { return x.IntN(n) == 0 }

func (x *generator) number(n int64) int64 { return int64(x.IntN(int(n))) }

const eps = 0x3727c5ac // 1e-5

// memories adds the params and memories. A device that runs the graph has more of them:
// its kernels touch more bytes.
func (x *generator) memories() {
	g := x.g
	if x.params = x.chance(2); x.params {
		g.Params = []ir.Param{{Name: "pos", Type: ir.U32, Max: 2}, {Name: "n", Type: ir.U32, Min: 1, Max: 2}}
		g.Constraints = []ir.Constraint{{LHS: x.at(0, 1, 1), Max: 3}}
		if x.builtin {
			g.Params = append(g.Params, ir.Param{Name: "eps", Type: ir.F32, Min: 1.0 / (1 << 20), Max: 1})
		}
	}
	x.vs = [][]uint32{{0, 1, eps}, {0, 2, eps}, {1, 1, eps}, {1, 2, eps}, {2, 1, eps}}
	if !x.params {
		x.vs = x.vs[:1]
	}
	for range x.vs {
		x.defined = append(x.defined, map[byteAt]bool{})
	}
	random := func(seed uint64) ir.Init { return ir.Init{Kind: ir.InitRandom, Seed: seed} }
	root := func(name string, kind ir.MemKind, init ir.Init, words ...int64) *ir.Memory {
		n := words[0]
		if x.builtin {
			n = words[len(words)-1]
		}
		g.Memories = append(g.Memories, ir.Memory{Name: name, Kind: kind, Size: n * word, DType: ir.F32, Shape: []int64{n}, Init: init, Alias: ir.NoMem})
		return &g.Memories[len(g.Memories)-1]
	}
	alias := func(name string, of ir.MemID, at, words int64) {
		g.Memories = append(g.Memories, ir.Memory{Name: name, Kind: g.Memories[of].Kind, Size: words * word, Alias: of, AliasOff: at * word})
	}
	root("in", ir.Input, ir.Init{}, 8, 40)
	root("w", ir.Weight, random(7), 8, 16)
	root("one", ir.Weight, ir.FillU32(0x3f800000), 1)
	root("two", ir.Weight, ir.FillU32(0x40000000), 1)
	root("st", ir.State, random(8), 8, 24)
	root("cache", ir.State, random(9), 8, 16)
	root("out", ir.Output, ir.Init{}, 10, 20)
	root("s", ir.Scratch, ir.Init{}, 16, 40)
	root("t", ir.Scratch, ir.Init{}, 8, 16)
	half := g.Memories[scratch].Size / word / 2
	alias("s_low", scratch, 0, half)
	alias("s_mid", scratch, half-2, half)
	alias("s_in", middle, 2, half/2)
	alias("st_up", state, 2, g.Memories[state].Size/word-2)
	for _, m := range []ir.MemID{in, weight, state, cache} {
		x.views = append(x.views, ir.ViewOf(m, 0, g.Memories[m].Size))
	}
	if x.params {
		x.views = append(x.views, ir.View{Mem: cache, Len: x.at(0, word, word)}) // the cache up to pos + n
	}
	if !x.builtin {
		m := root("args", ir.Argument, ir.Init{Kind: ir.InitValues}, 12)
		m.DType, m.Shape, m.Init.Values = ir.Invalid, nil, x.values(m.Size)
		alias("args_2", rest, 4, 8)
		return
	}
	for i := range uint64(3) {
		q := root(fmt.Sprintf("q%d", i), ir.Weight, random(20+i), rowsOf*columnsOf/8)
		q.DType, q.Shape = ir.U32, []int64{rowsOf, columnsOf / 8}
		root(fmt.Sprintf("q%d.scales", i), ir.Weight, random(30+i), rowsOf)
		root(fmt.Sprintf("q%d.biases", i), ir.Weight, random(40+i), rowsOf)
	}
}

// at returns c + p·pos + q·n, or c if there are no params.
func (x *generator) at(c, p, q int64) ir.Affine {
	if !x.params {
		return ir.Const(c)
	}
	return ir.Linear(c, ir.Term{Param: 0, Coeff: p}, ir.Term{Param: 1, Coeff: q})
}

// readable picks n words that are likely to be defined; any number if n is 0.
func (x *generator) readable(n int64) ir.View {
	for range 30 {
		v := x.views[max(x.IntN(len(x.views)), x.IntN(len(x.views)))] // later writes are read more often
		if v.Len.IsConst() && v.Len.Const > n*word && (n > 0 || x.chance(3)) {
			k := n * word
			if n == 0 {
				k = word * (1 + x.number(v.Len.Const/word))
			}
			v.Off, v.Len = v.Off.AddConst(word*x.number((v.Len.Const-k)/word+1)), ir.Const(k)
		}
		if n == 0 || v.Len.Equal(ir.Const(n*word)) {
			if x.chance(3) { // name the same bytes through the alias's memory
				root, off := x.g.Root(v.Mem)
				v.Mem, v.Off = root, v.Off.AddConst(off)
			}
			return v
		}
	}
	return ir.ViewOf(in, 0, n*word)
}

// writable picks n words that may be written; any number if n is 0, which may depend on
// params.
func (x *generator) writable(n int64) ir.View {
	ms := []ir.MemID{state, cache, upper, out, out, scratch, scratch, scratch, small, small, low, middle, inner}
	m := ms[x.IntN(len(ms))]
	words := x.g.Memories[m].Size / word
	switch {
	case n == 0 && x.params && x.chance(4):
		return x.row(m, x.number(max(words-3, 1)), x.IntN(3))
	case n == 0:
		n = 1 + x.number(min(4, words))
	}
	return ir.ViewOf(m, word*x.number(max(words-n, 0)+1), n*word)
}

// row returns words from word base of a memory on: one at pos, n at pos, or n.
func (x *generator) row(m ir.MemID, base int64, form int) ir.View {
	v := ir.View{Mem: m, Off: x.at(base*word, word, 0), Len: x.at(0, 0, word)}
	switch form {
	case 0:
		v.Len = ir.Const(word)
	case 2:
		v.Off = ir.Const(base * word)
	}
	return v
}

// kernel returns the kernel of that name, which is added if need be.
func (x *generator) kernel(name string, make func() ir.Kernel) ir.KernelID {
	id, ok := x.kernels[name]
	if !ok {
		id = ir.KernelID(len(x.g.Kernels))
		x.g.Kernels = append(x.g.Kernels, make())
		x.kernels[name] = id
	}
	return id
}

// add adds a command, unless it would be ill-formed, read undefined bytes, or be one of an
// opaque kernel that writes what it reads, of which nobody knows what it computes.
func (x *generator) add(n ir.Command) bool {
	g := x.g
	n.Renumber(freeID(g), nil)
	e := n.Touches()
	var constants []ir.Region // which effects may leave out
	declared := false
	if d, ok := n.(*ir.Dispatch); ok {
		k := &g.Kernels[d.Kernel]
		if declared = k.Library.Declared(); declared {
			var err error
			if e, err = msl.Describe(g, d); err != nil {
				return false
			}
		}
		for _, b := range d.Bindings {
			if arg, _ := k.Arg(b.Slot); b.Kind == ir.BindView && arg.Kind == ir.ConstantArg {
				constants = append(constants, b.View.Contiguous())
			}
		}
	}
	g.Nodes = append(g.Nodes, n)
	if g.Check() == nil && x.readsDefined(e, constants, !declared) {
		return true
	}
	g.Nodes = g.Nodes[:len(g.Nodes)-1]
	return false
}

// readsDefined checks what a command touches and, if it may, notes what it defines.
func (x *generator) readsDefined(e *ir.Effects, constants []ir.Region, apart bool) bool {
	if !e.Known() {
		return true
	}
	for i, v := range x.vs {
		written := map[byteAt]bool{}
		defined := func(p byteAt) bool {
			k := x.g.Memories[p.mem].Kind
			return k != ir.Output && k != ir.Scratch || x.defined[i][p]
		}
		for _, w := range e.Writes {
			if !x.every(w.Region, v, func(p byteAt) bool {
				ok := !written[p] && (w.Must || defined(p))
				written[p] = true
				return ok
			}) {
				return false
			}
		}
		for _, r := range slices.Concat(e.Reads, constants) {
			if !x.every(r, v, func(p byteAt) bool { return defined(p) && !(apart && written[p]) }) {
				return false
			}
		}
	}
	for i, v := range x.vs {
		for _, w := range e.Writes {
			x.every(w.Region, v, func(p byteAt) bool { x.defined[i][p] = true; return true })
		}
	}
	return true
}

// every reports whether yes is true of each word of a region.
func (x *generator) every(r ir.Region, v []uint32, yes func(byteAt) bool) bool {
	root, off := x.g.Root(r.Mem)
	ok := true
	r.Runs(v, func(lo, hi int64) bool {
		for b := lo + off; b < hi+off && ok; b += word {
			ok = yes(byteAt{root, b})
		}
		return ok
	})
	return ok
}

// wrote notes that a view can be read, if the command was added that writes it.
func (x *generator) wrote(ok bool, v ir.View) bool {
	if ok {
		x.views = append(x.views, v)
	}
	return ok
}

// end adds what makes the last values seen: a copy or, of three values, a kernel; and
// carries.
func (x *generator) end() {
	v, last := x.views[len(x.views)-1], x.g.Memories[out].Size/word
	if x.builtin || x.chance(2) || !x.opaque(x.views[max(0, len(x.views)-3):], ir.ViewOf(out, (last-2)*word, 2*word), plain) {
		v.Len = ir.Const(word)
		x.add(&ir.Copy{Dst: ir.ViewOf(out, (last-1)*word, word), Src: v})
	}
	for range x.IntN(8) / 6 {
		to := []ir.MemID{in, state, cache}[x.IntN(3)]
		n := 1 + x.number(3)
		dst := ir.ViewOf(to, word*x.number(6), n*word)
		if x.chance(3) {
			dst.Off = x.at(dst.Off.Const/2, word, 0)
		}
		for at := last - 1; at >= 0; at-- { // the last words are the likeliest to be defined
			if x.add(&ir.Carry{Dst: dst, Src: ir.ViewOf(out, at*word, n*word)}) {
				break
			}
		}
	}
}

// commits makes commits order nothing where no order is needed, adds one such commit, and
// adds barriers that are not needed.
func (x *generator) commits(o Options) {
	g := x.g
	for _, n := range g.Nodes {
		if c, ok := n.(*ir.Commit); ok && c.Order != ir.OrderNone && x.chance(2) {
			old := c.Order
			if c.Order = ir.OrderNone; !Sound(g, o) {
				c.Order = old
			}
		}
	}
	for range 8 {
		old := g.Nodes
		g.Nodes = slices.Insert(slices.Clone(old), 1+x.IntN(len(old)), ir.Node(&ir.Commit{}))
		if _, last := g.Nodes[len(old)].(*ir.Commit); !last && Sound(g, o) {
			break
		}
		g.Nodes = old
	}
	for range x.IntN(8) / 5 {
		insert(g, x.IntN(len(g.Nodes)+1), &ir.Barrier{})
	}
}

// effects stores the effects of none of the dispatches of builtin kernels, of all or of
// every other one.
func (x *generator) effects() error {
	form := x.IntN(3)
	for i, n := range x.g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok || !x.g.Kernels[d.Kernel].Library.Declared() {
			continue
		}
		d.Effects = nil
		if form == 1 || form == 2 && i%2 == 0 {
			e, err := msl.Describe(x.g, d)
			if err != nil {
				return err
			}
			d.Effects = e
		}
	}
	return nil
}
