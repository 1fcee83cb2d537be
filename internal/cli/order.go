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
		g.Serial = g.Serial || f.RecordedOrder
	}
}
