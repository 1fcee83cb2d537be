package dataflow_test

import (
	"context"
	"fmt"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/ir"
)

// A scratch value is filled, half of it is overwritten, and all of it is copied to an
// output.
func Example() {
	b := ir.NewBuilder("g")
	t := b.Memory(ir.Memory{Name: "t", Kind: ir.Scratch, Size: 32})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 32})
	b.Fill(ir.ViewOf(t, 0, 32), 1, "")
	b.Fill(ir.ViewOf(t, 16, 16), 2, "")
	b.Copy(ir.ViewOf(y, 0, 32), ir.ViewOf(t, 0, 32), "")
	f := dataflow.Build(context.Background(), b.Unfinished())
	for _, s := range f.Reads(2)[0].Sources {
		fmt.Println("command", s.Command, "write", s.Write, "whole", s.Whole)
	}
	_, depth := f.Levels()
	fmt.Println("depth∞", depth)
	// Output:
	// command 0 write 0 whole true
	// command 1 write 0 whole false
	// depth∞ 2
}
