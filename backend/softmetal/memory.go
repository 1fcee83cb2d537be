//go:build unix

package softmetal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// sharedMemory is the file that holds all buffers, one behind another. No part of it is used twice: a closed buffer
// leaves a hole.
type sharedMemory struct {
	file *os.File
	page int64

	mu    sync.Mutex
	end   int64 // where the next buffer goes
	taken int64 // bytes of the buffers that are open
	limit int64 // maximum of taken; 0: no limit
	ids   []uint64
	next  uint64
}

func newSharedMemory(limit int64) (*sharedMemory, error) {
	f, err := sharedFile()
	if err != nil {
		return nil, fmt.Errorf("softmetal: shared memory: %w", err)
	}
	m := &sharedMemory{file: f, page: int64(os.Getpagesize()), limit: limit}
	m.end = m.page // the first page is the control page
	if err := f.Truncate(m.end); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// whole rounds n up to a multiple of the size of a page.
func (m *sharedMemory) whole(n int64) int64 { return (n + m.page - 1) / m.page * m.page }

// buffer is a piece of the shared memory.
type buffer struct {
	device *Device
	id     uint64
	at     int64 // in the file
	size   int64
	data   []byte  // nil for an empty buffer
	shared bool    // the host may see it
	states *buffer // a state for each byte, where the device checks: see check.go

	mu     sync.RWMutex
	closed bool
}

// Alloc implements [backend.Device]. Every buffer begins at a page.
func (d *Device) Alloc(s backend.BufferSpec) (backend.Buffer, error) {
	b, err := d.alloc(s)
	if err != nil || d.check == nil {
		return b, err
	}
	// The checker must see every write, so the host may write only through the queue.
	b.shared = false
	if b.states, err = d.alloc(backend.BufferSpec{Size: s.Size}); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (d *Device) alloc(s backend.BufferSpec) (*buffer, error) {
	m := d.memory
	if s.Size < 0 || s.Size > 1<<46 {
		return nil, fmt.Errorf("softmetal: %d bytes of memory make no sense", s.Size)
	}
	if s.Align < 0 || s.Align&(s.Align-1) != 0 || s.Align > m.page {
		return nil, fmt.Errorf("softmetal: an alignment of %d is no power of two up to %d", s.Align, m.page)
	}
	whole := m.whole(s.Size)
	m.mu.Lock()
	if m.limit > 0 && whole > m.limit-m.taken {
		left := m.limit - m.taken
		m.mu.Unlock()
		return nil, fmt.Errorf("softmetal: a buffer of %d bytes: %d of the %d that the device may take are left", s.Size, left, m.limit)
	}
	b := &buffer{device: d, at: m.end, size: s.Size, shared: s.Storage == ir.Shared}
	if n := len(m.ids); n > 0 {
		b.id, m.ids = m.ids[n-1], m.ids[:n-1]
	} else {
		b.id = m.next
		m.next++
	}
	m.end += whole
	m.taken += whole
	err := m.file.Truncate(m.end)
	m.mu.Unlock()
	if err == nil && whole > 0 {
		b.data, err = unix.Mmap(int(m.file.Fd()), b.at, int(whole), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		err = d.process.mapBuffer(b)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("softmetal: a buffer of %d bytes: %w", s.Size, err), b.Close())
	}
	return b, nil
}

// Map implements [backend.Device]: memory of the host cannot be shared.
func (d *Device) Map([]byte, bool) (backend.Buffer, error) {
	return nil, errors.New("softmetal: memory of the host cannot be mapped: copy it to a buffer")
}

// Size implements [backend.Buffer].
func (b *buffer) Size() int64 { return b.size }

// Bytes implements [backend.Buffer].
func (b *buffer) Bytes() []byte {
	if !b.shared {
		return nil
	}
	return b.bytes()
}

// bytes returns the memory as this process has mapped it.
func (b *buffer) bytes() []byte {
	if b.size == 0 || b.data == nil { // empty, or closed
		return []byte{}
	}
	return b.data[:b.size:b.size]
}

// ReadAt implements [backend.Buffer].
func (b *buffer) ReadAt(p []byte, off int64) (int, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return 0, errors.New("softmetal: a buffer is read after it was closed")
	}
	if off < 0 || off > b.size {
		return 0, fmt.Errorf("softmetal: a buffer of %d bytes is read from byte %d on", b.size, off)
	}
	n := copy(p, b.bytes()[off:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

// Close implements [backend.Buffer].
func (b *buffer) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	d := b.device
	err := d.process.unmapBuffer(b)
	if b.states != nil {
		err = errors.Join(err, b.states.Close())
	}
	if b.data != nil {
		err = errors.Join(err, unix.Munmap(b.data))
		b.data = nil
	}
	m := d.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	whole := m.whole(b.size)
	m.taken -= whole
	m.ids = append(m.ids, b.id)
	punch(m.file, b.at, whole)
	return err
}

// own returns the buffer of a place and the n bytes there. The buffer must be an open one of this device.
func (d *Device) own(p backend.Place, n int64) (*buffer, []byte, error) {
	b, ok := p.Buffer.(*buffer)
	if !ok || b.device != d {
		return nil, nil, errors.New("softmetal: a buffer is of another device")
	}
	if err := p.Holds(n); err != nil {
		return nil, nil, fmt.Errorf("softmetal: the place %w", err)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return nil, nil, errors.New("softmetal: a buffer was closed")
	}
	return b, b.bytes()[p.Offset : p.Offset+n : p.Offset+n], nil
}
