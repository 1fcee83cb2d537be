package record

import (
	"unsafe"

	"github.com/mlxc/mlxc/ir"
)

// hostPage is the page size of Apple's GPUs in bytes. Memory is mapped in whole pages.
const hostPage = 16 << 10

// Map adds an input, output or state whose bytes are the caller's data, without a copy.
// data must stay valid until [Encoder.Close]. Two mapped memories may share a host page
// only if both are read-only. A captured graph has the memory without its contents. To use
// a weight without a copy, give [Encoder.Weight] an [ir.MappedBlob].
func (e *Encoder) Map(name string, kind ir.MemKind, data []byte, t ir.DType, shape ...int64) Tensor {
	m := ir.Memory{Name: name, Kind: kind, DType: t, Shape: shape}
	if kind == ir.State {
		m.Init = ir.FillU32(0) // a captured graph must say with which contents a state begins
	}
	if kind != ir.Input && kind != ir.Output && kind != ir.State {
		e.fail("Map %%%s: want an input, output or state, not a memory of kind %s (for a weight, see Weight and ir.MappedBlob)", ir.QuoteName(name), kind)
		return e.broken(t, len(shape))
	}
	if e.on == nil {
		e.fail("Map %%%s: nothing is executed here, so memory of the host cannot be bound: declare the memory, and give the bytes to the replay", ir.QuoteName(name))
		return e.broken(t, len(shape))
	}
	if id, ok := e.names[name]; ok && !sameBytes(e.places[id].host, data) {
		e.fail("Map %%%s: there is a memory of this name already, with other bytes", ir.QuoteName(name))
		return e.broken(t, len(shape))
	} else if !ok {
		if other := e.sharesPage(kind, data); other != ir.NoMem {
			e.fail("Map %%%s: it shares a page of the host (%d bytes) with %%%s, and conflicts between the two would not be found: map one memory over both, and slice it", ir.QuoteName(name), hostPage, ir.QuoteName(e.g.Memories[other].Name))
			return e.broken(t, len(shape))
		}
	}
	out := e.declare(m)
	if e.err != nil {
		return out
	}
	if size := e.g.Memories[out.Mem].Size; int64(len(data)) < size {
		e.fail("Map %%%s: data has %d bytes, but %s%v needs %d", ir.QuoteName(name), len(data), t, shape, size)
		return out
	}
	e.places[out.Mem].host = data
	return out
}

func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}
