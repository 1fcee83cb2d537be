package ir

// Carry copies Src, a part of an output, to Dst, a part of an input or a state, for the next replay
// of the same submission. After the last replay it does nothing. Src and Dst have equal lengths,
// and their memories have the same element type, or integer types of the same size. With carries, n
// replays in one submission compute the same as n replays between which the host copies.
//
// A carry is a command at its place in the list. Because it writes nothing after the last replay,
// its write counts as a may-write. No command after it in the list touches Dst or writes Src.
type Carry struct {
	ID       ID
	Dst, Src View
	Label    string
	From     []ID
}

func (*Carry) node() {}

// Num implements [Command].
func (c *Carry) Num() ID { return c.ID }

// Origin implements [Command].
func (c *Carry) Origin() []ID { return c.From }

// Renumber implements [Command].
func (c *Carry) Renumber(id ID, from []ID) { c.ID, c.From = id, from }

// Touches implements [Command].
func (c *Carry) Touches() *Effects {
	return &Effects{Complete: true, Reads: []Region{c.Src.Contiguous()}, Writes: []Write{{Region: c.Dst.Contiguous()}}}
}

// EachView implements [Command]: the destination first.
func (c *Carry) EachView(f func(*View)) {
	f(&c.Dst)
	f(&c.Src)
}

// Fixed reports for each memory whether no command of g writes it: it is a weight, argument memory,
// or an input to which nothing is carried. An alias has the answer of its root. Fixed is defined
// for graphs that [Check] accepted.
func (g *Graph) Fixed() []bool {
	out := make([]bool, len(g.Memories))
	for i := range g.Memories {
		out[i] = g.Memories[i].Kind.ReadOnly()
	}
	for _, n := range g.Nodes {
		if c, ok := n.(*Carry); ok {
			root, _ := g.Root(c.Dst.Mem)
			out[root] = false
		}
	}
	for i := range g.Memories {
		if p := g.Memories[i].Alias; p != NoMem { // the root stands before i in the list
			out[i] = out[p]
		}
	}
	return out
}

// maxCarries bounds the carries of a graph, because each is compared with every command behind it.
const maxCarries = 64

// carry checks c, and that c does not overlap another carry.
func (nc *nodeChecker) carry(c *Carry) {
	g := nc.g
	before := len(nc.c.defects)
	nc.view("source", "", c.Src, false)
	nc.view("destination", "", c.Dst, false)
	nc.label(c.Label)
	if len(nc.c.defects) > before {
		return
	}
	if !c.Src.Len.Equal(c.Dst.Len) {
		nc.add("carries "+g.FormatAffine(c.Src.Len)+" bytes to "+g.FormatAffine(c.Dst.Len)+" bytes", "")
	}
	src, dst := &g.Memories[c.Src.Mem], &g.Memories[c.Dst.Mem]
	if src.Kind != Output || dst.Kind != Input && dst.Kind != State {
		nc.add("carries from "+src.Kind.String()+" to "+dst.Kind.String()+" memory", "an output is carried to an input or a state")
	}
	if !src.DType.Valid() || !alike(src.DType, dst.DType) {
		nc.add("carries "+src.DType.String()+" to "+dst.DType.String(), "say the element types of both memories: they are one, or integers of one size")
	}
	if len(nc.carries) == maxCarries {
		nc.add("is one carry more than a graph may have", "at most "+itoa(maxCarries))
		return
	}
	if len(nc.carries) > 0 {
		nc.behind(c)
	}
	nc.carries = append(nc.carries, c)
}

// alike reports whether bits of type a may be read as type b. Integers of the same size may: argmax
// writes a token as a u32, and a lookup reads it as an i32.
func alike(a, b DType) bool {
	integer := func(t DType) bool { return !t.Float() && t.Size() > 0 && t != Bool }
	return a == b || integer(a) && integer(b) && a.Size() == b.Size()
}

// behind reports a command that touches what an earlier carry copies.
func (nc *nodeChecker) behind(c Command) {
	if d, ok := c.(*Dispatch); ok && !d.Effects.Known() {
		// Whatever its effects say, a dispatch may touch what it binds.
		d.EachView(func(v *View) { nc.touchedBehind(v.Contiguous(), true) })
		return
	}
	e := c.Touches()
	for i := range e.Reads {
		nc.touchedBehind(e.Reads[i], false)
	}
	for i := range e.Writes {
		nc.touchedBehind(e.Writes[i].Region, true)
	}
}

func (nc *nodeChecker) touchedBehind(r Region, write bool) {
	if r.Mem < 0 || int(r.Mem) >= len(nc.roots) {
		return // the defect was reported already
	}
	for _, c := range nc.carries {
		v := c.Dst
		if write && nc.roots[c.Src.Mem].mem == nc.roots[r.Mem].mem {
			v = c.Src
		}
		at, of := nc.roots[r.Mem], nc.roots[v.Mem]
		if at.mem != of.mem {
			continue
		}
		lo, end := r.Hull()
		if nc.apart(lo.AddConst(at.off), end.AddConst(at.off), v.Off.AddConst(of.off), v.End().AddConst(of.off)) {
			continue
		}
		nc.add("touches "+nc.g.FormatRegion(r)+", which "+c.ID.String()+" carried before", "put the carry behind everything that touches what it reads and writes")
		return
	}
}

// apart reports whether [a, b) and [c, d) share no byte, for all values of the params.
func (nc *nodeChecker) apart(a, b, c, d Affine) bool {
	if _, most, ok := nc.bounds.Range(b.Sub(c)); ok && most <= 0 {
		return true
	}
	_, most, ok := nc.bounds.Range(d.Sub(a))
	return ok && most <= 0
}
