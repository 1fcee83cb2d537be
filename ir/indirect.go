package ir

import (
	"encoding/binary"
	"math"
)

// Indirect is what a dispatch reads from memory when it starts.
type Indirect struct {
	// Grid, if not nil, is a view of 12 bytes that hold the grid: three u32 counts of threadgroups,
	// as in Metal's MTLDispatchThreadgroupsIndirectArguments. The dispatch's own Grid is then
	// constant and holds the max of each count. The effects are those of the max grid, and they
	// include reading the counts. Because a count may be zero, no write is a must-write.
	Grid *View
	// Offsets say where the device finds the offsets of views, in ascending order of the slots to
	// which the views are bound.
	Offsets []OffsetAt
}

// OffsetAt says that the offset in bytes of the view bound at Slot is also a value in argument
// memory, at At. A backend that encodes the command only once reads it there at each replay;
// everybody else reads the view. Check compares the two.
type OffsetAt struct {
	Slot uint8
	At   View // of 4 bytes (a u32) or 8 (an i64 or u64)
}

// Counts returns the view that holds the grid of d. It is nil if the grid is in the command.
func (d *Dispatch) Counts() *View {
	if d.Indirect == nil {
		return nil
	}
	return d.Indirect.Grid
}

// OffsetAt returns the view that holds the offset of the view bound at slot. It is nil if only the
// command has that offset.
func (d *Dispatch) OffsetAt(slot uint8) *View {
	if d.Indirect != nil {
		for i := range d.Indirect.Offsets {
			if x := &d.Indirect.Offsets[i]; x.Slot == slot {
				return &x.At
			}
		}
	}
	return nil
}

// countsBytes is the size of three u32.
const countsBytes = 12

func (x *Indirect) clone() *Indirect {
	if x == nil {
		return nil
	}
	out := &Indirect{Offsets: append([]OffsetAt(nil), x.Offsets...)}
	if x.Grid != nil {
		v := *x.Grid
		out.Grid = &v
	}
	return out
}

// indirect checks d.Indirect.
func (nc *nodeChecker) indirect(d *Dispatch) {
	x, before := d.Indirect, len(nc.c.defects)
	if x.Grid == nil && len(x.Offsets) == 0 {
		nc.add("takes nothing from memory, and says that it does", "")
	}
	if v := x.Grid; v != nil {
		nc.view("the grid at", "", *v, false)
		if len(nc.c.defects) > before {
			return
		}
		nc.counts(d, *v)
	}
	last := -1
	for i := range x.Offsets {
		o := &x.Offsets[i]
		if int(o.Slot) <= last {
			nc.add("offsets of slots out of order", "one for each slot, in ascending order")
		}
		last = int(o.Slot)
		nc.offset(d, o)
	}
}

func (nc *nodeChecker) counts(d *Dispatch, v View) {
	if d.GridKind != Threadgroups || !d.Grid[0].IsConst() || !d.Grid[1].IsConst() || !d.Grid[2].IsConst() {
		nc.add("takes its grid from memory, and says no constant greatest number of threadgroups", "grid threadgroups [x, y, z] with constants")
	}
	if !v.Len.IsConst() || v.Len.Const != countsBytes || !multiple(v.Off, 4) {
		nc.add("takes its grid from "+nc.g.FormatView(v), "12 bytes from a multiple of 4 on")
	}
	e := d.Effects
	if !e.Known() {
		return
	}
	for i := range e.Writes {
		if e.Writes[i].Must {
			nc.add("takes its grid from memory, and is said to write "+nc.g.FormatRegion(e.Writes[i].Region)+" for certain", "a count may be zero: say may")
			return
		}
	}
	want := v.Contiguous()
	for i := range e.Reads {
		if e.Reads[i].Equal(want) {
			return
		}
	}
	nc.add("takes its grid from "+nc.g.FormatView(v)+", which its effects do not list", "add it to what is read")
}

// multiple reports whether a is a multiple of n for all values of the params.
func multiple(a Affine, n int64) bool {
	ok := a.Const%n == 0
	for _, t := range a.Terms() {
		ok = ok && t.Coeff%n == 0
	}
	return ok
}

func (nc *nodeChecker) offset(d *Dispatch, o *OffsetAt) {
	g, b := nc.g, d.Binding(o.Slot)
	if b == nil || b.Kind != BindView || b.View.Mem < 0 || int(b.View.Mem) >= len(g.Memories) {
		nc.add("takes the offset of slot "+itoa(int64(o.Slot))+" from memory, where no view is bound", "")
		return
	}
	if g.Memories[b.View.Mem].Kind == Scratch {
		nc.add("takes the offset of "+g.FormatView(b.View)+" from memory", "scratch is moved by passes: bind it at the offset itself")
		return
	}
	before := len(nc.c.defects)
	if nc.view("the offset at", "", o.At, false); len(nc.c.defects) > before {
		return
	}
	value, ok := g.ArgumentAt(o.At)
	if ok && value.Kind == BindBytes && b.View.Off.IsConst() {
		var word [8]byte
		ok = (len(value.Bytes) == 4 || len(value.Bytes) == 8) && copy(word[:], value.Bytes) > 0 && binary.LittleEndian.Uint64(word[:]) == uint64(b.View.Off.Const)
	} else {
		ok = ok && value.Kind == BindScalar && (value.Type == U32 || value.Type == I64 || value.Type == U64) && value.Expr.Equal(b.View.Off)
	}
	if ok && o.At.Len.Const == 4 {
		_, hi, known := nc.bounds.Range(b.View.Off)
		ok = known && hi <= math.MaxUint32
	}
	if !ok {
		nc.add("takes the offset of "+g.FormatView(b.View)+" from "+g.FormatView(o.At)+", which does not hold it", "argument memory whose value there is that offset, as u32, i64 or u64")
	}
}
