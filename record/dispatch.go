package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/hazard"
	"github.com/mlxc/mlxc/ir"
)

// Dispatch is one dispatch being described. It is recorded by the call that ends
// it, [Dispatch.Threads] or [Dispatch.Threadgroups]; before that nothing has
// happened, so that nothing said of it can be taken for another's. An encoder
// describes one at a time: a Dispatch is of no use after the call that ends it.
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

// Limits of Metal that hold for every dispatch.
const (
	maxSlot  = 30
	maxBytes = 4 << 10
)

// Dispatch begins a dispatch of a kernel.
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

// bind adds a binding, in the order of slots, to be filled; nil after a mistake.
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

// Buffer binds t: the bytes from its first to its last element.
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

// over reports, as a mistake, that the dispatch has ended.
func (d *Dispatch) over() bool {
	if !d.open {
		d.e.fail("a dispatch was changed after its end")
	}
	return !d.open
}

// use returns t's bytes if it may be used, now and where it lies.
func (d *Dispatch) use(slot uint8, t *Tensor) (ir.View, bool) {
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
	e.touch(t.Mem)
	v := t.view()
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

// Bytes binds a copy of data: small constants, at most 4 KiB.
func (d *Dispatch) Bytes(slot uint8, data []byte) *Dispatch {
	if len(data) == 0 || len(data) > maxBytes {
		d.fail("argument %d: %d bytes inline: 1 to %d can be", slot, len(data), maxBytes)
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

// Int32, Uint32, Int64, Uint64 and Float32 bind one number inline.
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

// Float binds an f32 number or param.
func (d *Dispatch) Float(slot uint8, v Scalar) *Dispatch {
	if v.param.IsConst() {
		return d.Float32(slot, v.value)
	}
	return d.Scalar(slot, ir.F32, v.param)
}

// Scalar binds the value of an integer expression of params, as type t.
func (d *Dispatch) Scalar(slot uint8, t ir.DType, v ir.Affine) *Dispatch {
	if b := d.bind(slot, ir.BindScalar); b != nil {
		b.Type, b.Expr = t, v
	}
	return d
}

// ThreadgroupMemory gives the threadgroup argument at slot its bytes, a multiple of 16.
func (d *Dispatch) ThreadgroupMemory(slot uint8, bytes uint32) *Dispatch {
	if !d.over() {
		d.memory = append(d.memory, ir.ThreadgroupMemory{Slot: slot, Bytes: bytes})
	}
	return d
}

// Reads, Writes and Updates say what a kernel without declaration touches:
// everything that it does, for the list is taken to be complete. A dispatch of
// which nothing is said, of a kernel without declaration, may touch anything:
// barriers stand on both sides of it. What is said must include something of every
// memory that the kernel's table says it reads or writes, and of a declared kernel
// what its declaration says.
func (d *Dispatch) Reads(ts ...Tensor) *Dispatch {
	d.given = true
	for i := range ts {
		if _, ok := d.use(0, &ts[i]); ok {
			d.reads = append(d.reads, ts[i].region())
		}
	}
	return d
}

// Writes says that every byte of the tensors' elements is written, whatever the
// inputs. See [Dispatch.Reads].
func (d *Dispatch) Writes(ts ...Tensor) *Dispatch { return d.write(ts, true) }

// Updates says that bytes of the tensors may be written, and that old ones may
// matter. See [Dispatch.Reads].
func (d *Dispatch) Updates(ts ...Tensor) *Dispatch { return d.write(ts, false) }

func (d *Dispatch) write(ts []Tensor, must bool) *Dispatch {
	d.given = true
	for i := range ts {
		if _, ok := d.use(0, &ts[i]); !ok {
			continue
		}
		if kind := d.e.g.Memories[ts[i].Mem].Kind; kind.ReadOnly() {
			d.fail("writes %s, whose kind is %s", d.e.tensorName(ts[i]), kind)
			continue
		}
		d.writes = append(d.writes, ir.Write{Region: ts[i].region(), Must: must})
	}
	return d
}

// Op names the kind of operation, "rms_norm", for people and statistics.
func (d *Dispatch) Op(name string) *Dispatch {
	if !d.over() {
		d.op = name
	}
	return d
}

// Label names this dispatch, for people.
func (d *Dispatch) Label(s string) *Dispatch {
	if !d.over() {
		d.label = s
	}
	return d
}

// Size makes a constant grid of up to three dimensions; those left out are 1. Of
// more it makes a grid that no dispatch accepts.
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
		d.fail("threadgroups of %dx%dx%d threads: 1 to 1024 can be", group[0], group[1], group[2])
		return 0
	}
	for i := range grid {
		if g := grid[i]; g.Div < 1 || g.Num.IsConst() && (g.Num.Const < 0 || g.Num.Const/g.Div > math.MaxUint32) {
			d.fail("dimension %d of the grid is %s divided by %d: 0 to 2^32-1 can be", i, e.g.FormatAffine(g.Num), g.Div)
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
	e.append(n)
	e.counters.add(dispatches, 1)
	return n.ID
}

// effects returns what the dispatch touches; it sets those of n where its
// kernel has no declaration to say so.
func (d *Dispatch) effects(n *ir.Dispatch) (*ir.Effects, error) {
	e := d.e
	e.ready()
	k := &e.g.Kernels[d.kernel]
	if k.Library.Declared() {
		// A dispatch that the declaration does not describe is a mistake of the
		// caller: say it here, where the shapes are at hand.
		declared, err := e.cache.DescribeTo(&e.touched, n)
		if err != nil || !d.given {
			return declared, err
		}
		return declared, d.covers(declared)
	}
	for i := range n.Bindings {
		if _, ok := k.Arg(n.Bindings[i].Slot); !ok {
			return nil, fmt.Errorf("@%s has no argument at slot %d", k.Name, n.Bindings[i].Slot)
		}
	}
	if !d.given {
		return nil, nil
	}
	if err := d.leavesOut(k, n); err != nil {
		return nil, err
	}
	fx := e.effects.One()
	*fx = ir.Effects{Complete: true, Reads: e.regions.Clone(d.reads), Writes: e.writes.Clone(d.writes)}
	n.Effects = fx
	return fx, nil
}

// leavesOut reports a binding that the kernel's table says is read or written, and
// that nothing given touches: a list that is taken to be complete would hide it.
func (d *Dispatch) leavesOut(k *ir.Kernel, n *ir.Dispatch) error {
	g := d.e.g
	root := func(m ir.MemID) ir.MemID { m, _ = g.Root(m); return m }
	for i := range n.Bindings {
		b := &n.Bindings[i]
		a, _ := k.Arg(b.Slot)
		if b.Kind != ir.BindView || a.Kind != ir.DeviceArg {
			continue
		}
		mem := root(b.View.Mem)
		found := false
		for j := range d.writes {
			found = found || root(d.writes[j].Mem) == mem
		}
		what := "written, and Writes and Updates leave it out"
		if a.Access == ir.ReadArg {
			what = "read, and Reads leaves it out"
			for j := range d.reads {
				found = found || root(d.reads[j].Mem) == mem
			}
		}
		if !found {
			return fmt.Errorf("@%s: by its table %s %s is %s", k.Name, a.Name, g.FormatView(b.View), what)
		}
	}
	return nil
}

// covers reports what the caller's effects leave out of the declared ones.
func (d *Dispatch) covers(declared *ir.Effects) error {
	g := d.e.g
	for _, r := range declared.Reads {
		if !slices.ContainsFunc(d.reads, func(have ir.Region) bool { return hazard.Covers(g, have, r) }) {
			return fmt.Errorf("@%s reads %s, which Reads leaves out", g.Kernels[d.kernel].Name, g.FormatRegion(r))
		}
	}
	for _, w := range declared.Writes {
		if !slices.ContainsFunc(d.writes, func(have ir.Write) bool { return hazard.Covers(g, have.Region, w.Region) }) {
			return fmt.Errorf("@%s writes %s, which Writes leaves out", g.Kernels[d.kernel].Name, g.FormatRegion(w.Region))
		}
	}
	return nil
}

// Annotate says what a dispatch touches that was encoded without saying so, of a
// kernel without declaration, as [Dispatch.Reads] and [Dispatch.Writes] do, of
// tensors that were not given back since. It serves the passes; barriers were placed as for
// a dispatch that may touch anything.
func (e *Encoder) Annotate(id ir.ID, reads, writes []Tensor) {
	if e.err != nil {
		return
	}
	for i := len(e.g.Nodes) - 1; i >= 0; i-- {
		n, ok := e.g.Nodes[i].(*ir.Dispatch)
		if !ok || n.ID != id {
			continue
		}
		switch {
		case n.Effects != nil:
			e.fail("Annotate: dispatch %s has effects already", id)
		case e.g.Kernels[n.Kernel].Library.Declared():
			e.fail("Annotate: dispatch %s: the declaration of @%s says what it touches", id, e.g.Kernels[n.Kernel].Name)
		case e.building.open:
			e.fail("Annotate: a dispatch was begun and not ended")
		default:
			d := e.Dispatch(n.Kernel)
			d.Reads(reads...).Writes(writes...)
			d.open = false
			if err := d.leavesOut(&e.g.Kernels[n.Kernel], n); err != nil {
				e.fail("Annotate: %w", err)
				return
			}
			n.Effects = &ir.Effects{Complete: true, Reads: slices.Clone(d.reads), Writes: slices.Clone(d.writes)}
		}
		return
	}
	if e.records() {
		e.fail("Annotate: this recording has no dispatch %s", id)
	} else {
		e.fail("Annotate: dispatch %s is no longer here: nothing is captured", id)
	}
}

// Copy copies src to dst, which are contiguous, have equal lengths and do not
// overlap. [Session.CopyTo] copies what is strided.
func (e *Encoder) Copy(dst, src Tensor, label string) ir.ID {
	if !e.usable(label, dst, src) || !e.writable(dst) {
		return 0
	}
	if d, s := dst.view(), src.view(); !d.Len.Equal(s.Len) {
		e.fail("copy %q: %s to %s: their lengths differ", label, e.tensorName(src), e.tensorName(dst))
		return 0
	} else if gap, ok := d.Off.Distance(s.Off); ok && d.Mem == s.Mem && d.Len.IsConst() && gap < d.Len.Const && -gap < d.Len.Const {
		e.fail("copy %q: %s and %s overlap: copy by way of another memory", label, e.tensorName(src), e.tensorName(dst))
		return 0
	}
	c := &ir.Copy{ID: e.next, Dst: dst.view(), Src: src.view(), Label: label}
	e.command(c)
	return c.ID
}

// Fill sets every byte of dst, which is contiguous.
func (e *Encoder) Fill(dst Tensor, value byte, label string) ir.ID {
	if !e.usable(label, dst) || !e.writable(dst) {
		return 0
	}
	f := &ir.Fill{ID: e.next, Dst: dst.view(), Value: value, Label: label}
	e.command(f)
	return f.ID
}

func (e *Encoder) usable(label string, ts ...Tensor) bool {
	if e.building.open {
		e.building.fail("was begun and not ended (Threads, Threadgroups) before another command")
	}
	d := Dispatch{e: e, open: true, kernel: -1, label: label}
	for i := range ts {
		if _, ok := d.use(uint8(i), &ts[i]); !ok {
			return false
		}
		if !ts[i].contiguous() {
			d.fail("argument %d: %s%s is strided: a copy or fill takes one run of bytes", i, ts[i].DType, e.format(ts[i].Shape))
			return false
		}
	}
	return e.err == nil
}

func (e *Encoder) writable(t Tensor) bool {
	kind := e.g.Memories[t.Mem].Kind
	if kind.ReadOnly() {
		e.fail("a command writes %s, whose kind is %s", e.tensorName(t), kind)
	}
	return !kind.ReadOnly()
}

// command adds a copy or fill.
func (e *Encoder) command(n ir.Node) {
	e.diverge()
	if e.begin(ir.NodeEffects(n), e.nameOf(n)) {
		e.append(n)
	}
}
