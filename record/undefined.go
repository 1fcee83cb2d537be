package record

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// undefined looks for reads of scratch or output bytes that nothing in the recording wrote
// before, if an output or state depends on them. In a live recording such a command reads
// what an earlier recording left; in a replay it may read anything. A read that happens for
// all values of the params is an error, one that may happen a warning.
func (e *Encoder) undefined(g *ir.Graph) (warnings []string, err error) {
	defer interrupt.Catch(&err)
	e.ready()
	shadow := *g
	shadow.Nodes = make([]ir.Node, len(g.Nodes))
	for i, n := range g.Nodes {
		shadow.Nodes[i] = n
		if d, ok := n.(*ir.Dispatch); ok && msl.Declared(&g.Kernels[d.Kernel]) {
			fx, err := e.cache.Describe(d)
			if err != nil {
				return nil, err
			}
			described := *d
			described.Effects = fx
			shadow.Nodes[i] = &described
		}
	}
	flow := dataflow.Build(e.ctx, &shadow)
	for _, u := range flow.Undefined() {
		command, region := g.Describe(flow.Commands[u.Command]), g.FormatRegion(u.Use.Region)
		if u.Use.Certain {
			return nil, fmt.Errorf("%s reads %s, which nothing in this recording has written before: scratch and outputs begin undefined", command, region)
		}
		warnings = append(warnings, fmt.Sprintf("%s may read bytes of %s that nothing in this recording has written before: the writes before it were not shown to cover all of it", command, region))
	}
	return warnings, nil
}
