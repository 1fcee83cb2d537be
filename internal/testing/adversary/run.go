package adversary

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// mix is one round of a hash (the finalizer of SplitMix64: Steele, Lea, Flood 2014).
func mix(h, x uint64) uint64 {
	h ^= x
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31 + 0x9e3779b97f4a7c15
}

func mixBytes(h uint64, b []byte) uint64 {
	h = mix(h, uint64(len(b)))
	for _, x := range b {
		h = mix(h, uint64(x))
	}
	return h
}

func mixText(h uint64, s string) uint64 { return mixBytes(h, []byte(s)) }

// Origins says which command of the recording each command of a changed graph was made
// from, by ID.
type Origins map[ir.ID]ir.ID

// Program is a graph that can be run.
type Program struct {
	g      *ir.Graph
	params [][]uint32 // all values that are admitted
	of     []command  // by node
}

// command says what a node touches, in root memories.
type command struct {
	node   ir.Node
	known  bool
	reads  []ir.Region
	writes []ir.Write
	pinned []bool // by binding: no effect lists any byte of it
}

// Valuations lists all values of g's params that its bounds and constraints admit.
func Valuations(g *ir.Graph) (out [][]uint32) {
	var rec func(p []uint32)
	rec = func(p []uint32) {
		if len(p) == len(g.Params) {
			for _, c := range g.Constraints {
				if c.LHS.Eval(p) > c.Max {
					return
				}
			}
			out = append(out, slices.Clone(p))
			return
		}
		x := &g.Params[len(p)]
		for v := uint32(x.Min); v <= uint32(x.Max); v++ {
			rec(append(p, v))
		}
	}
	rec(nil)
	return out
}

// NewProgram prepares g to be run. g is a changed copy of recorded, or recorded itself
// with nil origins.
func NewProgram(g, recorded *ir.Graph, from Origins) *Program {
	p := &Program{g: g, params: Valuations(g)}
	truth := map[ir.ID]*ir.Dispatch{}
	for _, n := range recorded.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			truth[d.ID] = d
		}
	}
	for _, n := range g.Nodes {
		c := command{node: n}
		if d, ok := n.(*ir.Dispatch); ok {
			id := d.ID
			if o, ok := from[id]; ok {
				id = o
			}
			p.describe(&c, d, recorded, truth[id])
		}
		p.of = append(p.of, c)
	}
	return p
}

func rooted(g *ir.Graph, v ir.View) ir.View {
	m, off := g.Root(v.Mem)
	return ir.View{Mem: m, Off: v.Off.AddConst(off), Len: v.Len}
}

// describe finds what d touches: what the recording says of `was`, relative to the
// views that d binds.
func (p *Program) describe(c *command, d *ir.Dispatch, recorded *ir.Graph, was *ir.Dispatch) {
	if was == nil || !was.Effects.Known() {
		return
	}
	c.known = true
	all := Valuations(recorded)
	move := func(r ir.Region) ir.Region {
		root, off := recorded.Root(r.Mem)
		r.Off = r.Off.AddConst(off)
		r.Mem = root
		for i, b := range was.Bindings {
			if b.Kind != ir.BindView || i >= len(d.Bindings) || d.Bindings[i].Kind != ir.BindView {
				continue
			}
			v := rooted(recorded, b.View)
			if v.Mem != root || !slices.ContainsFunc(all, func(q []uint32) bool { return meets(r, v, q) }) {
				continue
			}
			w := rooted(p.g, d.Bindings[i].View)
			r.Off, r.Mem = r.Off.Sub(v.Off).Add(w.Off), w.Mem
			return r
		}
		r.Mem, _ = p.g.MemoryNamed(recorded.Memories[root].Name)
		return r
	}
	for _, r := range was.Effects.Reads {
		if recorded.Memories[r.Mem].Kind != ir.Argument { // argument memory is compared as arguments
			c.reads = append(c.reads, move(r))
		}
	}
	for _, w := range was.Effects.Writes {
		w.Region = move(w.Region)
		c.writes = append(c.writes, w)
	}
	for _, b := range was.Bindings {
		pinned := false
		if b.Kind == ir.BindView {
			v := rooted(recorded, b.View)
			pinned = true
			touches := func(r ir.Region) {
				root, off := recorded.Root(r.Mem)
				r.Off = r.Off.AddConst(off)
				if root == v.Mem && slices.ContainsFunc(all, func(q []uint32) bool { return meets(r, v, q) }) {
					pinned = false
				}
			}
			for _, r := range was.Effects.Reads {
				touches(r)
			}
			for _, w := range was.Effects.Writes {
				touches(w.Region)
			}
		}
		c.pinned = append(c.pinned, pinned)
	}
}

// meets reports whether a region shares a byte with a view; both are in the same root
// memory.
func meets(r ir.Region, v ir.View, params []uint32) (found bool) {
	lo := v.Off.Eval(params)
	end := lo + v.Len.Eval(params)
	r.Runs(params, func(a, b int64) bool {
		found = a < end && lo < b
		return !found
	})
	return found
}

// Step is one command of one replay.
type Step struct{ Replay, Node int }

// Host is what a run gets from outside: the params of each replay, and a seed for
// undefined bytes.
type Host struct {
	Params  [][]uint32
	Garbage uint64
	// Fresh makes scratch memory and outputs undefined again when a replay begins. It
	// requires that the steps of one replay come before those of the next.
	Fresh bool
	// Ends, if not nil, receives a hash of what the host sees after each replay.
	Ends *[]uint64
}

// machine is the memory of a run.
type machine struct {
	p    *Program
	host *Host
	mem  [][]byte   // by root memory
	read [][][]byte // by replay and memory: inputs and argument memory
}

// Run executes the steps and returns a hash of the final outputs and states.
func (p *Program) Run(steps []Step, h *Host) uint64 {
	x := &machine{p: p, host: h, mem: make([][]byte, len(p.g.Memories))}
	fixed := p.g.Fixed()
	for r := range h.Params {
		x.read = append(x.read, make([][]byte, len(p.g.Memories)))
		for i := range p.g.Memories {
			m := &p.g.Memories[i]
			if m.Alias != ir.NoMem {
				continue
			}
			switch m.Kind {
			case ir.Input:
				if fixed[i] {
					x.read[r][i] = noise(mix(uint64(r), 7), m)
				}
			case ir.Argument:
				x.read[r][i] = make([]byte, m.Size)
				m.WriteValues(x.read[r][i], h.Params[r])
			}
		}
	}
	for i := range p.g.Memories {
		m := &p.g.Memories[i]
		if m.Alias != ir.NoMem {
			continue
		}
		switch {
		case m.Kind == ir.Weight || m.Kind == ir.State && m.Init.Kind != ir.InitNone:
			x.mem[i] = make([]byte, m.Size)
			if err := m.WriteInit(x.mem[i]); err != nil {
				panic(err)
			}
		case m.Kind == ir.State, m.Kind == ir.Input && !fixed[i]: // the replays are one submission, so only the first one is filled
			x.mem[i] = noise(11, m)
		case m.Kind == ir.Output || m.Kind == ir.Scratch:
			x.mem[i] = noise(mix(h.Garbage, 1), m)
		}
	}
	last := 0
	for _, s := range steps {
		if s.Replay != last {
			x.end()
			last = s.Replay
			if h.Fresh {
				for i := range p.g.Memories {
					if m := &p.g.Memories[i]; m.Alias == ir.NoMem && (m.Kind == ir.Output || m.Kind == ir.Scratch) {
						x.mem[i] = noise(mix(h.Garbage, uint64(2+s.Replay)), m)
					}
				}
			}
		}
		x.step(s)
	}
	x.end()
	return x.picture()
}

func (x *machine) end() {
	if x.host.Ends != nil {
		*x.host.Ends = append(*x.host.Ends, x.picture())
	}
}

// noise returns bytes that depend on the seed and on the memory's name.
func noise(seed uint64, m *ir.Memory) []byte {
	out := make([]byte, m.Size)
	h := mixText(seed, m.Name)
	for i := range out {
		out[i] = byte(mix(h, uint64(i)))
	}
	return out
}

// picture returns a hash, by name, of what the host sees.
func (x *machine) picture() (sum uint64) {
	for i := range x.p.g.Memories {
		if m := &x.p.g.Memories[i]; m.Alias == ir.NoMem && (m.Kind == ir.Output || m.Kind == ir.State) {
			sum += mixBytes(mixText(3, m.Name), x.mem[i])
		}
	}
	return sum
}

// bytes returns the contents of a root memory, as a replay sees them.
func (x *machine) bytes(m ir.MemID, replay int) []byte {
	if b := x.read[replay][m]; b != nil {
		return b
	}
	return x.mem[m]
}

// absorb mixes the bytes of a region into the hash h.
func (x *machine) absorb(h uint64, r ir.Region, replay int) uint64 {
	b := x.bytes(r.Mem, replay)
	r.Runs(x.host.Params[replay], func(lo, end int64) bool {
		// Bytes outside the memory are ignored, because the judge also runs graphs that
		// a prover must refuse.
		size := int64(len(b))
		lo, end = min(max(lo, 0), size), min(max(end, 0), size)
		h = mixBytes(h, b[lo:end])
		return true
	})
	return h
}

func (x *machine) step(s Step) {
	c, params := &x.p.of[s.Node], x.host.Params[s.Replay]
	switch n := c.node.(type) {
	case *ir.Copy:
		src, dst := rooted(x.p.g, n.Src), rooted(x.p.g, n.Dst)
		k := n.Src.Len.Eval(params)
		copy(x.mem[dst.Mem][dst.Off.Eval(params):][:k], x.bytes(src.Mem, s.Replay)[src.Off.Eval(params):][:k])
	case *ir.Carry:
		if s.Replay == len(x.host.Params)-1 {
			return
		}
		src, dst := rooted(x.p.g, n.Src), rooted(x.p.g, n.Dst)
		copy(x.mem[dst.Mem][dst.Off.Eval(params):][:n.Dst.Len.Eval(params)], x.mem[src.Mem][src.Off.Eval(params):])
	case *ir.Fill:
		dst := rooted(x.p.g, n.Dst)
		b := x.mem[dst.Mem][dst.Off.Eval(params):][:n.Dst.Len.Eval(params)]
		for i := range b {
			b[i] = n.Value
		}
	case *ir.Dispatch:
		h := x.arguments(c, n, s.Replay)
		if !c.known {
			x.unknown(n, h, s.Replay)
			return
		}
		for _, r := range c.reads {
			h = x.absorb(h, r, s.Replay)
		}
		for _, w := range c.writes {
			if !w.Must {
				h = x.absorb(h, w.Region, s.Replay)
			}
		}
		for k, w := range c.writes {
			x.write(w.Region, !w.Must, mix(h, uint64(k)), s.Replay)
		}
	}
}

func (x *machine) write(r ir.Region, may bool, h uint64, replay int) {
	b, i := x.mem[r.Mem], uint64(0)
	r.Runs(x.host.Params[replay], func(lo, end int64) bool {
		for at := max(lo, 0); at < min(end, int64(len(b))); at++ {
			v := mix(h, i)
			if i++; !may || v>>63 == 0 {
				b[at] = byte(v)
			}
		}
		return true
	})
}

// arguments returns a hash of a kernel and of everything that it is given besides
// memory.
func (x *machine) arguments(c *command, d *ir.Dispatch, replay int) uint64 {
	params := x.host.Params[replay]
	k := &x.p.g.Kernels[d.Kernel]
	h := mixBytes(mixText(mixText(5, k.Function), k.Library.Path), k.Library.Digest[:])
	for _, c := range k.Constants {
		h = mix(mix(h, uint64(c.Index)), c.Bits)
	}
	h = mix(h, uint64(d.GridKind))
	for i := range d.Grid {
		h = mix(mix(h, uint64(d.Grid[i].Eval(params))), uint64(d.Threadgroup[i]))
	}
	for _, t := range d.ThreadgroupMemory {
		h = mix(mix(h, uint64(t.Slot)), uint64(t.Bytes))
	}
	for i := range d.Bindings {
		b := &d.Bindings[i]
		h = mix(h, uint64(b.Slot))
		switch {
		case b.Kind == ir.BindBytes:
			h = mixBytes(h, b.Bytes)
		case b.Kind == ir.BindScalar:
			h = mixBytes(h, binary.LittleEndian.AppendUint64(nil, ir.ScalarBits(b.Type, b.Expr, params))[:b.Type.Size()])
		default:
			v := rooted(x.p.g, b.View)
			lo, n := v.Off.Eval(params), v.Len.Eval(params)
			arg, _ := k.Arg(b.Slot)
			switch {
			case x.p.g.Memories[v.Mem].Kind == ir.Argument:
				h = mixBytes(h, x.bytes(v.Mem, replay)[lo:lo+n])
			case arg.Kind == ir.ConstantArg:
				h = mixBytes(mix(h, 1), x.bytes(v.Mem, replay)[lo:lo+n])
			default:
				h = mix(h, uint64(n))
				if i < len(c.pinned) && c.pinned[i] {
					h = mix(mixText(h, x.p.g.Memories[v.Mem].Name), uint64(lo))
				}
			}
		}
	}
	return h
}

// unknown runs a command that may touch anything.
func (x *machine) unknown(d *ir.Dispatch, h uint64, replay int) {
	var writable []ir.MemID
	for i := range x.p.g.Memories {
		m := &x.p.g.Memories[i]
		if m.Alias != ir.NoMem {
			continue
		}
		if m.Kind == ir.Output || m.Kind == ir.State || m.Kind == ir.Scratch {
			writable = append(writable, ir.MemID(i))
		}
	}
	for _, b := range d.Bindings {
		if b.Kind == ir.BindView && x.p.g.Memories[b.View.Mem].Kind != ir.Argument {
			v := rooted(x.p.g, b.View)
			h = mix(mixText(h, x.p.g.Memories[v.Mem].Name), uint64(v.Off.Eval(x.host.Params[replay])))
			h = x.absorb(h, v.Contiguous(), replay)
		}
	}
	for _, m := range writable { // besides what it binds, it may read every state and output
		if x.p.g.Memories[m].Kind == ir.State {
			h = mixBytes(h, x.mem[m])
		}
	}
	k := &x.p.g.Kernels[d.Kernel]
	for i, b := range d.Bindings {
		if a, _ := k.Arg(b.Slot); b.Kind == ir.BindView && a.Kind == ir.DeviceArg && a.Access != ir.ReadArg {
			x.write(rooted(x.p.g, b.View).Contiguous(), false, mix(h, uint64(i)), replay)
		}
	}
	for _, m := range writable {
		if x.p.g.Memories[m].Kind == ir.State {
			x.mem[m][h%uint64(len(x.mem[m]))] ^= byte(h>>32) | 1
			break
		}
	}
}

// Written returns the steps of several replays of g in written order.
func Written(g *ir.Graph, replays int) (out []Step) {
	for r := range replays {
		for i, n := range g.Nodes {
			if isCommand(n) {
				out = append(out, Step{r, i})
			}
		}
	}
	return out
}

// Orders draws an order of several replays of g that its barriers and commits, or its
// edges, allow. The end of the list is no boundary: the next replay goes on in the same
// command buffer, unless the host waits. Kind 0 runs everything as late as possible, so
// that the list runs backwards wherever that is allowed.
func Orders(rng *rand.Rand, g *ir.Graph, replays, kind int) (out []Step) {
	if g.Ordering == ir.ByEdges {
		return ordersByEdges(rng, g, replays, kind)
	}
	type buffer [][]Step // by epoch
	span := []buffer{{nil}}
	flush := func() {
		for len(span) > 0 {
			k := len(span) - 1
			if kind > 0 {
				k = rng.IntN(len(span))
			}
			b := span[k]
			// Take one epoch of this buffer, or a part of it, and then perhaps go on
			// with another buffer.
			e := b[0]
			switch {
			case len(e) == 0:
				if span[k] = b[1:]; len(b) == 1 {
					span = slices.Delete(span, k, k+1)
				}
			case kind == 0:
				out = append(out, e[len(e)-1])
				b[0] = e[:len(e)-1]
			default:
				i := rng.IntN(len(e))
				out = append(out, e[i])
				b[0] = slices.Delete(slices.Clone(e), i, i+1)
			}
		}
		span = []buffer{{nil}}
	}
	for r := range replays {
		if g.NextHost {
			flush()
		}
		for i, n := range g.Nodes {
			last := &span[len(span)-1]
			switch n := n.(type) {
			case *ir.Barrier:
				*last = append(*last, nil)
			case *ir.Commit:
				if n.Order != ir.OrderNone {
					flush()
				} else {
					span = append(span, buffer{nil})
				}
			case *ir.GroupBegin, *ir.GroupEnd:
			default:
				(*last)[len(*last)-1] = append((*last)[len(*last)-1], Step{r, i})
			}
		}
	}
	flush()
	return out
}

// ordersByEdges takes at each step some command that waits for nothing any more; for
// kind 0 the last one of the list.
func ordersByEdges(rng *rand.Rand, g *ir.Graph, replays, kind int) (out []Step) {
	place := map[ir.ID]int{}
	for i, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			place[c.Num()] = i
		}
	}
	waits, after := map[Step]int{}, map[Step][]Step{}
	for r := range replays {
		for _, e := range g.Edges {
			from, to := Step{r, place[e.From]}, Step{r, place[e.To]}
			if e.Previous {
				from.Replay--
			}
			if from.Replay >= 0 {
				after[from] = append(after[from], to)
				waits[to]++
			}
		}
	}
	var ready []Step
	free := func(r int) {
		for i, n := range g.Nodes {
			if _, ok := n.(ir.Command); ok && waits[Step{r, i}] == 0 {
				ready = append(ready, Step{r, i})
			}
		}
	}
	ended := make([]int, replays) // by replay: how many nodes have ended, joins included
	for r := range replays {
		if r == 0 || !g.NextHost {
			free(r)
		}
	}
	for len(ready) > 0 {
		k := len(ready) - 1
		if kind > 0 {
			k = rng.IntN(len(ready))
		}
		s := ready[k]
		ready = slices.Delete(ready, k, k+1)
		if isCommand(g.Nodes[s.Node]) {
			out = append(out, s)
		}
		for _, to := range after[s] {
			if waits[to]--; waits[to] == 0 && (!g.NextHost || to.Replay == s.Replay) {
				ready = append(ready, to)
			}
		}
		if ended[s.Replay]++; g.NextHost && ended[s.Replay] == len(place) && s.Replay+1 < replays {
			free(s.Replay + 1)
		}
	}
	return out
}
