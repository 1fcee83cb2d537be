package litmus

import (
	"context"
	"time"

	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
)

// Options of a run. The zero value is good.
type Options struct {
	// Device is the registry ID of a GPU; 0 is the system's default one.
	Device uint64
	// Only is a pattern of names, as path.Match has it: "fence/*"; "" is every test.
	Only string
	// Trials is how often each program runs; 0 is 300.
	Trials int
	// Spin is the number of turns of the loop in a slow step; 0: as many as take a tenth of a
	// millisecond.
	Spin int
	// Pause is for how long the host waits before it signals late; 0 is two milliseconds.
	Pause time.Duration
	// Patience is the time after which a command buffer counts as hanging; 0 is ten seconds.
	Patience time.Duration
	// EmptyGrids sends dispatches of no threads too. Metal's API validation, where it is switched on,
	// ends the process for that.
	EmptyGrids bool
	// Apart, if not nil, runs the named test in a new process and returns its result. It is called for tests
	// that need a process in which the GPU was not used before. Nil: they run in this process.
	Apart func(ctx context.Context, name string) (Result, error)
	// Begin, if not nil, is called when a test begins, with the share of work that is done, from 0 to 1.
	Begin func(name string, done float64)
}

// The results of a run: types of package verdict, which programs without Metal can import too.
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
