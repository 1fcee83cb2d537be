package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
)

// Dispatch builds one dispatch. The call that ends it, [Dispatch.Threads] or
// [Dispatch.Threadgroups], records it. Nothing is recorded before that, so that arguments
// of an unfinished dispatch cannot end up in the next one. An encoder builds one dispatch
// at a time, and a Dispatch must not be used after the call that ends it.
type Dispatch struct {
	e      *Encoder
	open   bool
	kernel ir.KernelID

	args   []ir.Binding
	memory []ir.ThreadgroupMemory
	reads  []ir.Region
	writes []ir.Write
	given  bool
	op     string
	label  string
}

// Limits of Metal for every dispatch: the max index of a buffer argument, and the
// bytes that setBytes takes.
const (
	maxSlot  = 30
	maxBytes = 4 << 10
)

// Dispatch begins a dispatch of kernel k, which [Encoder.Kernel] or [Encoder.Function]
// returned.
func (e *Encoder) Dispatch(k ir.KernelID) *Dispatch {
	d := &e.building
	if d.open {
		d.fail("was begun and not ended (Threads, Threadgroups) before another")
	}
	if k < 0 || int(k) >= len(e.g.Kernels) {
		e.fail("there is no kernel %d", k)
		k = -1
	}
	d.e, d.open, d.kernel, d.given, d.op, d.label = e, true, k, false, "", ""
	d.args, d.memory, d.reads, d.writes = d.args[:0], d.memory[:0], d.reads[:0], d.writes[:0]
	return d
}

func (d *Dispatch) fail(format string, args ...any) {
	what := "a dispatch"
	if d.kernel >= 0 {
		what = "@" + d.e.g.Kernels[d.kernel].Name
	}
	if d.label != "" {
		what += fmt.Sprintf(" (%s)", d.label)
	}
	d.e.fail("%s: "+format, append([]any{what}, args...)...)
}

// bind adds a binding, ordered by slot, and returns it for the caller to fill in. It returns
// nil after a mistake.
func (d *Dispatch) bind(slot uint8, kind ir.BindingKind) *ir.Binding {
	if d.over() {
		return nil
	}
	if slot > maxSlot {
		d.fail("slot %d: Metal has slots 0 to %d", slot, maxSlot)
		return nil
	}
	at := len(d.args)
	for at > 0 && d.args[at-1].Slot > slot {
		at--
	}
	if at > 0 && d.args[at-1].Slot == slot {
		d.fail("slot %d is bound twice", slot)
		return nil
	}
	d.args = append(d.args, ir.Binding{})
	if at < len(d.args)-1 {
		copy(d.args[at+1:], d.args[at:])
		d.args[at] = ir.Binding{}
	}
	d.args[at].Slot, d.args[at].Kind = slot, kind
	return &d.args[at]
}

// Buffer binds the bytes of t from its first to its last element.
func (d *Dispatch) Buffer(slot uint8, t Tensor) *Dispatch {
	d.buffer(slot, &t)
	return d
}

func (d *Dispatch) buffer(slot uint8, t *Tensor) {
	if v, ok := d.use(slot, t); ok {
		if b := d.bind(slot, ir.BindView); b != nil {
			b.View = v
		}
	}
}

// over reports whether the dispatch has ended, which is a mistake of its caller.
func (d *Dispatch) over() bool {
	if !d.open {
		d.e.fail("a dispatch was changed after its end")
	}
	return !d.open
}

// use returns the bytes of t, if a command may use t now and t lies inside its memory.
func (d *Dispatch) use(slot uint8, t *Tensor) (v ir.View, ok bool) {
	e := d.e
	if d.over() {
		return ir.View{}, false
	}
	if e.err != nil {
		return ir.View{}, false
	}
	if t.owner != e.number {
		d.fail("argument %d is %s", slot, notOurs)
		return ir.View{}, false
	}
	if t.bad != nil {
		d.fail("argument %d: %s", slot, *t.bad)
		return ir.View{}, false
	}
	if t.Mem < 0 || int(t.Mem) >= len(e.g.Memories) {
		d.fail("argument %d is a tensor of no memory", slot)
		return ir.View{}, false
	}
	if !e.alive(t) {
		d.fail("argument %d: %s was given back before (ScratchReset, Free, or the end of its recording)", slot, e.tensorName(*t))
		return ir.View{}, false
	}
	if e.device != nil {
		e.device.touch(t.Mem)
	}
	v = t.view()
	size := e.g.Memories[t.Mem].Size
	if v.Off.IsConst() && v.Len.IsConst() {
		if v.Off.Const >= 0 && v.Len.Const >= 0 && v.Off.Const <= size-v.Len.Const {
			return v, true
		}
	} else if lo, _, ok := e.g.Range(v.Off); ok && lo >= 0 {
		if _, end, ok := e.g.Range(v.End()); ok && end <= size {
			return v, true
		}
	}
	d.fail("argument %d: %s reaches outside its memory of %d bytes", slot, e.g.FormatView(v), size)
	return ir.View{}, false
}

// Bytes binds a copy of data inline. It is for small constants of at most 4 KiB.
func (d *Dispatch) Bytes(slot uint8, data []byte) *Dispatch {
	if len(data) == 0 || len(data) > maxBytes {
		d.fail("argument %d: %d bytes inline, want 1 to %d", slot, len(data), maxBytes)
		return d
	}
	if b := d.bind(slot, ir.BindBytes); b != nil {
		b.Bytes = d.e.bytes.Clone(data)
	}
	return d
}

func (d *Dispatch) word(slot uint8, v uint32) *Dispatch {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	return d.Bytes(slot, b[:])
}

func (d *Dispatch) long(slot uint8, v uint64) *Dispatch {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return d.Bytes(slot, b[:])
}

// Int32 binds one number inline, as Uint32, Int64, Uint64 and Float32 do.
func (d *Dispatch) Int32(slot uint8, v int32) *Dispatch { return d.word(slot, uint32(v)) }

// Uint32 binds a number inline.
func (d *Dispatch) Uint32(slot uint8, v uint32) *Dispatch { return d.word(slot, v) }

// Int64 binds a number inline.
func (d *Dispatch) Int64(slot uint8, v int64) *Dispatch { return d.long(slot, uint64(v)) }

// Uint64 binds a number inline.
func (d *Dispatch) Uint64(slot uint8, v uint64) *Dispatch { return d.long(slot, v) }

// Float32 binds a number inline.
func (d *Dispatch) Float32(slot uint8, v float32) *Dispatch {
	return d.word(slot, math.Float32bits(v))
}

// Float binds an f32 number, or an f32 param.
func (d *Dispatch) Float(slot uint8, v Scalar) *Dispatch {
	if v.param.IsConst() {
		return d.Float32(slot, v.value)
	}
	return d.Scalar(slot, ir.F32, v.param)
}

// Scalar binds the value of v, which may depend on params, as a number of type t.
func (d *Dispatch) Scalar(slot uint8, t ir.DType, v ir.Affine) *Dispatch {
	if b := d.bind(slot, ir.BindScalar); b != nil {
		b.Type, b.Expr = t, v
	}
	return d
}

// ThreadgroupMemory sets the size of the threadgroup argument at slot in bytes, which must
// be a multiple of 16.
func (d *Dispatch) ThreadgroupMemory(slot uint8, bytes uint32) *Dispatch {
	if !d.over() {
		d.memory = append(d.memory, ir.ThreadgroupMemory{Slot: slot, Bytes: bytes})
	}
	return d
}

// Op names the kind of operation, such as "rms_norm", for readers of the graph and for
// statistics.
func (d *Dispatch) Op(name string) *Dispatch {
	if !d.over() {
		d.op = name
	}
	return d
}

// Label names this dispatch for readers of the graph and in messages.
func (d *Dispatch) Label(s string) *Dispatch {
	if !d.over() {
		d.label = s
	}
	return d
}

// Size returns a constant grid of up to three dimensions; dimensions that are left out are
// 1. Given more than three, it returns a grid that every dispatch refuses.
func Size(n ...int64) [3]ir.Extent {
	out := [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}
	if len(n) > len(out) {
		return [3]ir.Extent{}
	}
	for i := range n {
		out[i] = ir.Ext(n[i])
	}
	return out
}

// Threads ends the dispatch: grid threads in threadgroups of group threads, the
// last of which may be partial (dispatchThreads:threadsPerThreadgroup:). It
// returns the dispatch's ID.
func (d *Dispatch) Threads(grid [3]ir.Extent, group [3]uint32) ir.ID {
	return d.end(ir.Threads, grid, group)
}

// Threadgroups ends the dispatch: grid threadgroups of group threads
// (dispatchThreadgroups:threadsPerThreadgroup:). It returns the dispatch's ID.
func (d *Dispatch) Threadgroups(grid [3]ir.Extent, group [3]uint32) ir.ID {
	return d.end(ir.Threadgroups, grid, group)
}

func (d *Dispatch) end(kind ir.GridKind, grid [3]ir.Extent, group [3]uint32) ir.ID {
	e := d.e
	if !d.open {
		e.fail("a dispatch was ended twice")
	}
	d.open = false
	if e.err != nil {
		return 0
	}
	if n := uint64(group[0]) * uint64(group[1]) * uint64(group[2]); n == 0 || n > 1024 || group[0] > 1024 || group[1] > 1024 || group[2] > 1024 {
		d.fail("threadgroups of %dx%dx%d threads, want 1 to 1024 threads in all", group[0], group[1], group[2])
		return 0
	}
	for i := range grid {
		if g := grid[i]; g.Div < 1 || g.Num.IsConst() && (g.Num.Const < 0 || g.Num.Const/g.Div > math.MaxUint32) {
			d.fail("dimension %d of the grid is %s divided by %d, want a result of 0 to 2^32-1 and a divisor of at least 1", i, e.g.FormatAffine(g.Num), g.Div)
			return 0
		}
	}
	if e.same {
		if !d.given {
			if id, ok := d.again(kind, &grid, group); ok {
				return id
			}
		}
		e.diverge()
	}
	n := e.dispatches.One()
	n.ID, n.Kernel, n.GridKind, n.Grid, n.Threadgroup = e.next, d.kernel, kind, grid, group
	n.Bindings, n.ThreadgroupMemory = e.bindings.Clone(d.args), e.threadgrp.Clone(d.memory)
	n.Op, n.Label = d.op, d.label
	touches, err := d.effects(n)
	if err != nil {
		e.fail("%w", err)
		return 0
	}
	if !e.begin(touches, e.nameOf(n)) {
		return 0
	}
	e.ok(e.add(n))
	e.counters.add(dispatches, 1)
	return n.ID
}
