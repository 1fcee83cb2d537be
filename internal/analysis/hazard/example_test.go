package hazard_test

import (
	"context"
	"fmt"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// Two fills of different halves, and a copy of one of them.
func ExampleTable() {
	b := ir.NewBuilder("g")
	m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 32})
	b.Fill(ir.ViewOf(m, 0, 16), 1, "")
	b.Fill(ir.ViewOf(m, 16, 8), 2, "")
	b.Copy(ir.ViewOf(m, 24, 8), ir.ViewOf(m, 8, 8), "")
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	t := hazard.NewTable(context.Background(), g)
	levels, depth := t.Levels()
	fmt.Println(levels, depth)
	t.Hazards(func(h hazard.Hazard) {
		fmt.Printf("%d waits for %d: %s on [%d:%d]\n", h.To, h.From, h.Kind, h.Lo, h.End)
	})
	// Output:
	// [0 0 1] 2
	// 2 waits for 0: RAW on [8:16]
}
