package testdevice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/ir"
)

// Options of a device. Here a submission of an executable counts as a command buffer too.
type Options struct {
	// Fault, if not nil, returns the error with which command buffer n fails, counted
	// from 0 in the order of commits; nil: it does not fail.
	Fault func(n int, label string) error
	// Hold keeps committed command buffers from executing until Release.
	Hold bool
	// Reverse executes unordered command buffers that are committed in the reverse order
	// of their commits. A queue may do that, and tests notice every order that was
	// forgotten. With Hold the order is the same every time.
	Reverse bool
	// Late is for how long every operation goes on after its work is done.
	Late time.Duration
	// Private hides all memory from the host: Bytes of a buffer is nil.
	Private bool
	// Retain makes command buffers retain the buffers that they use, as Metal's do by
	// default: a buffer that is closed too early stays valid for them.
	Retain bool
	// Samples is the max number of timestamps in a command buffer, two for each command;
	// 0 means 4096, as Metal has (32 KiB).
	Samples int
	// Sampling is the [backend.Info.Sampling] of the device.
	Sampling backend.Sampling
	// MaxUncompleted is [backend.Info.MaxUncompleted]; 0 means 64.
	MaxUncompleted int
	// Info, if not nil, changes the [backend.Info] of the device.
	Info func(*backend.Info)
}

// Device executes on another device, inner.
type Device struct {
	inner   backend.Device
	options Options
	info    backend.Info

	mu        sync.Mutex
	queues    map[*queue]bool // queues that are not closed
	numbers   map[any]int     // numbers of committed operations, by hostqueue's name for them
	open      int             // command buffers that are neither committed nor discarded
	committed int
	released  int
	buffers   map[*buffer]bool // buffers that are not closed
	programs  int              // executables that are not closed
	slots     int              // frames and states that are not closed
	staged    bool             // buffers were made or closed since the last residency flush
	flushes   int
}

// New returns a device that executes on inner.
func New(inner backend.Device, o Options) *Device {
	if o.Samples == 0 {
		o.Samples = 4096
	}
	if o.MaxUncompleted == 0 {
		o.MaxUncompleted = 64
	}
	in := inner.Info()
	in.Description, in.Sampling, in.MaxUncompleted = "test device on "+inner.Name(), o.Sampling, o.MaxUncompleted
	if o.Info != nil {
		o.Info(&in)
	}
	return &Device{inner: inner, options: o, info: in, queues: map[*queue]bool{}, numbers: map[any]int{}, buffers: map[*buffer]bool{}}
}

// Name implements [backend.Device].
func (d *Device) Name() string { return "test" }

// Info implements [backend.Device].
func (d *Device) Info() backend.Info { return d.info }

// buffer is a buffer that counts the command buffers which use it.
type buffer struct {
	backend.Buffer
	d      *Device
	users  int // command buffers that were committed and have not ended
	closed bool
	lost   bool // closed while in use
}

// Bytes implements [backend.Buffer].
func (b *buffer) Bytes() []byte {
	if b.d.options.Private {
		return nil
	}
	return b.Buffer.Bytes()
}

// Alloc implements [backend.Device].
func (d *Device) Alloc(s backend.BufferSpec) (backend.Buffer, error) {
	info := &d.info
	if info.MaxBuffer > 0 && s.Size > info.MaxBuffer {
		return nil, fmt.Errorf("test device: a buffer of %d bytes, the greatest has %d", s.Size, info.MaxBuffer)
	}
	return d.wrap(d.inner.Alloc(s))
}

// Map implements [backend.Device].
func (d *Device) Map(data []byte, readOnly bool) (backend.Buffer, error) {
	info := &d.info
	page := uintptr(info.PageSize)
	switch {
	case page == 0:
		return nil, errors.New("test device: memory of the host cannot be mapped")
	case addressOf(data)%page != 0 || uintptr(len(data))%page != 0:
		return nil, fmt.Errorf("test device: %d bytes to map are no whole pages of %d bytes", len(data), page)
	case info.MaxBuffer > 0 && int64(len(data)) > info.MaxBuffer:
		return nil, fmt.Errorf("test device: a buffer of %d bytes, the greatest has %d", len(data), info.MaxBuffer)
	}
	return d.wrap(d.inner.Map(data, readOnly))
}

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

// unwrap returns the place of the inner device behind a place of this one.
func (d *Device) unwrap(p backend.Place) (backend.Place, error) {
	if p.Buffer == nil {
		return p, nil
	}
	own, ok := p.Buffer.(*buffer)
	if !ok || own.d != d {
		return p, errors.New("lies in a buffer of another device")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if own.closed {
		return p, errors.New("lies in a buffer that was closed")
	}
	if most := d.info.MaxOffset; most > 0 && p.Offset > most {
		return p, fmt.Errorf("begins at byte %d of its buffer, beyond the greatest offset %d", p.Offset, most)
	}
	return backend.Place{Buffer: own.Buffer, Offset: p.Offset}, nil
}

// unwrapAll calls unwrap for places by memory, and appends their buffers to used.
func (d *Device) unwrapAll(g *ir.Graph, places []backend.Place, used *[]*buffer) ([]backend.Place, error) {
	out := make([]backend.Place, len(places))
	for i, p := range places {
		if p.Buffer == nil {
			continue
		}
		var err error
		if out[i], err = d.unwrap(p); err != nil {
			return nil, fmt.Errorf("test device: memory %%%s %w", ir.QuoteName(g.Memories[i].Name), err)
		}
		*used = append(*used, p.Buffer.(*buffer))
	}
	return out, nil
}

// Compile implements [backend.Device].
func (d *Device) Compile(ctx context.Context, p *backend.Program) (backend.Executable, error) {
	x := &executable{d: d, program: *p}
	inner := *p
	var err error
	if inner.Places, err = d.unwrapAll(p.Graph, p.Places, &x.used); err != nil {
		return nil, err
	}
	if x.inner, err = d.inner.Compile(ctx, &inner); err != nil {
		return nil, err
	}
	x.encode()
	d.count(&d.programs, 1)
	return x, nil
}

func (d *Device) count(what *int, n int) {
	d.mu.Lock()
	*what += n
	d.mu.Unlock()
}

type executable struct {
	inner   backend.Executable
	d       *Device
	program backend.Program
	used    []*buffer
	buffers []commandBuffer
	waits   *ir.Waits // of a graph that is ordered by edges; nil for others
	awaited []bool    // by node: the next replay waits for it

	mu   sync.Mutex
	wake *sync.Cond
	runs map[*backend.Submission]*progress // submissions that have not ended
	last *progress                         // of the last submission
}

func (x *executable) Close() error {
	x.d.count(&x.d.programs, -1)
	return x.inner.Close()
}

// Work implements [backend.Modelled], if the inner device's executable does.
func (x *executable) Work(f backend.Frame, s backend.States, params []uint32) float64 {
	m, ok := x.inner.(backend.Modelled)
	own, _ := f.(*frame)
	if !ok || own == nil {
		return 0
	}
	return m.Work(own.inner, s.(*states).innerStates(), params)
}

type frame struct {
	*backend.FrameMemory
	inner backend.Frame
	owner *executable
	room  int
	used  []*buffer
}

// NewFrame implements [backend.Executable].
func (x *executable) NewFrame(s backend.FrameSpec) (backend.Frame, error) {
	memory, err := backend.NewFrameMemory(x.d, &x.program, s)
	if err != nil {
		return nil, err
	}
	f := &frame{FrameMemory: memory, owner: x, room: s.Replays}
	places := make([]backend.Place, len(x.program.Graph.Memories))
	for i := range places {
		places[i] = f.Place(ir.MemID(i))
	}
	inner := backend.FrameSpec{Replays: s.Replays}
	if inner.Places, err = x.d.unwrapAll(x.program.Graph, places, &f.used); err == nil {
		f.inner, err = x.inner.NewFrame(inner)
	}
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	x.d.count(&x.d.slots, 1)
	return f, nil
}

func (f *frame) Close() error {
	f.owner.d.count(&f.owner.d.slots, -1)
	return errors.Join(f.inner.Close(), f.FrameMemory.Close())
}

type states struct {
	inner  backend.States
	owner  *executable
	places []backend.Place
	used   []*buffer
}

func (s *states) innerStates() backend.States {
	if s == nil {
		return nil
	}
	return s.inner
}

// NewStates implements [backend.Executable].
func (x *executable) NewStates(places []backend.Place) (backend.States, error) {
	s := &states{owner: x, places: slices.Clone(places)}
	inner, err := x.d.unwrapAll(x.program.Graph, places, &s.used)
	if err == nil {
		s.inner, err = x.inner.NewStates(inner)
	}
	if err != nil {
		return nil, err
	}
	x.d.count(&x.d.slots, 1)
	return s, nil
}

func (s *states) Close() error {
	s.owner.d.count(&s.owner.d.slots, -1)
	return s.inner.Close()
}

// Release lets n more command buffers execute, if [Options.Hold] holds them.
func (d *Device) Release(n int) {
	d.count(&d.released, n)
	d.wake()
}

// ReleaseAll lets all command buffers execute, also later ones.
func (d *Device) ReleaseAll() {
	d.mu.Lock()
	d.options.Hold = false
	d.mu.Unlock()
	d.wake()
}

func (d *Device) wake() {
	d.mu.Lock()
	var all []*queue
	for q := range d.queues {
		all = append(all, q)
	}
	d.mu.Unlock()
	for _, q := range all {
		q.Wake()
	}
}

// ready reports whether an operation may begin.
func (d *Device) ready(operation any) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.numbers[operation]
	return !ok || !d.options.Hold || n < d.released
}

// Uncommitted returns the number of command buffers that are neither committed
// nor discarded.
func (d *Device) Uncommitted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

// ResidencyFlushes returns how often changes of the set of resident buffers would be
// passed to the system: at most once for each commit, as each costs a system call.
func (d *Device) ResidencyFlushes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flushes
}

// Leaks lists the kinds of objects that are still open, with their numbers.
func (d *Device) Leaks() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range []struct {
		n    int
		what string
	}{
		{len(d.buffers), "buffers are not closed"}, {d.programs, "programs are not closed"}, {d.slots, "frames and states are not closed"},
		{d.open, "command buffers are uncommitted"}, {len(d.queues), "queues are not closed"},
	} {
		if k.n != 0 {
			out = append(out, fmt.Sprintf("%d %s", k.n, k.what))
		}
	}
	return out
}

// NewQueue implements [backend.Device].
func (d *Device) NewQueue() (backend.Queue, error) {
	inner, err := d.inner.NewQueue()
	if err != nil {
		return nil, err
	}
	copies, err := d.inner.NewQueue()
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	q := &queue{inner: inner, copies: copies, d: d}
	q.Queue = hostqueue.New(q.executor(), hostqueue.Options{MaxUncompleted: d.options.MaxUncompleted, Reverse: d.options.Reverse, Ready: d.ready})
	d.mu.Lock()
	d.queues[q] = true
	d.mu.Unlock()
	return q, nil
}
