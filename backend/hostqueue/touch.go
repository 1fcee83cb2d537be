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

// touchOf returns the n bytes from p on. Bytes that the host can see are identified by their
// addresses, since two buffers may be mapped over the same memory.
func touchOf(p backend.Place, n int64, write bool) touch {
	t := touch{p.Buffer, uint64(p.Offset), uint64(p.Offset + n), write}
	if b := p.Buffer.Bytes(); b != nil {
		at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
		t.buffer, t.lo, t.end = nil, t.lo+at, t.end+at
	}
	return t
}

// ofHost returns the bytes of a slice in the host's memory.
func ofHost(data []byte, write bool) touch {
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	return touch{nil, at, at + uint64(len(data)), write}
}

// ofSubmission returns the bytes that replays of g touch, with its memories at these places.
// Inputs count as written, since a carry may write them.
func ofSubmission(g *ir.Graph, places []backend.Place) (out []touch) {
	for i, p := range places {
		m := &g.Memories[i]
		if p.Buffer == nil {
			continue
		}
		n := m.Size
		if m.Every { // a copy for each replay: up to the end of the buffer
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
