package replay_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// Record a norm of four numbers, replay it.
func Example() {
	r := record.New("norm")
	x := r.Input("x", ir.F32, 4)
	y := r.Output("y", ir.F32, 4)
	r.RMSNorm(x, 0, record.Into(y))
	g, err := r.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}

	device := cpu.New(0)
	defer device.Close()
	s, err := replay.Open(device, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	norm, err := s.Graph(context.Background(), "norm")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := norm.SetInput("x", ir.ValueBytes([]float32{3, -3, 3, 3})); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := norm.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	out, err := norm.Output("y")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 4 {
		fmt.Print(math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])), " ")
	}
	// Output: 1 -1 1 1
}
