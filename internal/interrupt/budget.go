package interrupt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"
)

// Budget is what some work may take. Zero of either is no limit.
type Budget struct {
	Time time.Duration
	// Memory is how many bytes of live objects the process may have more than when
	// the work began: what other work of the same process allocates counts too.
	Memory int64
}

// Over is the cause of the context of [Budget.Within] once the work has taken more.
type Over struct {
	What string // "10m0s of time" or "1024 MiB of memory"
}

func (o *Over) Error() string { return "more than the budget of " + o.What }

// period is how often a budget is looked at.
const period = 20 * time.Millisecond

// Within returns a context that ends when the work that begins now has taken more
// than b. The work calls done when it has ended, which says whether it was stopped
// for that: nil if it was not, or if ctx itself ended.
func (b Budget) Within(ctx context.Context) (within context.Context, done func() *Over) {
	if b == (Budget{}) {
		return ctx, func() *Over { return nil }
	}
	within, cancel := context.WithCancelCause(ctx)
	// What was there before is measured here: the watcher may come to run late.
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

// watch ends ctx once more than b was taken, unless it ends before.
func (b Budget) watch(ctx context.Context, cancel context.CancelCauseFunc, start time.Time, base int64) {
	collect := base + b.Memory // what is above it may be garbage
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
		// Not before as much again has come.
		collect = max(base+b.Memory, live+b.Memory/2)
	}
}

// liveBytes returns the bytes of objects on the heap, those included that are not
// collected yet.
func liveBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
