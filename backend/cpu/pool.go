package cpu

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// pool shares the units of one call among workers. A decode step is hundreds
// of calls of a few microseconds each, so that waking a sleeping goroutine for
// every one would cost more than the work: helpers spin for a while before they
// sleep.
type pool struct {
	workers int
	scratch []Worker

	// The current job. Helpers read it after they saw generation change.
	kernel     *Kernel
	call       *Call
	units      int
	chunk      int
	next       atomic.Int64
	active     atomic.Int32 // helpers that have not finished the job
	generation atomic.Uint32
	closed     atomic.Bool

	mu       sync.Mutex
	sleepers int
	wake     *sync.Cond
	failure  atomic.Pointer[any]
}

const (
	// spinFor is how long a helper looks for work before it sleeps: longer than
	// any gap inside a decode step, shorter than a person notices.
	spinFor = 300 * time.Microsecond
	// worthSharing is the work, in ns, from which a second worker pays for the
	// handing over (about 1 µs).
	worthSharing = 4000
)

func newPool(workers int) *pool {
	p := &pool{workers: workers, scratch: make([]Worker, workers)}
	p.wake = sync.NewCond(&p.mu)
	for i := 1; i < workers; i++ {
		go p.help(i)
	}
	return p
}

func (p *pool) close() {
	p.closed.Store(true)
	p.mu.Lock()
	p.wake.Broadcast()
	p.mu.Unlock()
}

// run does all units of a call. A kernel that panics (a slice that is too
// short for its arguments) becomes an error.
func (p *pool) run(k *Kernel, c *Call) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cpu: kernel %s: %v", k.Name, r)
		}
	}()
	units := k.Units(c)
	if units <= 0 {
		return nil
	}
	if p.workers == 1 || units == 1 || float64(units)*k.Cost(c) < worthSharing {
		k.Run(c, &p.scratch[0], 0, units)
		return nil
	}
	p.kernel, p.call, p.units = k, c, units
	p.chunk = max(1, units/(p.workers*4))
	p.next.Store(0)
	p.active.Store(int32(p.workers - 1))
	p.generation.Add(1)
	p.mu.Lock()
	if p.sleepers > 0 {
		p.wake.Broadcast()
	}
	p.mu.Unlock()
	p.work(0)
	for i := 0; p.active.Load() != 0; i++ {
		if i > 1000 {
			runtime.Gosched()
		}
	}
	if f := p.failure.Swap(nil); f != nil {
		return fmt.Errorf("cpu: kernel %s: %v", k.Name, *f)
	}
	return nil
}

// work takes chunks of the current job until none is left.
func (p *pool) work(worker int) {
	defer func() {
		if r := recover(); r != nil {
			p.failure.CompareAndSwap(nil, &r)
		}
	}()
	for {
		hi := int(p.next.Add(int64(p.chunk)))
		lo := hi - p.chunk
		if lo >= p.units {
			return
		}
		p.kernel.Run(p.call, &p.scratch[worker], lo, min(hi, p.units))
	}
}

func (p *pool) help(worker int) {
	seen := uint32(0)
	for {
		if !p.await(seen) {
			return
		}
		seen = p.generation.Load()
		p.work(worker)
		p.active.Add(-1)
	}
}

// await returns when there is a job newer than seen, or false when the pool is
// closed.
func (p *pool) await(seen uint32) bool {
	start := time.Now()
	for i := 0; ; i++ {
		if p.generation.Load() != seen {
			return true
		}
		if i%64 == 63 {
			if p.closed.Load() {
				return false
			}
			if time.Since(start) > spinFor {
				break
			}
			runtime.Gosched()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sleepers++
	defer func() { p.sleepers-- }()
	for p.generation.Load() == seen && !p.closed.Load() {
		p.wake.Wait()
	}
	return !p.closed.Load()
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
