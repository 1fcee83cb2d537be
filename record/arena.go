package record

import "github.com/mlxc/mlxc/ir"

// arenaAlign is the alignment of scratch tensors: Metal's for buffer offsets
// of any argument.
const arenaAlign = 256

// arena hands out one scratch memory from front to back.
type arena struct {
	mem       ir.MemID
	top, peak int64
}

// Mark is a place in the arena.
type Mark int64

// Mark returns the arena's current top.
func (r *Session) Mark() Mark { return Mark(r.arena.top) }

// Reset gives back everything that was taken from the arena since m: later
// tensors reuse those bytes.
func (r *Session) Reset(m Mark) { r.arena.top = int64(m) }

// Scratch takes a row-contiguous tensor from the arena, large enough for every
// value of the params.
func (r *Session) Scratch(t ir.DType, shape ...ir.Affine) Tensor {
	strides, err := contiguous(shape)
	if err != nil {
		r.fail("scratch %s: %w", r.format(shape), err)
		return Tensor{DType: t, Shape: shape, Strides: make([]int64, len(shape))}
	}
	if r.arena.mem == ir.NoMem {
		r.arena.mem = r.b.Memory(ir.Memory{Name: "scratch", Kind: ir.Scratch, Size: arenaAlign, Align: arenaAlign})
	}
	out := Tensor{Mem: r.arena.mem, Off: ir.Const(r.arena.top), DType: t, Shape: shape, Strides: strides}
	_, size, ok := r.b.Unfinished().Range(out.bytes())
	if !ok || size <= 0 {
		r.fail("scratch %s%s has no size", t, r.format(shape))
		return out
	}
	r.arena.top += (size + arenaAlign - 1) / arenaAlign * arenaAlign
	if r.arena.top > r.arena.peak {
		r.arena.peak = r.arena.top
		r.b.SetSize(r.arena.mem, r.arena.peak)
	}
	return out
}
