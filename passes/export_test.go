package passes

import (
	"context"

	"github.com/mlxc/mlxc/ir"
)

// RunAlone runs one pass without a report, for benchmarks: no checks, no
// statistics, no remarks.
func RunAlone(name string, g *ir.Graph) error {
	p, _ := builtin.lookup(name)
	run, err := p.bind(&source{run: &Options{}})
	if err != nil {
		return err
	}
	return run(context.Background(), &State{Graph: g})
}
