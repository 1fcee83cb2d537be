package record

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Pool hands out memory of one kind, for as long as the caller needs it. Memory that is
// given back serves later allocations of its size class. The memory that was given back
// first is reused first, so that few commands must wait for the last use of their memory.
// The encoder reports the use of a tensor after its memory was given back, even if another
// allocation has the same bytes by then.
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
		e.fail("pool %s: memory of kind %s cannot come from a pool: want scratch or state, and declare any other kind by name", name, kind)
		kind = ir.Scratch
	}
	return &Pool{e: e, name: name, kind: kind, free: map[int64][]ir.MemID{}}
}

// sizeClass rounds a size up to a class: 256 bytes and, above that, four classes between
// each power of two and the next.
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

// Alloc returns a row-contiguous tensor in memory of its own, with undefined contents. It
// stays allocated until it is given back, also beyond the end of the recording. Its
// contents last that long only if the pool is of kind state, because the contents of
// scratch memory are undefined when a recording begins.
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

// Free gives back the whole memory in which t lies, even if t is only a part of it.
func (p *Pool) Free(t Tensor) {
	if t.owner != p.e.number {
		p.e.fail("pool %s: Free of %s", p.name, notOurs)
		return
	}
	if t.Mem < 0 || int(t.Mem) >= len(p.e.places) || p.e.places[t.Mem].pool != p {
		p.e.fail("pool %s: Free of %s, which is not from this pool", p.name, p.e.tensorName(t))
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

// Trim releases the device memory behind everything that was given back to the pool, as
// soon as the command buffers that use it have ended.
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

// Bytes returns the size in bytes of all memory that the pool has, in use or given back.
func (p *Pool) Bytes() (n int64) {
	for _, m := range p.all {
		n += p.e.g.Memories[m].Size
	}
	return n
}
