package record

import (
	"github.com/mlxc/mlxc/ir"
)

// Copy copies the bytes of src to dst, and returns the ID of the command. Both must be
// contiguous and of equal length, and must not overlap. [Session.CopyTo] copies strided
// tensors.
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

// Fill sets every byte of dst, which must be contiguous, to value. It returns the ID of the
// command.
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
