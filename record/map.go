package record

import (
	"unsafe"

	"github.com/mlxc/mlxc/ir"
)

// hostPage is the page of Apple's GPUs: what lies in one page is mapped
// together.
const hostPage = 16 << 10

// Map adds an input, output or state over the caller's bytes, uncopied, which must
// stay until [Encoder.Close]. Two mapped memories may share a host page only if
// both are read-only. A capture has the memory, without the bytes. A weight lies
// uncopied where its blob is: [Encoder.Weight] with [ir.MappedBlob].
func (e *Encoder) Map(name string, kind ir.MemKind, data []byte, t ir.DType, shape ...int64) Tensor {
	m := ir.Memory{Name: name, Kind: kind, DType: t, Shape: shape}
	if kind == ir.State {
		m.Init = ir.FillU32(0) // in a capture
	}
	if kind != ir.Input && kind != ir.Output && kind != ir.State {
		e.fail("Map %%%s: an input, output or state, not a %s: a weight has contents, see Weight and ir.MappedBlob; what else there is has no bytes of the host", ir.QuoteName(name), kind)
		return e.broken(t, len(shape))
	}
	if e.on == nil {
		e.fail("Map %%%s: nothing is executed here, so that no memory of the host can be bound: declare it, and give the bytes to the replay", ir.QuoteName(name))
		return e.broken(t, len(shape))
	}
	if id, ok := e.names[name]; ok && !sameBytes(e.places[id].host, data) {
		e.fail("Map %%%s: it lies elsewhere already", ir.QuoteName(name))
		return e.broken(t, len(shape))
	} else if !ok {
		if other := e.sharesPage(kind, data); other != ir.NoMem {
			e.fail("Map %%%s: a page of the host (%d bytes) holds bytes of it and of %%%s: an access to one would not be seen to touch the other; map one memory over both, and slice it", ir.QuoteName(name), hostPage, ir.QuoteName(e.g.Memories[other].Name))
			return e.broken(t, len(shape))
		}
	}
	out := e.declare(m)
	if e.err != nil {
		return out
	}
	if size := e.g.Memories[out.Mem].Size; int64(len(data)) < size {
		e.fail("Map %%%s: %d bytes, %s%v needs %d", ir.QuoteName(name), len(data), t, shape, size)
		return out
	}
	e.places[out.Mem].host = data
	return out
}

func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}
