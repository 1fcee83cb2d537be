package litmus

import (
	"path"
	"time"
)

// Options of a run. The zero value is good.
type Options struct {
	// Device is the registry ID of a GPU; 0 is the one that the system prefers.
	Device uint64
	// Only is a pattern of names, as path.Match has it: "fence/*"; "" is every test.
	Only string
	// Trials is how often each program runs; 0 is 300.
	Trials int
	// Spin is how many turns of a loop a slow step takes; 0 is 20,000, a tenth of a millisecond.
	Spin int
	// Pause is what the host waits for before it does something late; 0 is two milliseconds.
	Pause time.Duration
	// Patience is after what time a command buffer counts as one that never ends; 0 is ten seconds.
	Patience time.Duration
	// EmptyGrids sends dispatches of no threads too. Metal's API validation, where it is switched on,
	// ends the process for that.
	EmptyGrids bool
	// Progress, if not nil, hears which part of the work is done, from 0 to 1.
	Progress func(done float64)
}

// Verdict is what a test has found.
type Verdict string

// The verdicts.
const (
	Passed      Verdict = "passed"      // right with the order, and wrong without it
	Failed      Verdict = "failed"      // wrong, with the order
	NotSeen     Verdict = "not seen"    // right with the order and without: that says nothing
	Unsupported Verdict = "unsupported" // it did not run
)

// Count is how often a program ran, and how often its result was wrong.
type Count struct {
	Trials int `json:"trials"`
	Wrong  int `json:"wrong"`
}

// Result is what one test has found.
type Result struct {
	Name string `json:"name"`
	// Says is the statement that the test is about.
	Says string `json:"says"`
	// For is what relies on the statement: "every replay", "fences", "nothing".
	For string `json:"for"`
	// Required: the backend relies on it in what it does by default.
	Required bool    `json:"required"`
	Verdict  Verdict `json:"verdict"`
	// With is with what the statement says that orders, Without is the control; nil: there is none.
	With    Count  `json:"with"`
	Without *Count `json:"without,omitempty"`
	// Detail is the first thing that was wrong, or why the test did not run.
	Detail string `json:"detail,omitempty"`
	// Next is what to do now, where there is something.
	Next string `json:"next,omitempty"`
}

// judge sets the verdict from the counts.
func (r *Result) judge() {
	switch {
	case r.With.Wrong > 0:
		r.Verdict = Failed
		r.Next = "send the report: the backend relies on this (docs/metal.md)"
		if !r.Required {
			r.Next = "nothing: what relies on this is not used on this GPU"
		}
	case r.Without != nil && r.Without.Wrong == 0:
		r.Verdict = NotSeen
		r.Next = "run again without --quick, and while something else keeps the GPU busy"
	default:
		r.Verdict = Passed
	}
}

// Passing reports whether all tests whose name matches a pattern ran and passed, and there are some.
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
