//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mlxc/mlxc/backend"
	driver "github.com/mlxc/mlxc/internal/cuda"
)

// buffer is device memory, which the host cannot access.
type buffer struct {
	device *Device
	at     driver.Address
	size   int64
	taken  int64
	close  sync.Once
	err    error
}

// granule is the unit of the lengths of allocations, and their alignment: kernels may read 16 bytes at a time.
const granule = 256

// Alloc implements [backend.Device].
func (d *Device) Alloc(s backend.BufferSpec) (backend.Buffer, error) {
	if s.Size < 0 || s.Align > granule {
		return nil, fmt.Errorf("cuda: a buffer of %d bytes at a multiple of %d: the most is %d", s.Size, s.Align, granule)
	}
	b := &buffer{device: d, size: s.Size, taken: max(granule, (s.Size+granule-1)&^(granule-1))}
	err := d.do(func() (err error) {
		b.at, err = d.take(b.taken)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: a buffer of %d bytes: %w", s.Size, err)
	}
	return b, nil
}

// Map implements [backend.Device]: the GPU has memory of its own.
func (d *Device) Map([]byte, bool) (backend.Buffer, error) {
	return nil, errors.New("cuda: the host's memory cannot be mapped, the GPU has its own")
}

// Size implements [backend.Buffer].
func (b *buffer) Size() int64 { return b.size }

// Bytes implements [backend.Buffer].
func (b *buffer) Bytes() []byte { return nil }

// ReadAt implements [backend.Buffer].
func (b *buffer) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > b.size {
		return 0, fmt.Errorf("cuda: byte %d of a buffer of %d", off, b.size)
	}
	n := int(min(int64(len(p)), b.size-off))
	err := b.device.do(func() error {
		s, err := newStaging()
		if err != nil {
			return err
		}
		return errors.Join(s.fetch(p[:n], b.at+driver.Address(off)), s.close())
	})
	if err == nil && n < len(p) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements [backend.Buffer].
func (b *buffer) Close() error {
	b.close.Do(func() {
		b.err = b.device.gpu.Do(func() error { return b.device.give(b.at, b.taken) })
	})
	return b.err
}

// owns reports whether a buffer is of this device.
func (d *Device) owns(b backend.Buffer) bool {
	own, ok := b.(*buffer)
	return ok && own.device == d
}

// own returns the device address of a place, which must be of this device and have room for n bytes.
func (d *Device) own(p backend.Place, n int64) (driver.Address, error) {
	b, ok := p.Buffer.(*buffer)
	if !ok || b.device != d {
		return 0, errors.New("cuda: the buffer is of another device")
	}
	return b.at + driver.Address(p.Offset), p.Holds(n)
}

// staging copies bytes between host and device in pieces, through pinned memory, on a stream of its own.
type staging struct {
	stream driver.Stream
	memory []byte
}

// stagingBytes is the length of a piece.
const stagingBytes = 4 << 20

func newStaging() (*staging, error) {
	s := &staging{}
	var err error
	if s.stream, err = driver.NewStream(); err != nil {
		return nil, err
	}
	if s.memory, err = driver.AllocHost(stagingBytes); err != nil {
		return nil, errors.Join(err, s.stream.Destroy())
	}
	return s, nil
}

// send copies data to the device, and waits for each piece.
func (s *staging) send(dst driver.Address, data []byte) error {
	for len(data) > 0 {
		n := copy(s.memory, data)
		if err := errors.Join(driver.CopyToDevice(s.stream, dst, s.memory[:n]), s.stream.Synchronize()); err != nil {
			return err
		}
		data, dst = data[n:], dst+driver.Address(n)
	}
	return nil
}

// fetch copies data from the device, and waits for each piece.
func (s *staging) fetch(data []byte, src driver.Address) error {
	for len(data) > 0 {
		n := min(len(data), len(s.memory))
		if err := errors.Join(driver.CopyToHost(s.stream, s.memory[:n], src), s.stream.Synchronize()); err != nil {
			return err
		}
		copy(data, s.memory[:n])
		data, src = data[n:], src+driver.Address(n)
	}
	return nil
}

func (s *staging) close() error {
	return errors.Join(driver.FreeHost(s.memory), s.stream.Destroy())
}
