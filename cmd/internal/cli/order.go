package cli

import "github.com/mlxc/mlxc/ir"

// OrderFlag lets a user say that the list of a recording is the order in which its
// commands ran.
type OrderFlag struct {
	RecordedOrder bool `help:"Take the list of each graph as its order, as of a serial encoder: what its barriers leave open does not count."`
}

// Apply makes the graphs serial if the flag was given.
func (f OrderFlag) Apply(graphs ...*ir.Graph) {
	for _, g := range graphs {
		if f.RecordedOrder {
			g.SetOrdering(ir.Serial)
		}
	}
}

// Note is what an answer of one line ends with if the flag was given.
func (f OrderFlag) Note() string {
	if f.RecordedOrder {
		return ", in recorded order"
	}
	return ""
}

// Mention puts it into an answer in JSON.
func (f OrderFlag) Mention(answer map[string]any) map[string]any {
	if f.RecordedOrder {
		answer["recorded_order"] = true
	}
	return answer
}
