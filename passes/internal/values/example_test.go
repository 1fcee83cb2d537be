package values_test

import (
	"context"
	"fmt"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes/internal/values"
)

// Two values share sixteen bytes; the second one moves to the sixteen after them.
func Example() {
	b := ir.NewBuilder("g")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 32})
	t := b.Memory(ir.Memory{Name: "t", Kind: ir.Scratch, Size: 32})
	for i := range int64(2) {
		b.Fill(ir.ViewOf(t, 0, 16), byte(i), "")
		b.Copy(ir.ViewOf(y, 16*i, 16), ir.ViewOf(t, 0, 16), "")
	}
	g := b.Unfinished()
	s := values.Build(context.Background(), dataflow.Build(context.Background(), g))
	_, before := hazard.NewTable(context.Background(), g).Levels()
	s.Move(&s.Webs[1], t, 16)
	_, after := hazard.NewTable(context.Background(), g).Levels()
	fmt.Println(len(s.Webs), "values, depth", before, "then", after)
	// Output:
	// 2 values, depth 4 then 2
}
