package litmus

import (
	"context"
	"time"

	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
)

// Options of a run. The zero value is good.
type Options struct {
	// Device is the registry ID of a GPU; 0 is the one that the system prefers.
	Device uint64
	// Only is a pattern of names, as path.Match has it: "fence/*"; "" is every test.
	Only string
	// Trials is how often each program runs; 0 is 300.
	Trials int
	// Spin is how many turns of a loop a slow step takes; 0: so many that it takes a tenth of a
	// millisecond.
	Spin int
	// Pause is what the host waits for before it does something late; 0 is two milliseconds.
	Pause time.Duration
	// Patience is after what time a command buffer counts as one that never ends; 0 is ten seconds.
	Patience time.Duration
	// EmptyGrids sends dispatches of no threads too. Metal's API validation, where it is switched on,
	// ends the process for that.
	EmptyGrids bool
	// Apart, if not nil, has a process of its own run a test and returns its result: one that is about what
	// nothing in the process has done before. Nil: it runs here.
	Apart func(ctx context.Context, name string) (Result, error)
	// Begin, if not nil, hears which test begins, and which part of the work is done, from 0 to 1.
	Begin func(name string, done float64)
}

// What a run finds, in package verdict, which programs without Metal know too.
type (
	Result  = verdict.Result
	Verdict = verdict.Verdict
	Count   = verdict.Count
)

// The verdicts.
const (
	Passed      = verdict.Passed
	Failed      = verdict.Failed
	NotKept     = verdict.NotKept
	NotSeen     = verdict.NotSeen
	Unsupported = verdict.Unsupported
)
