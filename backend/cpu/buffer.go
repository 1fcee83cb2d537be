package cpu

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/mlxc/mlxc/backend"
)

// buffer is memory that the device has allocated, or that its caller owns and has mapped. All of
// it is memory of the host, so that even private memory can be shared.
type buffer struct {
	device *Device
	data   []byte
	block  *block
	// closed distinguishes a buffer that is used after Close from an empty one.
	closed atomic.Bool
}

// Size implements [backend.Buffer].
func (b *buffer) Size() int64 { return int64(len(b.data)) }

// Bytes implements [backend.Buffer].
func (b *buffer) Bytes() []byte { return b.data }

// ReadAt implements [backend.Buffer].
func (b *buffer) ReadAt(p []byte, off int64) (int, error) {
	if b.closed.Load() {
		return 0, fmt.Errorf("cpu: a buffer is read after it was closed")
	}
	if off < 0 || off > int64(len(b.data)) {
		return 0, fmt.Errorf("cpu: a buffer of %d bytes is read from byte %d on", len(b.data), off)
	}
	n := copy(p, b.data[off:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// Close implements [backend.Buffer].
func (b *buffer) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	block := b.block
	b.data, b.block = nil, nil
	return block.free()
}

// Alloc implements [backend.Device].
func (d *Device) Alloc(s backend.BufferSpec) (backend.Buffer, error) {
	if s.Align < 0 || s.Align&(s.Align-1) != 0 {
		return nil, fmt.Errorf("cpu: an alignment of %d is no power of two", s.Align)
	}
	more := max(0, s.Align-bufferAlign)
	if s.Size < 0 || s.Size+more < s.Size {
		return nil, fmt.Errorf("cpu: %d bytes of memory make no sense", s.Size)
	}
	b, err := d.ledger.take(s.Size + more)
	if err != nil {
		return nil, err
	}
	data := b.data
	if more > 0 {
		skip := -int64(addressOf(data)) & (s.Align - 1)
		data = data[skip : skip+s.Size : skip+s.Size]
	}
	return &buffer{device: d, data: data, block: b}, nil
}

// Map implements [backend.Device].
func (d *Device) Map(data []byte, _ bool) (backend.Buffer, error) {
	return &buffer{device: d, data: data}, nil
}
