//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	driver "github.com/mlxc/mlxc/internal/cuda"
)

// pool keeps the memory of closed buffers for others of the same length: to free memory, the driver waits for the
// whole GPU, and recordings make the same temporaries again and again. No buffer is closed while something uses it
// (backend.Buffer), so its memory can be used again at once.
type pool struct {
	free  map[int64][]driver.Address // by length
	bytes int64
	most  int64 // maximum of bytes
}

// DefaultPool is the maximum of bytes of closed buffers that are kept for others, unless a sixteenth of the GPU's
// memory is less.
const DefaultPool = 256 << 20

// take allocates n bytes of device memory, or takes them from the pool. The context is current.
func (d *Device) take(n int64) (driver.Address, error) {
	at, short, err := d.reserve(n)
	if at != 0 || err != nil {
		return at, err
	}
	if short { // the pool takes too much
		err = d.empty()
	}
	if err == nil {
		at, err = driver.Alloc(n)
	}
	var failed *driver.Error
	if errors.As(err, &failed) && failed.Code == driver.OutOfMemory && d.kept() > 0 {
		if err = d.empty(); err == nil {
			at, err = driver.Alloc(n)
		}
	}
	if err == nil {
		return at, nil
	}
	d.mu.Lock()
	d.allocated -= n
	used := d.allocated
	d.mu.Unlock()
	if errors.As(err, &failed) && failed.Code == driver.OutOfMemory {
		if free, total, asked := driver.Memory(); asked == nil {
			return 0, fmt.Errorf("of %d bytes that the GPU has %d are free, and %d are in use here: %w", total, free, used, err)
		}
	}
	return 0, err
}

// reserve counts n bytes as in use. It returns memory of that length from the pool; if there is none, short says
// whether the pool has to be emptied before n bytes are allocated.
func (d *Device) reserve(n int64) (at driver.Address, short bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return 0, false, errors.New("the device is closed")
	case d.allocated+n > d.memory:
		return 0, false, fmt.Errorf("%d are in use, and the GPU may have %d (--memory sets how much)", d.allocated, d.memory)
	}
	d.asked = false
	d.allocated += n
	d.peak = max(d.peak, d.allocated)
	if l := d.pool.free[n]; len(l) > 0 {
		d.pool.free[n] = l[:len(l)-1]
		d.pool.bytes -= n
		return l[len(l)-1], false, nil
	}
	if short = d.allocated+d.pool.bytes > d.memory; !short {
		d.held = max(d.held, d.allocated+d.pool.bytes)
	}
	return 0, short, nil
}

// give takes back memory that nothing uses: it goes to the pool, or to the driver. The context is current.
func (d *Device) give(at driver.Address, n int64) error {
	d.mu.Lock()
	d.allocated -= n
	keep := d.lost == nil && !d.closed && d.pool.bytes+n <= d.pool.most
	if keep {
		if d.pool.free == nil {
			d.pool.free = map[int64][]driver.Address{}
		}
		d.pool.free[n] = append(d.pool.free[n], at)
		d.pool.bytes += n
	}
	d.mu.Unlock()
	if keep {
		return nil
	}
	return driver.Free(at)
}

func (d *Device) kept() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pool.bytes
}

// empty frees all memory of the pool. The context is current.
func (d *Device) empty() error {
	d.mu.Lock()
	all := d.pool.take()
	d.mu.Unlock()
	return release(all)
}

// take removes all memory from the pool, and returns it.
func (p *pool) take() (all []driver.Address) {
	for _, n := range slices.Sorted(maps.Keys(p.free)) {
		all = append(all, p.free[n]...)
	}
	p.free, p.bytes = nil, 0
	return all
}

func release(all []driver.Address) error {
	var errs []error
	for _, at := range all {
		errs = append(errs, driver.Free(at))
	}
	return errors.Join(errs...)
}

// Peak returns the maximum of bytes that buffers have taken at a time.
func (d *Device) Peak() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peak
}

// Held returns the maximum of bytes of the GPU's memory that the device has had at a time, in buffers and in the
// pool.
func (d *Device) Held() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(d.held, d.peak)
}

// room returns how many bytes all buffers together may take: what the driver says is free, and what is in use here
// already, so that a graph whose memories do not fit is refused before the first of them is allocated (replay). The
// driver is asked only if something was opened or allocated since.
func (d *Device) room() int64 {
	d.mu.Lock()
	room, known := d.free, d.asked
	d.asked = true
	d.mu.Unlock()
	if known {
		return room
	}
	free := d.memory
	_ = d.do(func() error { // without an answer, let every allocation be tried
		n, _, err := driver.Memory()
		if err == nil {
			free = n
		}
		return err
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = min(d.memory, free+d.allocated+d.pool.bytes)
	return d.free
}

// changed makes room ask the driver again how much is free.
func (d *Device) changed() {
	d.mu.Lock()
	d.asked = false
	d.mu.Unlock()
}
