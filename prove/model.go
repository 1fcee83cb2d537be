package prove

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// access is a region that a command touches, in its root memory, with bounds of
// its bytes over all values of the params.
type access struct {
	region  ir.Region
	lo, end int64
	flat    bool // constant and without dimensions: exactly the bytes [lo, end)
}

// write is an access that changes bytes. Writes of a graph are numbered in
// its order.
type write struct {
	access
	op   int32
	must bool
}

// op is one command with what it touches.
type op struct {
	node   ir.Node
	id     ir.ID
	known  bool           // effects are complete; otherwise the command is a pillar
	inst   *decl.Instance // of a declared kernel
	reads  []access       // may-writes too: they depend on the old bytes
	wlo    int32          // its writes are model.writes[wlo:whi]
	whi    int32
	era    int32      // counts pillars: 2n between the n-th and the next, 2n−1 at the n-th
	source int32      // among reads: where those of may-writes begin
	binds  []ir.MemID // of a pillar: root memories
}

// model is a graph ready for the proof.
type model struct {
	g      *ir.Graph
	ops    []op
	writes []write
	byID   index
	at     []int32 // for each node: its op, or −1
	// pillars counts the commands of unknown effects.
	pillars int32
	slab    []access
}

// newModel recomputes the effects of every command from the kernels'
// declarations. What a kernel without one touches is what stored says.
func newModel(g *ir.Graph, stored func(op int, d *ir.Dispatch) *ir.Effects) *model {
	m := &model{g: g, byID: newIndex(g), at: make([]int32, len(g.Nodes)), ops: make([]op, 0, len(g.Nodes)), writes: make([]write, 0, len(g.Nodes))}
	cache := msl.NewCache(g)
	var reads []ir.Region
	var writes []ir.Write
	for i, n := range g.Nodes {
		m.at[i] = -1
		id, ok := ir.NodeID(n)
		if !ok {
			continue
		}
		m.at[i] = int32(len(m.ops))
		m.byID.set(id, int32(len(m.ops)))
		o := op{node: n, id: id}
		var e *ir.Effects
		if d, ok := n.(*ir.Dispatch); !ok {
			e = ir.NodeEffects(n)
		} else if !g.Kernels[d.Kernel].Library.Declared() {
			e = stored(len(m.ops), d)
		} else if in, err := cache.Bind(d); err == nil {
			if f := in.Form(); f != nil {
				// add copies what it keeps, so one array serves all.
				reads, writes = slices.Grow(reads[:0], f.Reads())[:f.Reads()], slices.Grow(writes[:0], f.Writes())[:f.Writes()]
				f.Effects(d, reads, writes)
				o.inst, e = in, &ir.Effects{Complete: true, Reads: reads, Writes: writes}
			} else if x, err := cache.Effects(d); err == nil {
				o.inst, e = in, x
			}
		}
		m.add(o, e)
	}
	return m
}

// add appends o, which touches e.
func (m *model) add(o op, e *ir.Effects) {
	o.known = e.Known()
	o.wlo = int32(len(m.writes))
	switch {
	case o.known:
		o.era = 2 * m.pillars
		n := len(e.Reads)
		for i := range e.Writes {
			if !certain(&e.Writes[i]) {
				n++
			}
		}
		o.reads = m.accesses(n)
		for i := range e.Reads {
			o.reads[i] = m.rooted(e.Reads[i])
		}
		o.source = int32(len(e.Reads))
		n = len(e.Reads)
		for i := range e.Writes {
			w := write{access: m.rooted(e.Writes[i].Region), op: int32(len(m.ops)), must: certain(&e.Writes[i])}
			m.writes = append(m.writes, w)
			if !w.must {
				o.reads[n] = w.access
				n++
			}
		}
	default:
		m.pillars++
		o.era = 2*m.pillars - 1
		if d, ok := o.node.(*ir.Dispatch); ok {
			for i := range d.Bindings {
				if b := &d.Bindings[i]; b.Kind == ir.BindView {
					root, _ := m.g.Root(b.View.Mem)
					o.binds = append(o.binds, root)
				}
			}
		}
	}
	o.whi = int32(len(m.writes))
	m.ops = append(m.ops, o)
}

// index finds the op of an ID: in an array, where IDs are numbers up to a few
// times the commands, as recorders give them.
type index struct {
	dense  []int32 // 1 + op, 0 for none
	sparse map[ir.ID]int32
}

func newIndex(g *ir.Graph) index {
	last := ir.ID(0)
	for _, n := range g.Nodes {
		if id, ok := ir.NodeID(n); ok {
			last = max(last, id)
		}
	}
	if int64(last) < 4*int64(len(g.Nodes))+64 {
		return index{dense: make([]int32, int64(last)+1)}
	}
	return index{sparse: make(map[ir.ID]int32, len(g.Nodes))}
}

func (x index) set(id ir.ID, op int32) {
	if x.sparse != nil {
		x.sparse[id] = op
	} else {
		x.dense[id] = op + 1
	}
}

func (x index) find(id ir.ID) (op int32, ok bool) {
	if x.sparse != nil {
		op, ok = x.sparse[id]
		return op, ok
	}
	if int64(id) >= int64(len(x.dense)) || x.dense[id] == 0 {
		return 0, false
	}
	return x.dense[id] - 1, true
}

func certain(w *ir.Write) bool { return w.Must && !w.Atomic }

// accesses returns n accesses of a slab.
func (m *model) accesses(n int) []access {
	if len(m.slab) < n {
		m.slab = make([]access, max(n, 1024))
	}
	out := m.slab[:n:n]
	m.slab = m.slab[n:]
	return out
}

// rooted follows aliases: the same bytes in the root memory.
func (m *model) rooted(r ir.Region) access {
	root, off := m.g.Root(r.Mem)
	r.Mem, r.Off = root, r.Off.AddConst(off)
	a := access{region: r}
	if len(r.Dims) == 0 && r.Off.IsConst() && r.Run.IsConst() {
		a.lo, a.end, a.flat = r.Off.Const, r.Off.Const+max(r.Run.Const, 0), true
		return a
	}
	a.lo, a.end = hull(m.g, r)
	return a
}

// writesOf returns the writes of op i.
func (m *model) writesOf(i int32) []write { return m.writes[m.ops[i].wlo:m.ops[i].whi] }

// readOnly reports whether nothing in a graph writes the memory.
func (m *model) readOnly(id ir.MemID) bool { return m.g.Memories[id].Kind.ReadOnly() }
