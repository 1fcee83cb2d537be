// Package verdict has what litmus tests are told and what they say, for programs that are built on systems without
// Metal.
package verdict

import (
	"context"
	"path"
	"time"
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

// Verdict is the outcome of a litmus test.
type Verdict string

// The verdicts.
const (
	Passed      Verdict = "passed"      // results were right with the order, and wrong without it
	Failed      Verdict = "failed"      // results were wrong with the order, which the backend relies on by default
	NotKept     Verdict = "not kept"    // results were wrong with the order, so features that rely on it are not used
	NotSeen     Verdict = "not seen"    // results were right with and without the order, which says nothing
	Unsupported Verdict = "unsupported" // the test did not run
)

// Count is how often a test's program ran, and how often its result was wrong.
type Count struct {
	Trials int `json:"trials"`
	Wrong  int `json:"wrong"`
}

// Result is the result of one litmus test.
type Result struct {
	Name string `json:"name"`
	// Says is the statement that the test checks.
	Says string `json:"says"`
	// For is the feature of the backend that relies on it: "every replay", "fences", "nothing".
	For string `json:"for"`
	// Required: the backend relies on the statement by default.
	Required bool    `json:"required"`
	Verdict  Verdict `json:"verdict"`
	// With counts runs with the order that the statement is about, Without those of the control; nil: none.
	With    Count  `json:"with"`
	Without *Count `json:"without,omitempty"`
	// Detail is the first error, or why the test did not run.
	Detail string `json:"detail,omitempty"`
	// Next is what the user should do, if anything.
	Next string `json:"next,omitempty"`
	// Hangs: a command buffer did not end, so those of later tests would not either.
	Hangs bool `json:"hangs,omitempty"`
}

// Judge sets Verdict and Next from the counts.
func (r *Result) Judge() {
	switch {
	case r.With.Wrong > 0 && r.Required:
		r.Verdict = Failed
		r.Next = "send the report: the backend relies on this (docs/metal.md)"
	case r.With.Wrong > 0:
		r.Verdict = NotKept
	case r.Without != nil && r.Without.Wrong == 0:
		r.Verdict = NotSeen
		r.Next = "run again without --quick, and while something else keeps the GPU busy"
	default:
		r.Verdict = Passed
	}
}

// Passing reports whether some tests have a name that matches a pattern of path.Match, and all of them passed.
func Passing(results []Result, pattern string) bool {
	some := false
	for _, r := range results {
		if ok, err := path.Match(pattern, r.Name); err != nil || !ok {
			continue
		}
		if r.Verdict != Passed {
			return false
		}
		some = true
	}
	return some
}
