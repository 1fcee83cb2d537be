package record

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// device is what an encoder that executes has: a queue, the open command
// buffer, and those that have not ended. Memory is given back to the device when
// the last command buffer that may use it has ended: the caller need not keep
// anything alive.
type device struct {
	*settings
	counters  *counters
	memory    *memories
	values    *paramValues
	recording uint32 // counted from 1
	queue     backend.Queue
	scope     backend.Scope         // of what is executed as it comes
	open      backend.CommandBuffer // nil: none
	grown     []grown               // while it is open
	serial    uint64                // of the open command buffer, or of the last one
	flight    []*submitted          // not known to have ended; oldest first
	ended     uint64                // all up to this one have
	given     []given
	failed    []*submitted // ended with an error that Wait has not returned yet
	pending   []*submitted // of the recording, in order
	begin     time.Time    // of the recording's first command
	last      time.Time    // of its last commit
	warned    bool
}

// submitted is a command buffer that was committed.
type submitted struct {
	serial   uint64
	label    string
	commands int
	buffer   backend.Pending
	told     bool // its error was returned to the caller
}

func (s *submitted) wait() error { return s.buffer.Result().Err }

// tell returns its error to the caller, but for one whose cause is that of another.
func (s *submitted) tell() error {
	err := s.wait()
	s.told = s.told || err != nil
	if errors.Is(err, backend.ErrNotExecuted) {
		return nil
	}
	return err
}

// discard abandons the open command buffer.
func (d *device) discard() {
	if d.open != nil {
		d.open.Discard()
		d.abandon()
		d.counters.add(discardedBuffers, 1)
	}
}

// abandon forgets the open command buffer, which was discarded. Memory that grew in it is
// copied after all: what was committed before may be in it.
func (d *device) abandon() {
	d.open = nil
	d.serial--
	ctx := context.Background()
	for _, g := range d.grown {
		// A queue that fails here says so when it is used next.
		_ = backend.Wait(ctx)(d.queue.Copy(ctx, backend.At(g.to), backend.At(g.from), g.from.Size()))
		_ = g.from.Close()
	}
	d.grown = nil
}

// grown is memory that got a greater buffer in the open command buffer, which copies it.
type grown struct{ from, to backend.Buffer }

// given is memory that was given up but may be in use.
type given struct {
	buffer       backend.Buffer
	used, before uint64 // as those of a rootMemory
}

// newDevice returns the device of e, which has a graph.
func newDevice(e *Encoder) (*device, error) {
	q, err := e.on.NewQueue()
	return &device{settings: &e.settings, counters: &e.counters, memory: &e.memories, values: &e.values, recording: 1, queue: q, scope: backend.Scope{Graph: e.g}}, err
}

// renew begins anew after an error that the caller knows of.
func (d *device) renew() (err error) {
	if d.queue.Err() == nil || len(d.flight) > 0 || len(d.failed) > 0 {
		return nil
	}
	if err := d.queue.Close(); err != nil {
		return err
	}
	d.queue, err = d.on.NewQueue()
	return err
}

// current returns the serial of the command buffer that the next command goes
// to.
func (d *device) current() uint64 {
	if d.open != nil {
		return d.serial
	}
	return d.serial + 1
}

// use notes that the next command binds p.
func (d *device) use(p *rootMemory) {
	if c := d.current(); p.used != c {
		p.before, p.used = p.used, c
	}
}

// done reports whether memory is used no more: the last command buffer that
// binds it and the one before that are given. A serial beyond the last is that of
// a command buffer that was abandoned, or never begun; the one before it counts.
func (d *device) done(used, before uint64) bool {
	if used > d.serial {
		used = before
	}
	return used <= d.ended
}

// touch notes that the command being encoded binds a memory.
func (d *device) touch(m ir.MemID) {
	root, _ := d.memory.graph.Root(m)
	p := &d.memory.places[root]
	p.bound = d.recording
	if !d.deferred {
		d.use(p)
	}
}

// idle reports why the host must not touch a memory now. What the device only
// reads may be written until it is committed.
func (d *device) idle(root ir.MemID) error {
	p, readOnly := &d.memory.places[root], d.memory.graph.Memories[root].Kind.ReadOnly()
	d.reap()
	switch {
	case d.done(p.used, p.before) && !(d.deferred && p.bound == d.recording && !readOnly):
		return nil
	case d.deferred && p.bound == d.recording && !readOnly:
		return errors.New("commands that bind it are not executed before Finish")
	case d.open == nil || p.used != d.serial:
		return errors.New("a command buffer that binds it has not ended: Wait")
	case readOnly && p.before <= d.ended:
		return nil
	case readOnly:
		return errors.New("a command buffer that reads it has not ended: Wait")
	}
	return errors.New("commands that bind it are not committed: Commit and Wait, or Finish")
}

// drain waits for the command buffers up to serial.
func (d *device) drain(serial uint64) {
	for _, s := range d.flight {
		if s.serial <= serial {
			_ = s.wait() // its error is kept there
		}
	}
	d.reap()
}

// wait waits for all command buffers and returns the errors of those that failed,
// once each, whenever they did.
func (d *device) wait() error {
	d.drain(d.serial)
	var errs []error
	for _, s := range d.failed {
		if !s.told {
			errs = append(errs, s.tell())
		}
	}
	d.failed = nil
	return errors.Join(errs...)
}

// reap forgets the command buffers that have ended, and closes memory that only
// they used.
func (d *device) reap() {
	n := 0
	for n < len(d.flight) && d.flight[n].buffer.Status().Ended() {
		if err := d.flight[n].wait(); err != nil {
			if !errors.Is(err, backend.ErrNotExecuted) {
				d.counters.add(failedBuffers, 1)
			}
			d.failed = append(d.failed, d.flight[n])
		}
		d.ended = d.flight[n].serial
		n++
	}
	d.flight = d.flight[n:]
	d.failed = slices.DeleteFunc(d.failed, func(s *submitted) bool { return s.told })
	keep := d.given[:0]
	for _, r := range d.given {
		if d.done(r.used, r.before) {
			_ = r.buffer.Close()
		} else {
			keep = append(keep, r)
		}
	}
	d.given = keep
}

// retire closes the memory of p once no command buffer uses it.
func (d *device) retire(p *rootMemory) {
	if p.buffer != nil {
		d.given = append(d.given, given{p.buffer, p.used, p.before})
		p.buffer, p.bytes = nil, 0
	}
	d.reap()
}

func (d *device) close() error {
	err := d.wait()
	places := d.memory.places
	for i := range places {
		if b := places[i].buffer; b != nil {
			err = errors.Join(err, b.Close())
			places[i].buffer, places[i].bytes = nil, 0
		}
	}
	for _, r := range d.given {
		err = errors.Join(err, r.buffer.Close())
	}
	d.given = nil
	return errors.Join(err, d.queue.Close())
}

// samplingWarning says, once, what is wrong with the times of dispatches.
func (d *device) samplingWarning() string {
	if !d.profile || d.warned {
		return ""
	}
	name := d.on.Name()
	switch d.on.Info().Sampling {
	case backend.SampleEncoders:
		d.warned = true
		return name + " takes times at the ends of encoders only: each dispatch had one of its own, and nothing overlapped"
	case backend.SampleNothing:
		d.warned = true
		return name + " cannot take the time of a dispatch"
	}
	return ""
}
