package record

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// arenaAlign is the alignment of scratch tensors: Metal's for buffer offsets
// of any argument.
const arenaAlign = 256

// arena hands out one scratch memory from front to back.
type arena struct {
	mem       ir.MemID
	top, peak int64
	taken     []allocation // from front to back
}

// allocation is a tensor of the arena that was not given back.
type allocation struct {
	off    int64
	serial uint32
}

// take hands out size bytes; stack is the number of tensors that are taken then.
func (a *arena) take(size int64, serial uint32) (off int64, stack uint32) {
	off = a.top
	a.taken = append(a.taken, allocation{off, serial})
	a.top += (size + arenaAlign - 1) / arenaAlign * arenaAlign
	a.peak = max(a.peak, a.top)
	return off, uint32(len(a.taken))
}

// reset takes back everything from a mark on.
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

// Mark is a place in the arena.
type Mark int64

// ScratchMark returns the arena's current top.
func (e *Encoder) ScratchMark() Mark { return Mark(e.arena.top) }

// ScratchReset gives back everything that was taken from the arena since m: later
// tensors reuse those bytes, and using an earlier one is a mistake.
func (e *Encoder) ScratchReset(m Mark) {
	if int64(m) > e.arena.top || m < 0 {
		e.fail("ScratchReset to a mark above the arena's top: marks end when what is below them is given back")
		return
	}
	e.arena.reset(m)
}

// Scratch takes a row-contiguous tensor from the arena, large enough for every
// value of the params. It lives until [Encoder.ScratchReset] to an earlier mark, or
// until the recording is finished.
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
		err = fmt.Errorf("is too much beside the %d bytes that are taken", a.top)
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
