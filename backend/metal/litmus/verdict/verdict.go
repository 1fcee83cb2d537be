// Package verdict is what litmus tests say, for those who read it where there is no Metal.
package verdict

import "path"

// Verdict is what a test has found.
type Verdict string

// The verdicts.
const (
	Passed      Verdict = "passed"      // right with the order, and wrong without it
	Failed      Verdict = "failed"      // wrong, with the order, and the backend relies on it
	NotKept     Verdict = "not kept"    // wrong, with the order: what would rely on it is not used
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
	// Hangs: a command buffer has not ended, and those of later tests would not.
	Hangs bool `json:"hangs,omitempty"`
}

// Judge sets the verdict, and what to do next, from the counts.
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
