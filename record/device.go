package record

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// device is the part of an encoder that executes: a queue, the open command buffer, and
// the command buffers that have not ended. It releases memory when the last command buffer
// that may use it has ended, so that the caller need not keep anything alive.
type device struct {
	*settings
	counters  *counters
	memory    *memories
	values    *paramValues
	recording uint32 // the number of the current recording, from 1
	queue     backend.Queue
	scope     backend.Scope         // of commands that are executed as they come
	open      backend.CommandBuffer // nil if no command buffer is open
	grown     []grown               // memory that grew in the open command buffer
	barriers  int                   // of the open command buffer
	serial    uint64                // the number of the open command buffer, or of the last one
	flight    []*submitted          // command buffers not known to have ended, oldest first
	ended     uint64                // all command buffers up to this number have ended
	given     []given
	failed    []*submitted // ended with an error that Wait has not returned yet
	pending   []*submitted // the command buffers of this recording, in order
	begin     time.Time    // of the recording's first command
	last      time.Time    // of its last commit
	warned    bool         // samplingWarning has said what it says once
}

// submitted is a command buffer that was committed.
type submitted struct {
	serial   uint64
	label    string
	commands int
	barriers int
	buffer   backend.Pending
	told     bool // its error was returned to the caller
}

func (s *submitted) wait() error { return s.buffer.Result().Err }

// tell returns the error of s for the caller. A command buffer that was not executed
// because an earlier one failed has no error of its own: the earlier one's says why.
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

// abandon forgets the open command buffer after it was discarded. The copies into memory
// that grew in it are made now, because what earlier command buffers wrote must survive.
func (d *device) abandon() {
	d.open = nil
	d.serial--
	ctx := context.Background()
	for _, g := range d.grown {
		// If the queue has failed, its next use returns the error.
		_ = backend.Wait(ctx)(d.queue.Copy(ctx, backend.At(g.to), backend.At(g.from), g.from.Size()))
		_ = g.from.Close()
	}
	d.grown = nil
}

// grown is memory whose buffer was replaced by a greater one. The open command buffer
// copies the contents.
type grown struct{ from, to backend.Buffer }

// given is memory that is to be released once no command buffer uses it.
type given struct {
	buffer       backend.Buffer
	used, before uint64 // as in rootMemory
}

// newDevice returns the device of e, whose graph must exist.
func newDevice(e *Encoder) (*device, error) {
	q, err := e.on.NewQueue()
	return &device{settings: &e.settings, counters: &e.counters, memory: &e.memories, values: &e.values, recording: 1, queue: q, scope: backend.Scope{Graph: e.g}}, err
}

// renew replaces the queue if it has failed and the caller was told of every failure.
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

// current returns the number of the command buffer that the next command goes to.
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

// done reports whether all command buffers that bind some memory have ended. used is the
// number of the last one, before that of the one before it. A number beyond the last
// command buffer belongs to one that was abandoned or never begun; then before counts.
func (d *device) done(used, before uint64) bool {
	if used > d.serial {
		used = before
	}
	return used <= d.ended
}

// touch notes that the command that is being encoded binds memory m.
func (d *device) touch(m ir.MemID) {
	root, _ := d.memory.graph.Root(m)
	p := &d.memory.places[root]
	p.bound = d.recording
	if !d.deferred {
		d.use(p)
	}
}

// idle returns an error that says why the host must not touch a memory now, or nil. Memory
// that commands only read may be written until those commands are committed.
func (d *device) idle(root ir.MemID) error {
	p, readOnly := &d.memory.places[root], d.memory.graph.Memories[root].Kind.ReadOnly()
	d.reap()
	switch {
	case d.done(p.used, p.before) && !(d.deferred && p.bound == d.recording && !readOnly):
		return nil
	case d.deferred && p.bound == d.recording && !readOnly:
		return errors.New("commands that bind it are executed at Finish: call Finish first")
	case d.open == nil || p.used != d.serial:
		return errors.New("a command buffer that binds it has not ended: call Wait first")
	case readOnly && p.before <= d.ended:
		return nil
	case readOnly:
		return errors.New("a command buffer that reads it has not ended: call Wait first")
	}
	return errors.New("commands that bind it are not committed: call Commit and Wait, or Finish, first")
}

// drain waits for the command buffers up to number serial.
func (d *device) drain(serial uint64) {
	for _, s := range d.flight {
		if s.serial <= serial {
			_ = s.wait() // reap keeps the error
		}
	}
	d.reap()
}

// wait waits for all command buffers, and returns the errors that the caller was not told
// before.
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

// reap forgets the command buffers that have ended, keeps the errors of those that failed,
// and closes memory that only they used.
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

// samplingWarning returns a warning if the device cannot time dispatches without changing
// how they run, or not at all. Only the first call returns it.
func (d *device) samplingWarning() string {
	if !d.profile || d.warned {
		return ""
	}
	name := d.on.Name()
	switch d.on.Info().Sampling {
	case backend.SampleEncoders:
		d.warned = true
		return name + " takes times at the ends of encoders only: each dispatch had an encoder of its own, and nothing overlapped"
	case backend.SampleNothing:
		d.warned = true
		return name + " cannot take the time of a dispatch"
	}
	return ""
}
