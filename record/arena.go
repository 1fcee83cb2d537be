package record

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// arenaAlign is the alignment of scratch tensors in bytes. It is the max alignment
// that Metal wants for the offset of a buffer argument.
const arenaAlign = 256

// arena hands out parts of one scratch memory as a stack does, from front to back.
type arena struct {
	mem       ir.MemID
	top, peak int64        // bytes in use, now and at most
	taken     []allocation // from front to back
}

// allocation is a tensor of the arena that was not given back.
type allocation struct {
	off    int64
	serial uint32
}

// take hands out size bytes at offset off. stack is the number of tensors in the arena with
// the new one.
func (a *arena) take(size int64, serial uint32) (off int64, stack uint32) {
	off = a.top
	a.taken = append(a.taken, allocation{off, serial})
	a.top += (size + arenaAlign - 1) / arenaAlign * arenaAlign
	a.peak = max(a.peak, a.top)
	return off, uint32(len(a.taken))
}

// reset takes back everything that lies at or above the mark.
func (a *arena) reset(m Mark) {
	a.top = int64(m)
	for n := len(a.taken); n > 0 && a.taken[n-1].off >= int64(m); n-- {
		a.taken = a.taken[:n-1]
	}
}

func (a *arena) alive(t *Tensor) bool {
	n := int(t.stack) - 1
	return n < len(a.taken) && a.taken[n].serial == t.serial
}

// Mark is a position in the scratch arena, in bytes.
type Mark int64

// ScratchMark returns the current top of the scratch arena, for [Encoder.ScratchReset].
func (e *Encoder) ScratchMark() Mark { return Mark(e.arena.top) }

// ScratchReset gives back everything that was taken from the arena since mark m. Later
// tensors reuse those bytes, and using one that was given back is a mistake.
func (e *Encoder) ScratchReset(m Mark) {
	if int64(m) > e.arena.top || m < 0 {
		e.fail("ScratchReset to a mark above the arena's top: an earlier ScratchReset, or the end of a recording, has passed below this mark")
		return
	}
	e.arena.reset(m)
}

// Scratch takes a row-contiguous tensor from the arena, with room for every value of the
// params. It may be used until [Encoder.ScratchReset] to an earlier mark, or until the
// recording is finished.
func (e *Encoder) Scratch(t ir.DType, shape ...ir.Affine) Tensor {
	strides := e.strides.Take(len(shape))
	if err := fillContiguous(strides, shape); err != nil {
		e.fail("scratch %s: %w", e.format(shape), err)
		return e.broken(t, len(shape))
	}
	a := &e.arena
	if a.mem == ir.NoMem {
		a.mem = e.memory(ir.Memory{Name: e.unused("scratch"), Kind: ir.Scratch, Size: arenaAlign, Align: arenaAlign, Alias: ir.NoMem})
		if a.mem == ir.NoMem {
			return e.broken(t, len(shape))
		}
	}
	size, err := e.sizeOf(t, shape)
	if err == nil && size > maxMemory-a.top {
		err = fmt.Errorf("is too large beside the %d bytes that are in use", a.top)
	}
	if err != nil {
		e.fail("scratch %s%s %w", t, e.format(shape), err)
		return e.broken(t, len(shape))
	}
	out := Tensor{Mem: a.mem, owner: e.number, DType: t, Shape: shape, Strides: strides, serial: e.generation()}
	off, stack := a.take(size, out.serial)
	out.Off, out.stack = ir.Const(off), stack
	m := &e.g.Memories[a.mem]
	m.Size = max(m.Size, a.peak)
	return out
}
