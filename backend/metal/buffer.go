//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/objc"
)

// buffer is an MTLBuffer that the host sees.
type buffer struct {
	device *Device
	id     objc.ID
	data   []byte // of the buffer's size
	mapped []byte // the caller's memory, kept alive
	size   int64  // that counts as allocated
	close  sync.Once
}

// Alloc implements [backend.Device]. All memory is shared: Apple's GPUs and the host have one.
func (d *Device) Alloc(s backend.BufferSpec) (backend.Buffer, error) {
	switch {
	case s.Size < 0:
		return nil, fmt.Errorf("metal: a buffer of %d bytes", s.Size)
	case d.maxBuffer > 0 && s.Size > d.maxBuffer:
		return nil, fmt.Errorf("metal: a buffer of %d bytes: one has at most %d", s.Size, d.maxBuffer)
	case s.Align > pageSize:
		return nil, fmt.Errorf("metal: a buffer at a multiple of %d bytes: pages have %d", s.Align, pageSize)
	}
	// Metal has no buffer without bytes, and kernels may read 16 at a time.
	length := max(16, (s.Size+15)&^15)
	if err := d.take(length); err != nil {
		return nil, err
	}
	b := &buffer{device: d, size: length}
	objc.Pool(func() {
		b.id = objc.NewBuffer.SendID(d.id, uintptr(length), d.resource(objc.ResourceStorageModeShared))
		if b.id != 0 {
			b.data = objc.Bytes(objc.Contents.Send(b.id), int(length))[:s.Size:s.Size]
		}
	})
	if b.id == 0 {
		d.give(length)
		return nil, fmt.Errorf("metal: the system gives no buffer of %d bytes, beside %d that are in use: it has too little memory", length, d.inUse())
	}
	return b, nil
}

// Map implements [backend.Device].
func (d *Device) Map(data []byte, _ bool) (backend.Buffer, error) {
	if len(data) == 0 || uintptr(unsafe.Pointer(&data[0]))%pageSize != 0 || len(data)%pageSize != 0 {
		return nil, fmt.Errorf("metal: memory to map has %d bytes, and must be whole pages of %d", len(data), pageSize)
	}
	if d.maxBuffer > 0 && int64(len(data)) > d.maxBuffer {
		return nil, fmt.Errorf("metal: a buffer of %d bytes: one has at most %d", len(data), d.maxBuffer)
	}
	b := &buffer{device: d, data: data, mapped: data}
	objc.Pool(func() {
		b.id = objc.NewBufferNoCopy.SendID(d.id, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), d.resource(objc.ResourceStorageModeShared), 0)
	})
	if b.id == 0 {
		return nil, fmt.Errorf("metal: the system maps no buffer over %d bytes of memory", len(data))
	}
	return b, nil
}

// resource are the options of a buffer.
func (d *Device) resource(mode uint64) uintptr {
	if d.options.Fences {
		mode |= objc.ResourceHazardTrackingModeUntracked
	}
	return uintptr(mode)
}

// take counts bytes that are about to be allocated: beyond what the system recommends, command
// buffers fail.
func (d *Device) take(n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return errors.New("metal: the device is closed")
	case d.Memory > 0 && d.allocated+n > d.Memory:
		return fmt.Errorf("metal: a buffer of %d bytes, beside %d that are in use: the GPU's working set should have at most %d", n, d.allocated, d.Memory)
	}
	d.allocated += n
	return nil
}

func (d *Device) give(n int64) {
	d.mu.Lock()
	d.allocated -= n
	d.mu.Unlock()
}

func (d *Device) inUse() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.allocated
}

// Size implements [backend.Buffer].
func (b *buffer) Size() int64 { return int64(len(b.data)) }

// Bytes implements [backend.Buffer].
func (b *buffer) Bytes() []byte { return b.data }

// ReadAt implements [backend.Buffer].
func (b *buffer) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(b.data)) {
		return 0, fmt.Errorf("metal: byte %d of a buffer of %d", off, len(b.data))
	}
	n := copy(p, b.data[off:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// Close implements [backend.Buffer].
func (b *buffer) Close() error {
	b.close.Do(func() {
		objc.Release(b.id)
		b.device.give(b.size)
	})
	return nil
}

// own returns the buffer of a place, which is of this device and has room for n bytes.
func (d *Device) own(p backend.Place, n int64) (*buffer, error) {
	b, ok := p.Buffer.(*buffer)
	if !ok || b.device != d {
		return nil, errors.New("metal: the buffer is of another device")
	}
	return b, p.Holds(n)
}
