package prove

import (
	"context"
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// access is a region that a command touches, in its root memory, with bounds of its
// bytes over all values of the params. Graphs have millions of them, so it is small and
// holds no pointer that the garbage collector would follow.
type access struct {
	lo, end int64
	mem     ir.MemID
	shape   int32 // 1 + its position in model.shapes; 0 for a flat access, which touches exactly the bytes [lo, end)
}

func (a *access) flat() bool { return a.shape == 0 }

// write is an access that changes bytes. The writes of a graph are numbered in the
// order of its commands.
type write struct {
	access
	op   int32
	must bool
}

// op is one command together with what it touches.
type op struct {
	node  ir.Command
	inst  *decl.Instance // of a declared kernel; ops of one kind share that of the first, so its views may not be those of this op
	id    ir.ID
	kind  int32 // its position in model.kinds, −1: none
	rlo   int32 // its reads are model.reads[rlo:rhi]; they include its may-writes, whose result depends on the old bytes
	rhi   int32
	wlo   int32 // its writes are model.writes[wlo:whi]
	whi   int32
	era   int32 // 2n after the n-th pillar, 2n−1 for the n-th pillar itself
	maybe int32 // the number of the first read that stands for a may-write
	known bool  // its effects are complete; otherwise it is a pillar
}

// dispatchClass is what dispatches have in common that differ only in where their views
// lie; op.kind numbers these classes. Everything that the form decides is decided once
// for each class.
type dispatchClass struct {
	form *decl.Form
	inst *decl.Instance // of the first dispatch of the class
	next int32          // the kind that followed this one last time; graphs repeat themselves
}

// model is a graph prepared for the proof.
type model struct {
	ctx    context.Context
	g      *ir.Graph
	ops    []op
	reads  []access
	writes []write
	byID   index
	at     []int32 // by node: its op, or −1
	// pillars counts the commands of unknown effects.
	pillars int32
	// names are numbers of the memories' names, the same in both graphs of a proof.
	names []int32
	roots []root
	kinds []dispatchClass
	forms map[*decl.Form]int32
	last  int32 // the kind of the last dispatch so far
	// spent counts the steps of comparisons whose cost grows with the square of a list.
	spent int
	// arguments says whether some memory is argument memory.
	arguments bool
	fixed     []bool   // the memories that no command writes: see [ir.Graph.Fixed]
	twins     *twins   // of B and A, if this is the model of A
	meetings  int      // how often meet was called
	copying   []answer // by kind: whether its dispatches copy; see copies
	// These are set in the model of B only: what its commands read, and the sources of its copies'
	// writes.
	trace       *readings
	copySources map[int32][]segment
	compared    comparison // the last one of long lists; see sameLists
	shapes
}

// Comparing two lists of writes byte by byte, or in different orders, may take time
// that grows with the square of their lengths. These constants bound the steps of all
// such comparisons in a graph. Beyond them the proof cannot tell.
const (
	affordFree       = 1 << 24 // for a whole graph
	affordPerCommand = 256     // and for each command
)

// afford reports whether comparisons may take n more steps, and counts them.
func (m *model) afford(n int) bool {
	m.spent += n
	return m.spent <= affordFree+affordPerCommand*len(m.ops)
}

// root says where a memory lies: off bytes into the root memory mem.
type root struct {
	mem ir.MemID
	off int64
}

// newModel returns a model of g without ops. A memory gets the same number in names as
// the memory of that name in other, unless other is nil.
func newModel(ctx context.Context, g *ir.Graph, other *model) *model {
	commands := 0
	for _, n := range g.Nodes {
		if _, ok := working(n); ok {
			commands++
		}
	}
	m := &model{
		ctx: ctx, g: g, at: make([]int32, 0, len(g.Nodes)), ops: make([]op, 0, commands), byID: newIndex(commands),
		names: make([]int32, len(g.Memories)), roots: make([]root, len(g.Memories)), forms: map[*decl.Form]int32{}, shapes: newShapes(g), fixed: g.Fixed(),
	}
	for i := range g.Memories {
		m.roots[i].mem, m.roots[i].off = g.Root(ir.MemID(i))
		m.names[i] = int32(i)
		m.arguments = m.arguments || g.Memories[i].Kind == ir.Argument
	}
	if other != nil {
		m.nameAs(other)
	}
	return m
}

func (m *model) nameAs(other *model) {
	known := make(map[string]int32, len(other.names))
	for i := range other.g.Memories {
		known[other.g.Memories[i].Name] = other.names[i]
	}
	for i := range m.names {
		nr, ok := known[m.g.Memories[i].Name]
		if !ok {
			nr = int32(len(other.names) + i)
		}
		m.names[i] = nr
	}
}

// working reports whether n is a command that does something, and returns it. Joins
// only order other commands, and there is nothing else to prove of them.
func working(n ir.Node) (c ir.Command, ok bool) {
	if _, join := n.(*ir.Join); join {
		return nil, false
	}
	c, ok = n.(ir.Command)
	return c, ok
}

// build recomputes the effects of every command from the declarations of the kernels.
// For a kernel without declaration it takes the effects that stored returns. It calls
// each, unless nil, with every op while what the op touches is at hand.
func (m *model) build(stored func(op int, d *ir.Dispatch) *ir.Effects, each func(op int32)) *model {
	t := &touched{m: m, declared: msl.NewCache(m.g), stored: stored}
	var polls interrupt.Every
	for _, n := range m.g.Nodes {
		polls.Poll(m.ctx, 64)
		c, ok := working(n)
		if !ok {
			m.at = append(m.at, -1)
			continue
		}
		i := int32(len(m.ops))
		m.at = append(m.at, i)
		m.byID.set(c.Num(), i)
		o := op{node: c, id: c.Num(), kind: -1}
		e := t.by(&o)
		m.add(o, e)
		if each != nil {
			each(i)
		}
	}
	return m
}

// touched finds what the commands of a graph touch.
type touched struct {
	m        *model
	declared *msl.Cache
	stored   func(op int, d *ir.Dispatch) *ir.Effects
	out      ir.Effects // what the last command touches
}

// by returns what o, the next op, touches, and sets its kind. The next call overwrites
// the result.
func (t *touched) by(o *op) *ir.Effects {
	t.out = ir.Effects{Complete: true, Reads: t.out.Reads[:0], Writes: t.out.Writes[:0]}
	d, ok := o.node.(*ir.Dispatch)
	switch {
	case !ok:
		return t.transfer(o.node)
	case !msl.Declared(&t.m.g.Kernels[d.Kernel]):
		return t.stored(len(t.m.ops), d)
	}
	if f := t.declared.Form(d); f != nil {
		t.out.Reads, t.out.Writes = slices.Grow(t.out.Reads, f.Reads())[:f.Reads()], slices.Grow(t.out.Writes, f.Writes())[:f.Writes()]
		f.Effects(d, t.out.Reads, t.out.Writes)
		o.kind = t.m.kindOf(f, d)
		o.inst = t.m.kinds[o.kind].inst
		return &t.out
	}
	in, err := msl.Bind(t.m.g, d)
	if err != nil {
		return nil
	}
	e, err := in.Effects()
	if err != nil {
		return nil
	}
	o.inst = in
	return e
}

// transfer returns what a node that is no dispatch touches: [ir.Command.Touches], but
// for carries.
func (t *touched) transfer(n ir.Node) *ir.Effects {
	dst, must := ir.View{}, true
	switch n := n.(type) {
	case *ir.Copy:
		dst = n.Dst
		t.out.Reads = append(t.out.Reads, n.Src.Contiguous())
	case *ir.Fill:
		dst = n.Dst
	case *ir.Carry: // the carry after the last replay does nothing
		dst, must = n.Dst, false
		t.out.Reads = append(t.out.Reads, n.Src.Contiguous())
	}
	t.out.Writes = append(t.out.Writes, ir.Write{Region: dst.Contiguous(), Must: must})
	return &t.out
}

// kindOf returns the kind of d, a dispatch of form f.
func (m *model) kindOf(f *decl.Form, d *ir.Dispatch) int32 {
	if len(m.kinds) > 0 {
		if next := m.kinds[m.last].next; m.kinds[next].form == f {
			m.last = next
			return next
		}
	}
	k, ok := m.forms[f]
	if !ok {
		k = int32(len(m.kinds))
		in := &decl.Instance{}
		f.Place(in, d, make([]ir.View, f.Views()))
		m.kinds = append(m.kinds, dispatchClass{form: f, inst: in})
		m.forms[f] = k
	}
	m.kinds[m.last].next, m.last = k, k
	return k
}

// add appends o, whose effects are e.
func (m *model) add(o op, e *ir.Effects) {
	o.known = e.Known()
	o.rlo, o.wlo = int32(len(m.reads)), int32(len(m.writes))
	if o.known {
		o.era = 2 * m.pillars
		m.reads = reserve(m, m.reads, len(e.Reads)+len(e.Writes))
		m.writes = reserve(m, m.writes, len(e.Writes))
		for i := range e.Reads {
			m.reads = append(m.reads, m.rooted(&e.Reads[i]))
		}
		m.addConstants(o.node)
		o.maybe = int32(len(m.reads))
		for i := range e.Writes {
			w := write{access: m.rooted(&e.Writes[i].Region), op: int32(len(m.ops)), must: certain(&e.Writes[i])}
			m.writes = append(m.writes, w)
			if !w.must {
				m.reads = append(m.reads, w.access)
			}
		}
	} else {
		m.pillars++
		o.era = 2*m.pillars - 1
	}
	o.rhi, o.whi = int32(len(m.reads)), int32(len(m.writes))
	m.ops = append(m.ops, o)
}

// reserve makes room for n more elements. If it has to grow the list, it extrapolates
// the length for all ops from the ops so far, so that the list is seldom copied.
func reserve[T any](m *model, list []T, n int) []T {
	if len(list)+n <= cap(list) {
		return list
	}
	done := len(m.ops) + 1
	total := float64(len(list)+n) / float64(done) * float64(cap(m.ops)) * 1.05
	return slices.Grow(list, max(n, min(int(total), 2*cap(m.ops)+64*done)-len(list)))
}

// index finds the op with an ID. It uses an array while the IDs stay below a few times
// the number of commands, as the IDs of recorders do, and a map for the others.
type index struct {
	dense  []int32 // 1 + op, 0 for none
	limit  int     // how long dense may become
	sparse map[ir.ID]int32
}

func newIndex(commands int) index {
	return index{dense: make([]int32, commands), limit: 4*commands + 64, sparse: map[ir.ID]int32{}}
}

func (x *index) set(id ir.ID, op int32) {
	switch i := int(id); {
	case i < len(x.dense):
		x.dense[i] = op + 1
	case i < x.limit:
		x.dense = append(x.dense, make([]int32, max(i+1, min(2*len(x.dense), x.limit))-len(x.dense))...)
		x.dense[i] = op + 1
	default:
		x.sparse[id] = op
	}
}

func (x *index) find(id ir.ID) (op int32, ok bool) {
	if int(id) >= len(x.dense) {
		op, ok = x.sparse[id]
		return op, ok
	}
	op = x.dense[id] - 1
	return op, op >= 0
}

// bindsArguments reports whether n is a dispatch that binds a view of argument memory.
func (m *model) bindsArguments(n ir.Node) bool {
	d, ok := n.(*ir.Dispatch)
	return ok && m.arguments && slices.ContainsFunc(d.Bindings, func(b ir.Binding) bool {
		return b.Kind == ir.BindView && m.g.Memories[b.View.Mem].Kind == ir.Argument
	})
}

func certain(w *ir.Write) bool { return w.Must && !w.Atomic }

// rooted returns the access to region r, with aliases of memories resolved to their
// root memory.
func (m *model) rooted(r *ir.Region) access {
	at := &m.roots[r.Mem]
	if len(r.Dims) == 0 && r.Off.IsConst() && r.Run.IsConst() {
		lo := r.Off.Const + at.off
		return access{lo: lo, end: lo + max(r.Run.Const, 0), mem: at.mem}
	}
	x := *r
	x.Mem, x.Off = at.mem, r.Off.AddConst(at.off)
	return m.shape(x)
}

// region returns the access as a region of its root memory.
func (m *model) region(a *access) ir.Region {
	if a.flat() {
		return ir.ViewOf(a.mem, a.lo, a.end-a.lo).Contiguous()
	}
	return m.shapes.of(a).Region
}

// off returns the offset at which an access begins in its root memory.
func (m *model) off(a *access) ir.Affine {
	if a.flat() {
		return ir.Const(a.lo)
	}
	return m.shapes.of(a).Off
}

func (m *model) format(a *access) string { return m.g.FormatRegion(m.region(a)) }

// readOnly reports whether nothing in a graph writes the memory.
func (m *model) readOnly(id ir.MemID) bool { return m.fixed[id] }
