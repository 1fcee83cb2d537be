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
	e.arena.top = int64(m)
	for n := len(e.arena.taken); n > 0 && e.arena.taken[n-1].off >= int64(m); n-- {
		e.arena.taken = e.arena.taken[:n-1]
	}
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
	if e.arena.mem == ir.NoMem {
		e.arena.mem = e.memory(ir.Memory{Name: e.unused("scratch"), Kind: ir.Scratch, Size: arenaAlign, Align: arenaAlign, Alias: ir.NoMem})
		if e.arena.mem == ir.NoMem {
			return e.broken(t, len(shape))
		}
	}
	out := Tensor{Mem: e.arena.mem, owner: e.number, Off: ir.Const(e.arena.top), DType: t, Shape: shape, Strides: strides}
	size, err := e.sizeOf(t, shape)
	if err == nil && size > maxMemory-e.arena.top {
		err = fmt.Errorf("is too much beside the %d bytes that are taken", e.arena.top)
	}
	if err != nil {
		e.fail("scratch %s%s %w", t, e.format(shape), err)
		return e.broken(t, len(shape))
	}
	e.serial++
	e.arena.taken = append(e.arena.taken, allocation{e.arena.top, e.serial})
	out.serial, out.stack = e.serial, uint32(len(e.arena.taken))
	e.arena.top += (size + arenaAlign - 1) / arenaAlign * arenaAlign
	if e.arena.top > e.arena.peak {
		e.arena.peak = e.arena.top
		e.g.Memories[e.arena.mem].Size = e.arena.peak
	}
	return out
}

func (e *Encoder) arenaAlive(t *Tensor) bool {
	n := int(t.stack) - 1
	return n < len(e.arena.taken) && e.arena.taken[n].serial == t.serial
}
