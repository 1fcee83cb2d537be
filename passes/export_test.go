package passes

import (
	"context"

	"github.com/mlxc/mlxc/ir"
)

// RunAlone runs one pass without a report, for benchmarks: no checks, no
// statistics, no remarks.
func RunAlone(name string, g *ir.Graph, v Values) error {
	p, _ := lookup(name)
	return p.run(context.Background(), g, v, nil)
}
