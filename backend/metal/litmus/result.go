package litmus

import "github.com/mlxc/mlxc/backend/metal/litmus/verdict"

// What a run is told and what it says: types of package verdict, which programs without Metal can import too.
type (
	Options = verdict.Options
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
