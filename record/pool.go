package record

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Pool hands out memory of a kind for as long as the caller needs it. Memory
// that is given back serves later allocations of its size, least recently used
// first, so that few of them wait for one another. Every allocation is a
// generation of its own: a tensor used after it was given back is a mistake that
// the encoder reports, although the bytes are there.
type Pool struct {
	e     *Encoder
	name  string
	kind  ir.MemKind
	all   []ir.MemID
	free  map[int64][]ir.MemID // by size, in the order in which they were given back
	count int
}

// NewPool returns an empty pool whose memories are called name.0, name.1, … and
// are of kind scratch or state.
func (e *Encoder) NewPool(name string, kind ir.MemKind) *Pool {
	if kind != ir.Scratch && kind != ir.State {
		e.fail("pool %s: memory of kind %s has a name of its own, it does not come from a pool", name, kind)
		kind = ir.Scratch
	}
	return &Pool{e: e, name: name, kind: kind, free: map[int64][]ir.MemID{}}
}

// sizeClass rounds a size up to four steps an octave, at least 256 bytes.
func sizeClass(n int64) int64 {
	c := int64(256)
	for c < n {
		step := c / 4
		for range 4 {
			if c += step; c >= n {
				return c
			}
		}
	}
	return c
}

// Alloc returns a row-contiguous tensor of its own memory. Its contents are
// undefined. The tensor lasts beyond the recording, its contents only if the pool
// is of kind state: scratch begins each recording undefined.
func (p *Pool) Alloc(t ir.DType, shape ...int64) Tensor {
	dims := Dims(shape...)
	strides, _ := contiguous(dims)
	n, err := p.e.sizeOf(t, dims)
	if err != nil {
		p.e.fail("pool %s: %s%v %w", p.name, t, shape, err)
		return p.e.broken(t, len(shape))
	}
	out := Tensor{owner: p.e.number, DType: t, Shape: dims, Strides: strides}
	size := sizeClass(n)
	if list := p.free[size]; len(list) > 0 {
		out.Mem, p.free[size] = list[0], list[1:]
	} else {
		m := ir.Memory{Name: fmt.Sprintf("%s.%d", p.name, p.count), Kind: p.kind, Size: size, Align: arenaAlign, Alias: ir.NoMem}
		if p.kind == ir.State {
			m.Init = ir.FillU32(0)
		}
		if _, taken := p.e.names[m.Name]; taken {
			p.e.fail("pool %s: there is a memory %%%s already: give the pool another name", p.name, ir.QuoteName(m.Name))
			return p.e.broken(t, len(shape))
		}
		p.count++
		out.Mem = p.e.memory(m)
		p.all = append(p.all, out.Mem)
		p.e.places[out.Mem].pool = p
	}
	out.serial = p.e.generation()
	p.e.places[out.Mem].serial = out.serial
	return out
}

// Free gives t's memory back, whatever part of it t is.
func (p *Pool) Free(t Tensor) {
	if t.owner != p.e.number {
		p.e.fail("pool %s: Free of %s", p.name, notOurs)
		return
	}
	if t.Mem < 0 || int(t.Mem) >= len(p.e.places) || p.e.places[t.Mem].pool != p {
		p.e.fail("pool %s: Free of %s, which is not from here", p.name, p.e.tensorName(t))
		return
	}
	if !p.e.alive(&t) {
		p.e.fail("pool %s: Free of %s, which was given back before", p.name, p.e.tensorName(t))
		return
	}
	p.release(t.Mem)
}

func (p *Pool) release(m ir.MemID) {
	p.e.places[m].serial = 0
	size := p.e.g.Memories[m].Size
	p.free[size] = append(p.free[size], m)
}

// Reset gives back everything that was allocated.
func (p *Pool) Reset() {
	for _, m := range p.all {
		if p.e.places[m].serial != 0 {
			p.release(m)
		}
	}
}

// Trim gives the memory of what was given back to the device, once the
// command buffers that use it have ended.
func (p *Pool) Trim() {
	if p.e.device == nil {
		return
	}
	for _, list := range p.free {
		for _, m := range list {
			p.e.device.retire(&p.e.places[m])
		}
	}
}

// Bytes returns the size of all memory that the pool has, given back or not.
func (p *Pool) Bytes() (n int64) {
	for _, m := range p.all {
		n += p.e.g.Memories[m].Size
	}
	return n
}
