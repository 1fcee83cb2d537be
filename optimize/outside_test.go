package optimize_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// leaky is a kernel of the program's own, with its declaration. No device of this
// repository has code for it.
const leaky = `
// @kernel   leaky_relu_float32
// @arg 0 x      device f32[n] read
// @arg 1 y      device f32[n] write
// @arg 2 slope  constant f32
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  y x
// @term     y[i] = round(f32, select(x[i] < 0.0, x[i] * slope, x[i]))
kernel void leaky_relu_float32(const device float* x [[buffer(0)]], device float* y [[buffer(1)]],
    constant float& slope [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  y[i] = x[i] < 0 ? x[i] * slope : x[i];
}
`

// lowering are the options of a pass of the program's own.
type lowering struct{ most int }

// lower makes a generated kernel of each dispatch of leaky_relu_float32, which every device
// can run.
func lower(ctx context.Context, s *passes.State, o lowering) error {
	kernel := ir.KernelID(-1)
	done := 0
	for _, n := range s.Graph.Nodes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d, ok := n.(*ir.Dispatch)
		if !ok || s.Graph.Kernels[d.Kernel].Function != "leaky_relu_float32" {
			continue
		}
		if done++; done > o.most {
			s.Not(d, "%d others are lowered already", o.most)
			continue
		}
		if kernel < 0 {
			k := ir.Kernel{Library: ir.Library{Kind: ir.Generated}, Function: "out0[i] = round(f32, select(in0[i] < 0.0, in0[i] * s0, in0[i]))"}
			ds, err := msl.DeclarationsOf(&k)
			if err != nil {
				return err
			}
			kernel = ir.KernelID(len(s.Graph.Kernels))
			s.Graph.Kernels = append(s.Graph.Kernels, ds[0].Kernel("leaky"))
		}
		d.Kernel = kernel // the slots are the same, and so is the grid
		effects, err := msl.Describe(s.Graph, d)
		if err != nil {
			return err
		}
		d.Effects, d.From = effects, []ir.ID{d.ID}
		s.Did(d, "lowered to a generated kernel")
	}
	return nil
}

// A program outside of this module, with public packages alone: it declares a kernel,
// records a use of it, runs a pass of its own among those of this module, proves the
// result, and replays it.
func Example_outside() {
	if err := msl.Register("leaky.metal", leaky); err != nil {
		log.Fatal(err)
	}
	mine := passes.New(passes.Pass{
		Name: "lower", Summary: "give kernels of ours to devices that do not have them",
		Order: []passes.Constraint{{Before: "lower", After: "fuse", Reason: "what is lowered can be fused"}},
	}, lower, passes.Int("most", 100, 0, 1<<20, "dispatches that are lowered", func(o *lowering) *int { return &o.most }))
	table := append(passes.All(), mine)
	_, err := table.Parse("annotate,fuse,lower")
	fmt.Println(err)
	pipeline, err := table.Parse("annotate,lower{most=8},fuse,dce,barriers")
	if err != nil {
		log.Fatal(err)
	}

	r := record.New("net")
	x, y := r.Input("x", ir.F32, 4), r.Output("y", ir.F32, 4)
	twice, h := r.Add(x, x), r.Scratch(ir.F32, ir.Const(4))
	r.Dispatch(r.Function("leaky_relu_float32")).Buffer(0, twice).Buffer(1, h).Float32(2, 0.25).
		Threads(record.Size(4), [3]uint32{4, 1, 1})
	r.Mul(h, x, record.Into(y))
	recorded, err := r.Graph()
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	for _, sources := range [][]string{nil, {"leaky.metal"}} {
		result, err := optimize.Run(ctx, recorded, optimize.Options{Pipeline: pipeline, Proof: prove.Options{Sources: sources}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Proof.Verdict, result.Proof.Assumptions)
		if result.Proof.Verdict != prove.Proved {
			continue
		}
		for _, row := range result.Rows {
			fmt.Printf("%s: %d dispatches\n", row.Pass, row.After.Dispatches)
		}
		run(ctx, result.Optimized)
	}
	// Output:
	// pass lower must run before fuse: what is lowered can be fused
	// cannot tell []
	// proved [kernels do what leaky.metal declares: leaky_relu_float32]
	// annotate: 3 dispatches
	// lower{most=8}: 3 dispatches
	// fuse: 1 dispatches
	// dce: 1 dispatches
	// barriers: 1 dispatches
	// [8 2 0 18]
}

// run replays a graph of this program on the CPU.
func run(ctx context.Context, g *ir.Graph) {
	device := cpu.New(1)
	defer device.Close()
	s, err := replay.Open(device, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	net, err := s.Graph(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	if err := net.SetInput("x", ir.ValueBytes([]float32{-4, 1, 0, 3})); err != nil {
		log.Fatal(err)
	}
	if _, err := net.Run(ctx); err != nil {
		log.Fatal(err)
	}
	out, err := net.Output("y")
	if err != nil {
		log.Fatal(err)
	}
	var y [4]float32
	for i := range y {
		y[i] = math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:]))
	}
	fmt.Println(y)
}
