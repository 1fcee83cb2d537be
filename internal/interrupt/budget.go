package interrupt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"
)

// Budget bounds some work. A zero field means no limit.
type Budget struct {
	Time time.Duration
	// Memory is how many bytes the live objects of the process may grow by during the
	// work. Other work in the same process counts too.
	Memory int64
}

// Over is the cause of the context of [Budget.Within] once the work has exceeded its
// budget.
type Over struct {
	What string // "10m0s of time" or "1024 MiB of memory"
}

func (o *Over) Error() string { return "more than the budget of " + o.What }

// period is how often a budget is checked.
const period = 20 * time.Millisecond

// Within returns a context that ends when the work that begins now has exceeded b. The
// work must call done when it has ended. done returns nil unless the work was stopped
// for exceeding b.
func (b Budget) Within(ctx context.Context) (within context.Context, done func() *Over) {
	if b == (Budget{}) {
		return ctx, func() *Over { return nil }
	}
	within, cancel := context.WithCancelCause(ctx)
	// What was in use before is measured here, because the watcher may start late.
	go b.watch(within, cancel, time.Now(), liveBytes())
	return within, func() *Over {
		cancel(nil)
		var over *Over
		if ctx.Err() == nil {
			errors.As(context.Cause(within), &over)
		}
		return over
	}
}

// watch cancels ctx once b is exceeded, unless ctx ends before.
func (b Budget) watch(ctx context.Context, cancel context.CancelCauseFunc, start time.Time, base int64) {
	collect := base + b.Memory // above this size some of the heap may be garbage, which must be collected before it counts
	t := time.NewTicker(period)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if b.Time > 0 && time.Since(start) > b.Time {
			cancel(&Over{b.Time.String() + " of time"})
			return
		}
		if b.Memory <= 0 || liveBytes() <= collect {
			continue
		}
		runtime.GC()
		live := liveBytes()
		if live > base+b.Memory {
			cancel(&Over{fmt.Sprintf("%d MiB of memory", b.Memory>>20)})
			return
		}
		// Do not collect again before as much has been added.
		collect = max(base+b.Memory, live+b.Memory/2)
	}
}

// liveBytes returns the size of the objects on the heap, including those that have not
// been collected yet.
func liveBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
