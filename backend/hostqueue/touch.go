package hostqueue

import (
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// touch is a range of bytes that an operation reads or writes.
type touch struct {
	buffer  backend.Buffer // nil: the bytes are at addresses of the host
	lo, end uint64
	write   bool
}

// touchOf returns n bytes from p on. Bytes that the host sees are told apart by their
// addresses: two buffers may be mapped over the same ones.
func touchOf(p backend.Place, n int64, write bool) touch {
	t := touch{p.Buffer, uint64(p.Offset), uint64(p.Offset + n), write}
	if b := p.Buffer.Bytes(); b != nil {
		at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
		t.buffer, t.lo, t.end = nil, t.lo+at, t.end+at
	}
	return t
}

// ofHost returns the bytes of a slice of the host.
func ofHost(data []byte, write bool) touch {
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	return touch{nil, at, at + uint64(len(data)), write}
}

// ofSubmission returns what replays of g touch, with its memories at the given places. Inputs
// count as written: a carry may do it.
func ofSubmission(g *ir.Graph, places []backend.Place) (out []touch) {
	for i, p := range places {
		m := &g.Memories[i]
		if p.Buffer == nil {
			continue
		}
		n := m.Size
		if m.Every { // one for each replay: as many as there is room for
			n = p.Buffer.Size() - p.Offset
		}
		out = append(out, touchOf(p, n, m.Kind != ir.Weight))
	}
	return out
}

// conflict reports whether two operations touch a byte that one of them writes.
func conflict(a, b []touch) bool {
	for i := range a {
		for j := range b {
			x, y := &a[i], &b[j]
			if (x.write || y.write) && x.buffer == y.buffer && x.lo < y.end && y.lo < x.end {
				return true
			}
		}
	}
	return false
}
