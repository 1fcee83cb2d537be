package passes

import (
	"context"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/internal/interrupt"
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

// run runs a step within the budget of o.
func (o Options) run(ctx context.Context, step int, s boundStep, x *State) error {
	within, done := interrupt.Budget(o.Budget).Within(ctx)
	err := func() (err error) {
		defer interrupt.Catch(&err)
		return s.run(within, x)
	}()
	if over := done(); err != nil && over != nil {
		return &OverBudget{step, s.String(), over.What}
	}
	return err
}
