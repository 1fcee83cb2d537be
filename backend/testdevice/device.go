package testdevice

import (
	"fmt"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// Options of a device.
type Options struct {
	// Fault returns the error that command buffer n, counted from 0 in the order
	// of commits, fails with; nil: none.
	Fault func(n int, label string) error
	// Hold keeps committed command buffers from executing until Release.
	Hold bool
	// Reverse executes command buffers that nothing orders in the reverse order of
	// their commits, as far as they are committed: what a queue may do, and the
	// worst for who forgot an order. With Hold the outcome is the same every time.
	Reverse bool
	// Retain makes command buffers retain what they bind, as Metal's do unless
	// asked for unretained references: a buffer closed too early stays.
	Retain bool
	// Samples is the room for times in a command buffer, two a command; 0 means
	// 4096, Metal's 32 KiB.
	Samples int
	// Sampling is what the device says it can time.
	Sampling backend.Sampling
	// MaxUncommitted; 0 means 64.
	MaxUncommitted int
}

// Device executes on another device.
type Device struct {
	inner   backend.Device
	options Options
	begin   time.Time

	mu          sync.Mutex
	wake        *sync.Cond
	uncommitted int
	committed   int
	released    int
	buffers     map[*buffer]bool // not closed
	programs    int              // compiled and not closed
	staged      bool             // the residency set has changes
	flushes     int
	queued      []*commandBuffer // committed, in order
	boundary    int              // what stands before this number is ordered before what is committed next
}

// New returns a device that executes on inner.
func New(inner backend.Device, o Options) *Device {
	if o.Samples == 0 {
		o.Samples = 4096
	}
	if o.MaxUncommitted == 0 {
		o.MaxUncommitted = backend.MaxUncommitted
	}
	d := &Device{inner: inner, options: o, begin: time.Now(), buffers: map[*buffer]bool{}}
	d.wake = sync.NewCond(&d.mu)
	return d
}

// Name implements [backend.Device].
func (d *Device) Name() string { return "test" }

// Info implements [backend.Device].
func (d *Device) Info() backend.Info {
	in := d.inner.Info()
	in.Description, in.Sampling = "test device on "+d.inner.Name(), d.options.Sampling
	return in
}

// buffer is memory that knows who uses it.
type buffer struct {
	backend.Buffer
	d      *Device
	users  int // command buffers that were committed and have not ended
	closed bool
	lost   bool // closed while in use
}

// Alloc implements [backend.Device].
func (d *Device) Alloc(size int64) (backend.Buffer, error) { return d.wrap(d.inner.Alloc(size)) }

// Map implements [backend.Device].
func (d *Device) Map(data []byte) (backend.Buffer, error) { return d.wrap(d.inner.Map(data)) }

func (d *Device) wrap(b backend.Buffer, err error) (backend.Buffer, error) {
	if err != nil {
		return nil, err
	}
	out := &buffer{Buffer: b, d: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buffers[out] = true
	d.staged = true
	return out, nil
}

// Close implements [backend.Buffer].
func (b *buffer) Close() error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.closed {
		return fmt.Errorf("test device: a buffer is closed twice")
	}
	b.closed, b.d.staged = true, true
	delete(b.d.buffers, b)
	if b.users > 0 {
		b.lost = !b.d.options.Retain
		return nil // freed when its last user ends
	}
	return b.Buffer.Close()
}

// Compile implements [backend.Device].
func (d *Device) Compile(p *backend.Program) (backend.Executable, error) {
	inner := *p
	inner.Buffers = make([]backend.Buffer, len(p.Buffers))
	for i, b := range p.Buffers {
		if b == nil {
			continue
		}
		own, ok := b.(*buffer)
		if !ok || own.d != d {
			return nil, fmt.Errorf("test device: memory %%%s lies in a buffer of another device", ir.QuoteName(p.Graph.Memories[i].Name))
		}
		if own.closed {
			return nil, fmt.Errorf("test device: memory %%%s lies in a buffer that was closed", ir.QuoteName(p.Graph.Memories[i].Name))
		}
		inner.Buffers[i] = own.Buffer
	}
	x, err := d.inner.Compile(&inner)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.programs++
	d.mu.Unlock()
	return &executable{x, d}, nil
}

type executable struct {
	backend.Executable
	d *Device
}

func (x *executable) Close() error {
	x.d.mu.Lock()
	x.d.programs--
	x.d.mu.Unlock()
	return x.Executable.Close()
}

// Release lets n more command buffers execute, where [Options.Hold] keeps them.
func (d *Device) Release(n int) {
	d.mu.Lock()
	d.released += n
	d.mu.Unlock()
	d.wake.Broadcast()
}

// ReleaseAll ends the hold.
func (d *Device) ReleaseAll() {
	d.mu.Lock()
	d.options.Hold = false
	d.mu.Unlock()
	d.wake.Broadcast()
}

// Uncommitted returns the number of command buffers that are neither committed
// nor discarded.
func (d *Device) Uncommitted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uncommitted
}

// ResidencyFlushes returns how often changes of the set of resident buffers were
// handed to the system: at most once a commit, as every one costs a system call.
func (d *Device) ResidencyFlushes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flushes
}

// Leaks lists what was not given back.
func (d *Device) Leaks() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.buffers); n > 0 {
		out = append(out, fmt.Sprintf("%d buffers are not closed", n))
	}
	if d.programs > 0 {
		out = append(out, fmt.Sprintf("%d programs are not closed", d.programs))
	}
	if d.uncommitted > 0 {
		out = append(out, fmt.Sprintf("%d command buffers are uncommitted", d.uncommitted))
	}
	return out
}
