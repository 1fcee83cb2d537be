package cli

import "github.com/mlxc/mlxc/ir"

// OrderFlag lets a user say that the list of a recording is the order in which its
// commands ran.
type OrderFlag struct {
	RecordedOrder bool `help:"Take the order in which each graph lists its commands as the order in which they ran, whatever its barriers say."`
}

// Apply makes the graphs serial if the flag was given.
func (f OrderFlag) Apply(graphs ...*ir.Graph) {
	for _, g := range graphs {
		if f.RecordedOrder {
			g.SetOrdering(ir.Serial)
		}
	}
}

// Note returns the ending of a one-line answer that says that the flag was given, or "".
func (f OrderFlag) Note() string {
	if f.RecordedOrder {
		return ", in recorded order"
	}
	return ""
}

// Mention adds a field to a JSON answer that says that the flag was given.
func (f OrderFlag) Mention(answer map[string]any) map[string]any {
	if f.RecordedOrder {
		answer["recorded_order"] = true
	}
	return answer
}
