//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// buffer is a backend.Buffer on an MTLBuffer.
type buffer struct {
	device *Device
	id     objc.ID
	size   int64  // in bytes, as the caller asked for
	length int64  // of the MTLBuffer: size, rounded up
	data   []byte // its contents, size bytes; nil: private storage, which the host cannot see
	mapped []byte // the caller's memory if Map made the buffer, kept from garbage collection
	close  sync.Once

	naming sync.Mutex
	names  []string // the memories that its label names
}

// Alloc implements [backend.Device]. Storage is shared, since Apple's GPUs and the host share their memory.
// With Options.Private, weights, states, scratch and what is asked for as private get private storage.
func (d *Device) Alloc(s backend.BufferSpec) (backend.Buffer, error) {
	switch {
	case s.Size < 0:
		return nil, fmt.Errorf("metal: a buffer of %d bytes", s.Size)
	case d.maxBuffer > 0 && s.Size > d.maxBuffer:
		return nil, fmt.Errorf("metal: a buffer of %d bytes: one has at most %d", s.Size, d.maxBuffer)
	case s.Align > pageSize:
		return nil, fmt.Errorf("metal: a buffer at a multiple of %d bytes: pages have %d", s.Align, pageSize)
	}
	private := s.Storage == ir.Private || s.Use == ir.Weight || s.Use == ir.State || s.Use == ir.Scratch
	b, err := d.alloc(s.Size, d.options.Private && private && s.Use != ir.Argument)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// alloc returns a buffer of n bytes, with private or shared storage.
func (d *Device) alloc(n int64, private bool) (*buffer, error) {
	// Metal makes no empty buffers, and kernels may read 16 bytes at a time.
	length := max(16, (n+15)&^15)
	if err := d.take(length); err != nil {
		return nil, err
	}
	b := &buffer{device: d, size: n, length: length}
	mode := objc.ResourceStorageModeShared
	if private {
		mode = objc.ResourceStorageModePrivate
	}
	objc.Pool(func() {
		b.id = objc.NewBuffer.SendID(d.id, uintptr(length), d.resource(mode))
		if b.id != 0 && !private {
			b.data = objc.Bytes(objc.Contents.Send(b.id), int(length))[:n:n]
		}
	})
	if b.id == 0 {
		d.give(length)
		return nil, fmt.Errorf("metal: the system gives no buffer of %d bytes, beside %d that are in use: it has too little memory", length, d.inUse())
	}
	d.resident.add(b.id)
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
	b := &buffer{device: d, size: int64(len(data)), length: int64(len(data)), data: data, mapped: data}
	objc.Pool(func() {
		b.id = objc.NewBufferNoCopy.SendID(d.id, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), d.resource(objc.ResourceStorageModeShared), 0)
	})
	if b.id == 0 {
		return nil, fmt.Errorf("metal: the system maps no buffer over %d bytes of memory", len(data))
	}
	d.resident.add(b.id)
	return b, nil
}

// resource returns the MTLResourceOptions of a buffer with a storage mode.
func (d *Device) resource(mode uint64) uintptr { return uintptr(mode | d.options.tracking()) }

// take adds n bytes, about to be allocated, to the device's count. Beyond the working set that the system
// recommends command buffers fail, so more is refused here.
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
func (b *buffer) Size() int64 { return b.size }

// Bytes implements [backend.Buffer].
func (b *buffer) Bytes() []byte { return b.data }

// ReadAt implements [backend.Buffer].
func (b *buffer) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > b.size {
		return 0, fmt.Errorf("metal: byte %d of a buffer of %d", off, b.size)
	}
	n := int(min(int64(len(p)), b.size-off))
	if b.data != nil {
		copy(p, b.data[off:])
	} else if err := b.device.download(context.Background(), p[:n], b, off); err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// Close implements [backend.Buffer].
func (b *buffer) Close() error {
	b.close.Do(func() {
		b.device.resident.remove(b)
		objc.Release(b.id)
		if b.mapped == nil {
			b.device.give(b.length)
		}
	})
	return nil
}

// owns reports whether a buffer was made by this device.
func (d *Device) owns(b backend.Buffer) bool {
	own, ok := b.(*buffer)
	return ok && own.device == d
}

// own returns the buffer of p; an error if another device made it or it has no n bytes from p on.
func (d *Device) own(p backend.Place, n int64) (*buffer, error) {
	b, ok := p.Buffer.(*buffer)
	if !ok || b.device != d {
		return nil, errors.New("metal: the buffer is of another device")
	}
	return b, p.Holds(n)
}
