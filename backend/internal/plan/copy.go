package plan

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
)

// threads is the size of a threadgroup of a copy or fill.
const threads = 256

// width returns how many bytes a copy can move at a time: all views and their lengths are
// multiples of it, for all params.
func (l *lowering) width(views ...*ir.View) int {
	for _, w := range []int64{16, 4} {
		ok := true
		for _, v := range views {
			root, base := l.Graph.Root(v.Mem)
			// Each copy of an output that is kept of every replay begins behind the one before it.
			m := &l.Graph.Memories[root]
			ok = ok && Placed(m)%w == 0 && (!m.Every || m.Size%w == 0)
			ok = ok && multiple(v.Off.AddConst(base), w) && multiple(v.Len, w)
		}
		if ok {
			return int(w)
		}
	}
	return 1
}

func multiple(a ir.Affine, n int64) bool {
	ok := a.Const%n == 0
	for _, t := range a.Terms() {
		ok = ok && t.Coeff%n == 0
	}
	return ok
}

// copy appends a copy, by a kernel.
func (l *lowering) copy(node int, dst, src *ir.View) error {
	if src.Len.IsConst() && src.Len.Const == 0 {
		return nil
	}
	w := l.width(dst, src)
	if err := l.countable(src, w); err != nil {
		return err
	}
	l.pipeline(pipelineKey{source: Copy, width: w})
	l.view(0, src)
	l.view(1, dst)
	l.count(2, src.Len, w)
	l.elements(node, src.Len, w)
	return nil
}

// fill appends a fill, by a kernel.
func (l *lowering) fill(node int, f *ir.Fill) error {
	if f.Dst.Len.IsConst() && f.Dst.Len.Const == 0 {
		return nil
	}
	w := l.width(&f.Dst)
	if err := l.countable(&f.Dst, w); err != nil {
		return err
	}
	l.pipeline(pipelineKey{source: Fill, width: w})
	l.view(0, &f.Dst)
	element := make([]byte, w)
	for i := range element {
		element[i] = f.Value
	}
	l.data(1, element)
	l.count(2, f.Dst.Len, w)
	l.elements(node, f.Dst.Len, w)
	return nil
}

// countable returns an error if a view has more elements of w bytes than a kernel counts.
func (l *lowering) countable(v *ir.View, w int) error {
	if _, most, ok := l.Graph.Range(v.Len); !ok || most/int64(w) > math.MaxUint32 {
		return fmt.Errorf("%s may have more than 2^32 elements of %d bytes: copy it in parts, or align it to 16 bytes", l.Graph.FormatView(*v), w)
	}
	return nil
}

// count binds the number of elements of w bytes that n bytes have.
func (l *lowering) count(at uint8, n ir.Affine, w int) {
	if n.IsConst() {
		l.data(at, binary.LittleEndian.AppendUint32(nil, uint32(n.Const/int64(w))))
		return
	}
	l.keep(at, slot{})
	l.depends(Var{Op: l.set(Op{Kind: SetBytes, Slot: at, Off: int64(len(l.Data)), Len: 4}), Part: Bytes, Expr: n, Divide: int64(w)})
	l.Data = append(l.Data, 0, 0, 0, 0)
}

// elements dispatches a thread for each element of w bytes.
func (l *lowering) elements(node int, n ir.Affine, w int) {
	l.Stats.Copies++
	at := l.run(Dispatch, Grid{Unit: ir.Threads, Size: [3]uint64{uint64(n.Const) / uint64(w), 1, 1}, Group: [3]uint32{threads, 1, 1}, Node: int32(node)})
	l.depends(Var{Op: at, Part: Extent0, Expr: n, Divide: int64(w)})
}

// guard appends a guard before a dispatch that takes its grid from memory.
func (l *lowering) guard(node int, counts *ir.View, g *Grid) {
	l.pipeline(pipelineKey{source: Guard})
	l.view(0, counts)
	l.keep(1, slot{})
	l.set(Op{Kind: SetBuffer, Slot: 1, Index: Guarded, Off: int64(len(l.Guards)) * GuardBytes})
	most := make([]byte, 0, 12)
	for _, n := range g.Size {
		most = binary.LittleEndian.AppendUint32(most, uint32(min(n, math.MaxUint32)))
	}
	l.data(2, most)
	l.run(Dispatch, Grid{Unit: ir.Threads, Size: [3]uint64{1, 1, 1}, Group: [3]uint32{1, 1, 1}, Node: int32(node)})
	l.barrier = !l.Serial
	l.Guards = append(l.Guards, int32(node))
	if l.Whole {
		l.forget()
	}
}

// transfer appends a copy of n bytes between two memories that are not the graph's, by their numbers, with barriers
// before and behind it.
func (r *Recorder) transfer(node int, dst, src int32, dstOff, srcOff, n int64) {
	if n == 0 {
		return
	}
	w := int64(1)
	for _, x := range []int64{16, 4} {
		if w == 1 && dstOff%x == 0 && srcOff%x == 0 && n%x == 0 && n/x <= math.MaxUint32 {
			w = x
		}
	}
	_ = r.add(node, &ir.Barrier{})
	r.barrier = r.some
	r.pipeline(pipelineKey{source: Copy, width: int(w)})
	for done := int64(0); done < n; { // a kernel counts up to 2^32 elements
		part := min(n-done, math.MaxUint32/2*w)
		clear(r.state.slots[:3])
		r.set(Op{Kind: SetBuffer, Slot: 0, Index: src, Off: srcOff + done})
		r.set(Op{Kind: SetBuffer, Slot: 1, Index: dst, Off: dstOff + done})
		r.data(2, binary.LittleEndian.AppendUint32(nil, uint32(part/w)))
		r.elements(node, ir.Const(part), int(w))
		clear(r.state.slots[:3])
		done += part
	}
	r.barrier = true
}
