package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/mlxc/mlxc/internal/files/mmap"
)

// pool shares the units of one call among workers. A decode step is hundreds of calls of a few microseconds
// each, and waking a sleeping goroutine for each would cost more than the work. So helper goroutines spin for a
// while before they sleep. The caller works too, and waits only for helpers that have joined the
// call: one that the operating system has descheduled does not delay it.
type pool struct {
	workers int
	scratch []Worker

	// The current job. INVARIANT: it changes only while state is closed and no
	// helper has joined.
	kernel *Kernel
	call   *Call
	units  int
	chunk  int
	next   atomic.Int64
	// state is generation<<32 | open | number of helpers that have joined.
	state   atomic.Uint64
	failure atomic.Pointer[any]

	closed   atomic.Bool
	sleepers atomic.Int32
	mu       sync.Mutex
	wake     *sync.Cond
}

const (
	open       = 1 << 16
	generation = 1 << 32

	// spinFor is how long a helper spins before it sleeps: longer than any gap inside a decode step, too short
	// to be noticed as load.
	spinFor = 300 * time.Microsecond
	// worthSharing is the modelled time of a call in ns from which on a second worker saves more than handing over
	// costs (about 1 µs).
	worthSharing = 4000
	// stopWithin is the modelled time in ns after which a worker checks for cancellation: short enough not to be
	// noticed, and long compared with the cost of a check.
	stopWithin = 2e6
)

func newPool(workers int, l *ledger) *pool {
	p := &pool{workers: workers, scratch: make([]Worker, workers)}
	for i := range p.scratch {
		p.scratch[i].ledger = l
	}
	p.wake = sync.NewCond(&p.mu)
	for i := 1; i < workers; i++ {
		go p.help(i)
	}
	return p
}

// close ends the workers. No call may be running.
func (p *pool) close() {
	if p.closed.Swap(true) {
		return
	}
	for i := range p.scratch {
		p.scratch[i].f32 = nil
		_ = p.scratch[i].block.free() // an error here means that memory stays mapped, which hurts nobody
	}
	p.mu.Lock()
	p.wake.Broadcast()
	p.mu.Unlock()
}

// run does all units of a call. A kernel that panics (a slice that is too
// short for its arguments) becomes an error.
func (p *pool) run(k *Kernel, c *Call) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cpu: kernel %s: %w", k.Name, failed(r))
		}
	}()
	units := k.Units(c)
	if units <= 0 {
		return nil
	}
	cost := k.Cost(c)
	most := units // the max number of units that a worker takes at a time
	if float64(units)*cost > stopWithin {
		most = int(max(1, stopWithin/cost))
	}
	if p.workers == 1 || units == 1 || float64(units)*cost < worthSharing {
		for lo := 0; lo < units; lo += most {
			c.Pause()
			k.Run(c, &p.scratch[0], lo, min(lo+most, units))
		}
		return nil
	}
	p.kernel, p.call, p.units = k, c, units
	p.chunk = max(1, min(units/(p.workers*4), most))
	p.next.Store(0)
	job := p.state.Load()&^(generation-1) + generation | open
	p.state.Store(job)
	if p.sleepers.Load() > 0 {
		p.mu.Lock()
		p.wake.Broadcast()
		p.mu.Unlock()
	}
	p.work(0)
	// All units are taken. Closing the job keeps more helpers from joining; those that have joined are
	// finishing their last chunk.
	for s := p.state.And(^uint64(open)); s&(open-1) != 0; s = p.state.Load() {
		runtime.Gosched()
	}
	if f := p.failure.Swap(nil); f != nil {
		return fmt.Errorf("cpu: kernel %s: %w", k.Name, failed(*f))
	}
	return nil
}

// failed returns the error for a kernel that panicked on any worker. Weights lie in mapped files, and
// reading one that was truncated panics too.
func failed(recovered any) error {
	if err := mmap.Fault(recovered); err != nil {
		return err
	}
	if err, ok := recovered.(error); ok {
		return err // an error of Scratch, or errStopped
	}
	return fmt.Errorf("%v", recovered)
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
		p.call.Pause()
		p.kernel.Run(p.call, &p.scratch[worker], lo, min(hi, p.units))
	}
}

func (p *pool) help(worker int) {
	debug.SetPanicOnFault(true) // see failed
	for seen := uint64(0); ; {
		s, ok := p.await(seen)
		if !ok {
			return
		}
		seen = s / generation
		if p.state.CompareAndSwap(s, s+1) {
			p.work(worker)
			p.state.Add(^uint64(0))
		} else {
			seen-- // the state has changed meanwhile, because a helper joined or the job closed: look again
		}
	}
}

// await waits for an open job that is newer than seen and returns its state, or false when the pool is closed.
func (p *pool) await(seen uint64) (uint64, bool) {
	fresh := func() (uint64, bool) {
		s := p.state.Load()
		return s, s&open != 0 && s/generation != seen
	}
	start := time.Now()
	for i := 1; ; i++ {
		if s, ok := fresh(); ok {
			return s, true
		}
		if i%64 == 0 {
			if p.closed.Load() {
				return 0, false
			}
			if time.Since(start) > spinFor {
				break
			}
			runtime.Gosched()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sleepers.Add(1)
	defer p.sleepers.Add(-1)
	for {
		if s, ok := fresh(); ok {
			return s, true
		}
		if p.closed.Load() {
			return 0, false
		}
		p.wake.Wait()
	}
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
