//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"sync"
	"time"

	"github.com/mlxc/mlxc/internal/objc"
)

// residency has the system keep the device's buffers where the GPU finds them: a residency set with
// all of them, which every queue has. It says nothing of order. Before macOS 15 there are none; then
// command buffers make resident what they bind, and of indirect command buffers the encoder has to
// be told what they reach ([residency.on]).
//
// What is added or taken out takes effect when the set is committed, which costs a call into the
// system: at most once for each time that command buffers are committed, and only where something
// has changed. While the device is in use, and for a while after, a goroutine asks every half second
// that what is in the set be resident: the system would swap out what has not been used for long.
type residency struct {
	id   objc.ID       // MTLResidencySet; 0: there is none
	keep time.Duration // after the last use
	beat time.Duration // between two requests

	// Everything below is held by mu, the messages to the set too: it is not said that several
	// threads may send them.
	mu      sync.Mutex
	changed bool
	dropped int64     // bytes that were taken out since the last commit, which the set may still hold
	commits int       // of the set
	used    time.Time // last
	beating bool      // a goroutine asks
	stop    chan struct{}
	ended   chan struct{} // closed when that goroutine has ended
}

// mostDropped is how many bytes may be closed and still be held by the set, before it is committed
// though no command buffer is: what is allocated next may need the room.
const mostDropped = 256 << 20

// newResidency makes the set of a device, inside of a pool. Without one everything works, slower
// after a pause.
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

// on reports whether there is a set. Where there is none an encoder has to be told what the indirect
// command buffers reach that it executes (useResources:count:usage:).
func (r *residency) on() bool { return r.id != 0 }

// add puts a buffer into the set.
func (r *residency) add(buffer objc.ID) {
	if !r.on() || buffer == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	objc.Pool(func() { objc.AddAllocation.Send(r.id, uintptr(buffer)) })
	r.changed = true
}

// remove takes a buffer out, before it is released.
func (r *residency) remove(b *buffer) {
	if !r.on() || b.id == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	objc.Pool(func() {
		objc.RemoveAllocation.Send(r.id, uintptr(b.id))
		r.changed = true
		// Memory of the caller may be gone in a moment, so the set must let go of it at once; and of
		// other memory where nothing else would have it do so soon.
		if r.dropped += b.length; b.mapped != nil || r.dropped > mostDropped || !r.beating {
			r.commit()
		}
	})
}

// commit has changes take effect, where there are some. mu is held, and a pool is around.
func (r *residency) commit() {
	if r.changed {
		objc.CommitResidency.Send(r.id)
		r.changed, r.dropped = false, 0
		r.commits++
	}
}

// use is told that command buffers are about to be committed.
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

// ask asks again and again that the set be resident, until the device was not used for long.
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

// again is one request. It reports whether there will be another one.
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

// queue has a queue use the set, inside of a pool.
func (r *residency) queue(id objc.ID) {
	if r.on() {
		objc.QueueAddResidency.Send(id, uintptr(r.id))
	}
}

// leave has a queue that is closed use it no more.
func (r *residency) leave(id objc.ID) {
	if r.on() {
		objc.Pool(func() { objc.QueueRemoveResidency.Send(id, uintptr(r.id)) })
	}
}

// flushes is how often the set was committed.
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

// ResidencyFlushes returns how often changes of the set of resident buffers were handed to the system:
// at most once for each time that command buffers are committed, as every one costs a system call.
func (d *Device) ResidencyFlushes() int { return d.resident.flushes() }
