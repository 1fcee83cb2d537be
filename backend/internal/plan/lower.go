package plan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Options say for what kind of encoder a plan is.
type Options struct {
	// Serial: the encoder runs one dispatch after another, so barriers are left out.
	Serial bool
	// Groups: the graph's groups become debug groups.
	Groups bool
	// Most is how many dispatches a command buffer has before it is cut at the next barrier. At
	// twice as many it is cut anywhere, but for a guard and its dispatch. Between the encoders of
	// two command buffers something else must keep the order. 0: nothing is cut.
	Most int
	// Parts cuts the graph into about so many command buffers: the first of 64 dispatches, or a
	// tenth of all, the others alike. 0: none.
	Parts int
	// Time is what a command is modelled to take, Longest what a command buffer may: it is cut before
	// a command with which it would take longer. nil: no times are known.
	Time    func(n ir.Node) float64
	Longest float64
	// Whole has every dispatch set all that it needs, even if the encoder has it bound.
	Whole bool
	// Times says how those of commands are taken.
	Times Times
}

// Times says how the times of commands are taken.
type Times uint8

// The ways. Apple's GPUs take times where an encoder begins and ends.
const (
	NoTimes    Times = iota
	ByEncoder        // each command in an encoder of its own
	ByDispatch       // around each command
)

// deepest is the maximum depth of debug groups: open ones are ended and begun again between encoders.
const deepest = 64

// maxSlots is how many buffers a Metal kernel has at most.
const maxSlots = 31

// slot is what an encoder has bound at one slot.
type slot struct {
	what  Kind // SetBuffer or SetBytes
	bound bool
	root  int32
	off   ir.Affine // SetBuffer
	data  []byte    // SetBytes
	expr  ir.Affine // SetBytes of a scalar
	typ   ir.DType
	fixed bool // SetBytes: data, not a scalar
}

type lowering struct {
	*Plan
	Options
	pipelines map[pipelineKey]int32
	labels    map[string]int32
	open      Buffer
	groups    []string // open ones
	deeper    int      // open groups beyond deepest, which are left out
	state     struct {
		pipeline int32
		slots    [maxSlots]slot
		memory   [maxSlots]int64 // bytes of threadgroup memory, plus 1; 0: not set
	}
	time    float64 // of the open command buffer
	share   int     // maximum of dispatches of the open command buffer, by Parts; 0: none
	rest    int     // the same of those after the first
	next    bool    // what is emitted belongs to a carry
	sent    int     // dispatches of the open command buffer
	barrier bool    // one belongs before the next dispatch
	some    bool    // the encoder has a dispatch since the last barrier
}

type pipelineKey struct {
	source Source
	kernel ir.KernelID
	width  int
}

// Lower returns the plan of a graph that was checked. Its errors name the command.
func Lower(ctx context.Context, g *ir.Graph, o Options) (_ *Plan, err error) {
	defer interrupt.Catch(&err)
	r := NewRecorder(g, o)
	r.divide()
	for i, n := range g.Nodes {
		interrupt.Poll(ctx)
		if err := r.add(i, n); err != nil {
			return nil, fmt.Errorf("%s: %w", g.DescribeNode(i), err)
		}
	}
	return r.Finish(""), nil
}

// Recorder makes a plan of nodes as they come.
type Recorder struct {
	lowering
	order *order
}

// NewRecorder begins a plan whose nodes refer to g. Memories, kernels and params may be added to
// g meanwhile; its own nodes are those of the plan only where Lower is used.
func NewRecorder(g *ir.Graph, o Options) *Recorder {
	r := &Recorder{lowering: lowering{
		Plan: &Plan{Graph: g}, Options: o,
		pipelines: map[pipelineKey]int32{}, labels: map[string]int32{},
	}, order: newOrder(g, o.Serial)}
	r.fresh()
	return r
}

func (r *Recorder) add(i int, n ir.Node) error {
	r.barrier = r.order.barrier(i, n) || r.barrier
	switch n := n.(type) {
	case *ir.Commit:
		order := n.Order
		if r.Graph.Ordering != ir.ByBarriers {
			order = ir.OrderEvent
		}
		r.cut(n.Label, order)
		r.order.commit(i)
	case *ir.GroupBegin:
		switch {
		case !r.Groups:
		case len(r.groups) == deepest:
			r.deeper++
		default:
			r.groups = append(r.groups, n.Label)
			r.push(n.Label)
		}
	case *ir.GroupEnd:
		switch {
		case !r.Groups:
		case r.deeper > 0:
			r.deeper--
		default:
			r.groups = r.groups[:len(r.groups)-1]
			r.op(Op{Kind: Pop})
		}
	case *ir.Dispatch:
		return r.command(i, n, cmp.Or(n.Label, n.Op), func() error { return r.dispatch(i, n) })
	case *ir.Copy:
		return r.command(i, n, n.Label, func() error { return r.copy(i, &n.Dst, &n.Src) })
	case *ir.Carry:
		r.next = true
		defer func() { r.next = false }()
		return r.command(i, n, "", func() error { return r.copy(i, &n.Dst, &n.Src) })
	case *ir.Fill:
		return r.command(i, n, n.Label, func() error { return r.fill(i, n) })
	}
	return nil
}

// command emits a command, in a debug group of its label if there are groups, and with the operations that take its
// times.
func (r *Recorder) command(i int, n ir.Node, label string, emit func() error) error {
	r.full(n)
	if r.Groups && label != "" && !r.Whole { // stored dispatches are executed many at a time
		inside := emit
		emit = func() error {
			r.push(label)
			defer r.op(Op{Kind: Pop})
			return inside()
		}
	}
	if r.Whole {
		r.forget()
	}
	if r.Times == NoTimes || r.next {
		return emit()
	}
	ops, sent, vars, barrier, some, barriers := len(r.Ops), r.sent, len(r.Vars), r.barrier, r.some, r.Stats.Barriers
	if r.Times == ByEncoder {
		for range r.groups { // an encoder's groups end with it
			r.op(Op{Kind: Pop})
		}
		r.op(Op{Kind: Edge, Index: int32(len(r.Timed))})
		for _, label := range r.groups {
			r.push(label)
		}
		r.forget()
		r.some, r.barrier = false, false
	} else {
		if r.barrier && r.some { // before the time, not behind it
			r.between()
		}
		r.op(Op{Kind: Timestamp, Index: int32(2 * len(r.Timed))})
	}
	if err := emit(); err != nil {
		return err
	}
	if r.sent == sent { // nothing was emitted: it is empty
		r.Ops, r.Vars = r.Ops[:ops], r.Vars[:vars]
		r.barrier, r.some, r.Stats.Barriers = barrier, some, barriers
		r.forget()
		return nil
	}
	if r.Times == ByDispatch {
		r.op(Op{Kind: Timestamp, Index: int32(2*len(r.Timed) + 1)})
	}
	r.Timed = append(r.Timed, int32(i))
	return nil
}

// divide sets how many dispatches command buffers have, by Parts.
func (l *lowering) divide() {
	if l.Parts < 2 {
		return
	}
	n := 0
	for _, x := range l.Graph.Nodes {
		if _, ok := x.(ir.Command); ok {
			n++
		}
	}
	l.share = max(64, n/10)
	l.rest = max(1, (n-l.share+l.Parts-2)/(l.Parts-1))
}

// full cuts the command buffer that is open before command n if it has enough dispatches, or would take
// too long.
func (l *lowering) full(n ir.Node) {
	most := l.Most
	if l.share > 0 && (most == 0 || l.share < most) {
		most = l.share
	}
	time := 0.0
	if l.Time != nil {
		time = l.Time(n)
	}
	if l.sent > 0 && l.Time != nil && l.time+time > l.Longest || most > 0 && l.sent >= most && (l.barrier || l.sent >= 2*most) {
		l.cut("", ir.OrderEvent)
	}
	l.time += time
}

// cut ends a command buffer, and begins the next with the groups that are open.
func (l *lowering) cut(label string, order ir.CommitOrder) {
	for range l.groups { // groups may span commits, debug groups may not
		l.op(Op{Kind: Pop})
	}
	l.end(&l.open, label)
	l.open.Order = order
	for _, label := range l.groups {
		l.push(label)
	}
}

// moved says that a root memory lies elsewhere from now on: it is bound anew.
func (r *Recorder) moved(root ir.MemID) {
	for i := range r.state.slots {
		if s := &r.state.slots[i]; s.what == SetBuffer && s.root == int32(root) {
			*s = slot{}
		}
	}
}

// Finish ends the last command buffer, and returns the plan.
func (r *Recorder) Finish(label string) *Plan {
	for range r.groups {
		r.op(Op{Kind: Pop})
	}
	r.end(&r.open, label)
	r.Stats.Variable = r.variable()
	return r.Plan
}

// end ends a command buffer, and drops it if it has no dispatch.
func (l *lowering) end(b *Buffer, label string) {
	b.End, b.Label = int32(len(l.Ops)), label
	for _, o := range l.Ops[b.First:] {
		switch o.Kind {
		case Dispatch, DispatchIndirect:
			b.Dispatches++
		case Barrier:
			b.Barriers++
		}
	}
	if b.Dispatches > 0 {
		l.Buffers = append(l.Buffers, *b)
		if l.share > 0 {
			l.share = l.rest
		}
		*b = Buffer{First: b.End}
		l.fresh()
		return
	}
	l.Ops = l.Ops[:b.First]
	*b = Buffer{First: b.First, Order: b.Order}
	l.fresh()
}

// fresh forgets what an encoder has bound: the next one has nothing.
func (l *lowering) fresh() {
	l.barrier, l.some, l.sent, l.time = false, false, 0, 0
	l.forget()
}

// forget makes the operations that follow set everything again.
func (l *lowering) forget() {
	l.state.pipeline = -1
	clear(l.state.slots[:])
	clear(l.state.memory[:])
}

func (l *lowering) op(o Op) int32 {
	o.Next = l.next
	l.Ops = append(l.Ops, o)
	return int32(len(l.Ops) - 1)
}

// run appends a dispatch, and before it the barrier that may be due. The barrier is in every replay, even if the
// dispatch belongs to a carry, which the last replay leaves out: it also orders what follows.
func (l *lowering) run(kind Kind, g Grid) int32 {
	if l.barrier && l.some {
		l.between()
	}
	l.barrier, l.some = false, true
	l.sent++
	l.Stats.Dispatches++
	l.Grids = append(l.Grids, g)
	return l.op(Op{Kind: kind, Index: int32(len(l.Grids) - 1)})
}

// between appends a barrier.
func (l *lowering) between() {
	l.Ops = append(l.Ops, Op{Kind: Barrier})
	l.Stats.Barriers++
	l.barrier, l.some = false, false
}

func (l *lowering) set(o Op) int32 {
	l.Stats.Set++
	return l.op(o)
}

func (l *lowering) push(label string) {
	n, ok := l.labels[label]
	if !ok {
		n = int32(len(l.Labels))
		l.Labels, l.labels[label] = append(l.Labels, label), n
	}
	l.op(Op{Kind: Push, Index: n})
}

// variable counts the operations that depend on params.
func (l *lowering) variable() (n int) {
	last := int32(-1)
	for _, v := range l.Vars {
		if v.Op != last {
			n, last = n+1, v.Op
		}
	}
	return n
}

// depends notes that a part of an operation depends on params.
func (l *lowering) depends(v Var) {
	if !v.Expr.IsConst() {
		l.Vars = append(l.Vars, v)
	}
}

// pipeline sets a pipeline, unless it is set already.
func (l *lowering) pipeline(k pipelineKey) {
	n, ok := l.pipelines[k]
	if !ok {
		n = int32(len(l.Pipelines))
		l.pipelines[k] = n
		l.Pipelines = append(l.Pipelines, Pipeline{Source: k.source, Kernel: k.kernel, Width: k.width})
	}
	if l.state.pipeline == n {
		l.Stats.Kept++
		return
	}
	if l.state.pipeline = n; l.next {
		l.state.pipeline = -1 // the last replay does not set it
	}
	l.set(Op{Kind: SetPipeline, Index: n})
}

// keep notes what a slot holds from now on.
func (l *lowering) keep(at uint8, s slot) {
	if l.next {
		s = slot{} // the last replay does not set it
	}
	l.state.slots[at] = s
}

// view binds a view at a slot.
func (l *lowering) view(at uint8, v *ir.View) {
	root, base := l.Graph.Root(v.Mem)
	off := v.Off.AddConst(base)
	s := &l.state.slots[at]
	if s.bound && s.what == SetBuffer && s.root == int32(root) && s.off.Equal(off) {
		l.Stats.Kept++
		return
	}
	kind := SetBuffer
	if s.bound && s.what == SetBuffer && s.root == int32(root) {
		kind = SetOffset
	}
	l.keep(at, slot{what: SetBuffer, bound: true, root: int32(root), off: off})
	l.depends(Var{Op: l.set(Op{Kind: kind, Slot: at, Index: int32(root), Off: off.Const}), Part: Offset, Expr: off})
}

// data binds bytes at a slot.
func (l *lowering) data(at uint8, data []byte) {
	s := &l.state.slots[at]
	if s.bound && s.what == SetBytes && s.fixed && bytes.Equal(s.data, data) {
		l.Stats.Kept++
		return
	}
	l.keep(at, slot{what: SetBytes, bound: true, data: data, fixed: true})
	l.set(Op{Kind: SetBytes, Slot: at, Off: int64(len(l.Data)), Len: int64(len(data))})
	l.Data = append(l.Data, data...)
}

// scalar binds a number that may depend on params at a slot.
func (l *lowering) scalar(at uint8, e ir.Affine, typ ir.DType) {
	var word [8]byte
	n := int(typ.Size())
	if typ != ir.F32 {
		binary.LittleEndian.PutUint64(word[:], uint64(e.Const))
	}
	if e.IsConst() {
		l.data(at, word[:n:n])
		return
	}
	s := &l.state.slots[at]
	if s.bound && s.what == SetBytes && !s.fixed && s.typ == typ && s.expr.Equal(e) {
		l.Stats.Kept++
		return
	}
	l.keep(at, slot{what: SetBytes, bound: true, expr: e, typ: typ})
	l.depends(Var{Op: l.set(Op{Kind: SetBytes, Slot: at, Off: int64(len(l.Data)), Len: int64(n)}), Part: Bytes, Expr: e, Float: typ == ir.F32})
	l.Data = append(l.Data, word[:n]...)
}

// threadgroup sizes a threadgroup argument.
func (l *lowering) threadgroup(at uint8, n int64) {
	if l.state.memory[at] == n+1 {
		l.Stats.Kept++
		return
	}
	l.state.memory[at] = n + 1
	l.set(Op{Kind: SetThreadgroupMemory, Slot: at, Len: n})
}

func (l *lowering) dispatch(node int, d *ir.Dispatch) error {
	grid := Grid{Unit: d.GridKind, Group: d.Threadgroup, Node: int32(node)}
	for i, e := range d.Grid {
		if e.IsConst() {
			if grid.Size[i] = uint64(e.Eval(nil)); grid.Size[i] == 0 {
				return nil // an empty grid does nothing
			}
			continue
		}
		grid.Size[i] = uint64(e.Num.Const)
	}
	if counts := d.Counts(); counts != nil {
		l.guard(node, counts, &grid)
	}
	l.pipeline(pipelineKey{source: FromGraph, kernel: d.Kernel})
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Slot >= maxSlots {
			return fmt.Errorf("binds slot %d: there are %d", b.Slot, maxSlots)
		}
		switch b.Kind {
		case ir.BindView:
			l.view(b.Slot, &b.View)
		case ir.BindBytes:
			l.data(b.Slot, b.Bytes)
		case ir.BindScalar:
			l.scalar(b.Slot, b.Expr, b.Type)
		}
	}
	for _, m := range d.ThreadgroupMemory {
		if m.Slot >= maxSlots {
			return fmt.Errorf("threadgroup argument %d: there are %d", m.Slot, maxSlots)
		}
		l.threadgroup(m.Slot, int64(m.Bytes))
	}
	if counts := d.Counts(); counts != nil {
		l.Ops[l.run(DispatchIndirect, grid)].Off = int64(len(l.Guards)-1) * GuardBytes
		return nil
	}
	at := l.run(Dispatch, grid)
	for i, e := range d.Grid {
		l.depends(Var{Op: at, Part: Extent0 + Part(i), Expr: e.Num, Divide: e.Div})
	}
	return nil
}
