// Package verdict has the results of litmus tests, for programs that read them on systems without Metal.
package verdict

import "path"

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
