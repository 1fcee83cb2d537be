package passes

import (
	"context"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/internal/interrupt"
)

// Budget bounds one pass. A field that is zero means no limit.
type Budget struct {
	Time time.Duration
	// Memory is how many bytes the live objects of the process may grow by during the pass.
	// Allocations by other work in the process count too.
	Memory int64
}

// OverBudget is the error of [Run] if a pass takes more than its budget. The graph is unusable
// then. To run the other passes, run them on another copy of the graph.
type OverBudget struct {
	Step int // index in the pipeline
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
