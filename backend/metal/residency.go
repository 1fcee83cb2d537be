//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"sync"
	"time"

	"github.com/mlxc/mlxc/internal/objc"
)

// residency keeps the device's buffers resident on the GPU by an MTLResidencySet of all of them, which is
// added to every queue. It orders nothing. Before macOS 15 there are no residency sets: command buffers
// then make resident what they bind, and what indirect command buffers use is declared to the encoder
// ([residency.on]).
//
// Additions and removals take effect when the set is committed, which costs a system call: that is
// done before command buffers are committed, once for all changes since the last time. While the
// device is in use, and for a while after, a goroutine requests residency every half second: the
// system would swap out memory that was not used for long.
type residency struct {
	id   objc.ID       // MTLResidencySet; 0: there is none
	keep time.Duration // for how long after the last use residency is requested
	beat time.Duration // the time between two requests

	// mu guards everything below, and the messages to the set, which is not documented to be safe for
	// several threads.
	mu      sync.Mutex
	changed bool
	dropped int64     // bytes that were removed since the last commit: the set may still hold them
	commits int       // how often the set was committed
	used    time.Time // when command buffers were last committed
	beating bool      // a goroutine requests residency
	stop    chan struct{}
	ended   chan struct{} // closed when that goroutine has ended
}

// mostDropped is the max number of bytes of closed buffers that the set may still hold. Beyond it the set is
// committed without a command buffer, since later allocations may need the room.
const mostDropped = 256 << 20

// newResidency makes the set of a device. The caller has an autorelease pool. Without a set everything
// works, but is slower after a pause.
func newResidency(d *Device) *residency {
	r := &residency{keep: d.options.Keep, beat: 500 * time.Millisecond}
	if r.keep == 0 {
		r.keep = DefaultKeep
	}
	r.beat = min(r.beat, max(time.Millisecond, r.keep/4))
	if d.options.NoResidency || !objc.Responds(d.id, objc.NewResidencySet) {
		return r
	}
	how := objc.New("MTLResidencySetDescriptor")
	defer objc.Release(how)
	id, err := objc.WithError(objc.NewResidencySet, func(slot uintptr) uintptr {
		return objc.NewResidencySet.Send(d.id, uintptr(how), slot)
	})
	if err != nil {
		d.warn("there is no residency set, so that memory may be swapped out between replays: %v", err)
		return r
	}
	r.id = objc.ID(id)
	return r
}

// on reports whether there is a set. Without one an encoder must declare the resources that its indirect
// command buffers use (useResources:count:usage:).
func (r *residency) on() bool { return r.id != 0 }

// add adds a buffer to the set.
func (r *residency) add(buffer objc.ID) {
	if !r.on() || buffer == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	objc.Pool(func() { objc.AddAllocation.Send(r.id, uintptr(buffer)) })
	r.changed = true
}

// remove removes a buffer from the set, before it is released.
func (r *residency) remove(b *buffer) {
	if !r.on() || b.id == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	objc.Pool(func() {
		objc.RemoveAllocation.Send(r.id, uintptr(b.id))
		r.changed = true
		// A caller may unmap its memory next, so the set must let go of it at once. For other memory
		// the set is committed only if it holds too much, or no later commit is due soon.
		if r.dropped += b.length; b.mapped != nil || r.dropped > mostDropped || !r.beating {
			r.commit()
		}
	})
}

// commit commits the set if it has changed. The caller holds mu and has an autorelease pool.
func (r *residency) commit() {
	if r.changed {
		objc.CommitResidency.Send(r.id)
		r.changed, r.dropped = false, 0
		r.commits++
	}
}

// use is called before command buffers are committed: it commits the set and has residency requested.
func (r *residency) use() {
	if !r.on() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = time.Now()
	if r.changed {
		objc.Pool(r.commit)
	}
	if r.beating {
		return
	}
	r.beating = true
	r.stop, r.ended = make(chan struct{}), make(chan struct{})
	objc.Pool(func() { objc.RequestResidency.Send(r.id) })
	go r.ask(r.stop, r.ended)
}

// ask requests residency at each beat, until the device was not used for long or stop is closed.
func (r *residency) ask(stop, ended chan struct{}) {
	defer close(ended)
	t := time.NewTicker(r.beat)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		if !r.again() {
			return
		}
	}
}

// again requests residency once more, or ends it after r.keep without use. It reports whether to go on.
func (r *residency) again() (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.beating { // closed meanwhile
		return false
	}
	objc.Pool(func() {
		r.commit()
		if time.Since(r.used) > r.keep {
			objc.EndResidency.Send(r.id)
			r.beating = false
			return
		}
		objc.RequestResidency.Send(r.id)
	})
	return r.beating
}

// queue adds the set to a queue. The caller has an autorelease pool.
func (r *residency) queue(id objc.ID) {
	if r.on() {
		objc.QueueAddResidency.Send(id, uintptr(r.id))
	}
}

// leave removes the set from a queue that is about to be released.
func (r *residency) leave(id objc.ID) {
	if r.on() {
		objc.Pool(func() { objc.QueueRemoveResidency.Send(id, uintptr(r.id)) })
	}
}

// flushes returns how often the set was committed.
func (r *residency) flushes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.commits
}

func (r *residency) close() {
	if !r.on() {
		return
	}
	r.mu.Lock()
	beating, ended := r.beating, r.ended
	if beating {
		r.beating = false
		close(r.stop)
	}
	r.mu.Unlock()
	if ended != nil {
		<-ended
	}
	objc.Pool(func() {
		if beating {
			objc.EndResidency.Send(r.id)
		}
		r.commit()
	})
	objc.Release(r.id)
	r.id = 0
}

// ResidencyFlushes returns how often the residency set was committed: each costs a system call, so it is
// done at most once for each time that command buffers are committed.
func (d *Device) ResidencyFlushes() int { return d.resident.flushes() }
