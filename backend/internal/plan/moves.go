package plan

import (
	_ "embed"
	"fmt"
)

// Moves is the Metal source of the kernels that copy, fill and guard ([Pipeline.Entry]), MovesFile its
// name.
//
//go:embed moves.metal
var Moves string

// MovesFile is the name of the source [Moves].
const MovesFile = "moves.metal"

// Entry is the name of the kernel of a pipeline that is not the graph's.
func (p *Pipeline) Entry() string {
	switch p.Source {
	case Copy:
		return fmt.Sprintf("mlxc_copy_%d", p.Width)
	case Fill:
		return fmt.Sprintf("mlxc_fill_%d", p.Width)
	case Guard:
		return "mlxc_guard"
	}
	return ""
}
