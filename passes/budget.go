package passes

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Budget is what one pass may take. Zero of either is no limit.
type Budget struct {
	Time time.Duration
	// Memory is how many bytes of live objects the process may have more than when
	// the pass began: what other work of the same process allocates counts too.
	Memory int64
}

// OverBudget is the error of [Run] when a pass has taken more than its budget. The
// graph is of no use then: who wants the other passes runs them on another copy.
type OverBudget struct {
	Step int // of the pipeline
	Pass string
	What string // "10m0s of time" or "1024 MiB of memory"
}

func (e *OverBudget) Error() string {
	return fmt.Sprintf("pass %s took more than its budget of %s", e.Pass, e.What)
}

// budgetPeriod is how often a budget is looked at.
const budgetPeriod = 20 * time.Millisecond

// run runs a step within the budget of o.
func (o Options) run(ctx context.Context, step int, s Step, g *ir.Graph, r *Report) (err error) {
	if o.Budget == (Budget{}) {
		return s.Pass.run(ctx, g, o.values(s), r)
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go o.Budget.watch(within, func(what string) { cancel(&OverBudget{step, s.String(), what}) })
	defer interrupt.Catch(&err)
	err = s.Pass.run(within, g, o.values(s), r)
	var over *OverBudget
	if err != nil && errors.As(context.Cause(within), &over) && ctx.Err() == nil {
		return over
	}
	return err
}

// watch calls over once more than b was taken, unless ctx ends before.
func (b Budget) watch(ctx context.Context, over func(what string)) {
	start, base := time.Now(), liveBytes()
	collect := base + b.Memory // what is above it may be garbage
	t := time.NewTicker(budgetPeriod)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if b.Time > 0 && time.Since(start) > b.Time {
			over(b.Time.String() + " of time")
			return
		}
		if b.Memory <= 0 || liveBytes() <= collect {
			continue
		}
		runtime.GC()
		live := liveBytes()
		if live > base+b.Memory {
			over(fmt.Sprintf("%d MiB of memory", b.Memory>>20))
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
