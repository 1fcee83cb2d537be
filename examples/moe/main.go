// Command moe records one layer of a mixture of experts, writes it to a file and replays that file
// on the CPU.
//
//	go run ./examples/moe -o moe.mlxg
//
// The layer is like those of Mixtral: a norm, a router that picks 2 of 8 experts for each token,
// their gated feed-forward layers with quantized weights, and the sum of their results. layer.go
// records it. To compare, plain.go computes it a second time without this module. The weights are
// random.
//
// It uses only public packages: record, ir, ir/mlxg, replay and backend/cpu.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/replay"
)

func main() {
	output := flag.String("o", "moe.mlxg", "graph `file` to write")
	seed := flag.Uint64("seed", 1, "of the weights and of the input")
	flag.Parse()
	if err := run(os.Stdout, *output, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "moe:", err)
		os.Exit(1)
	}
}

// tolerance is how far a replay may differ from the plain computation, whose values are about 1:
// they are sums of 256 products in f32.
const tolerance = 1e-4

func run(w io.Writer, path string, seed uint64) error {
	layer := newWeights(seed)
	g, err := recordLayer(layer)
	if err != nil {
		return err
	}
	if err := mlxg.WriteFile(context.Background(), path, &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(w, "wrote %s: %d dispatches\n", path, g.Stats().Dispatches)

	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, tokens*width)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	got, err := replayFile(path, x)
	if err != nil {
		return err
	}
	worst := 0.0
	for i, want := range compute(layer, x) {
		if d := math.Abs(float64(got[i]) - want); !(d <= worst) {
			worst = d // this is also true for NaN
		}
	}
	fmt.Fprintf(w, "the replay is within %.1e of the plain computation\n", worst)
	if !(worst <= tolerance) {
		return fmt.Errorf("replay and plain computation differ by %v, more than %v", worst, tolerance)
	}
	return nil
}

// replayFile opens a graph file, runs its first graph once with x as its input
// %x, and returns the output %y.
func replayFile(path string, x []float32) (y []float32, err error) {
	f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	device := cpu.New(0)
	defer device.Close()
	s, err := replay.Open(device, f.Module, replay.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := s.Graph(context.Background(), "")
	if err != nil {
		return nil, err
	}
	if err := p.SetInput("x", floats(x)); err != nil {
		return nil, err
	}
	if _, err := p.Run(context.Background()); err != nil {
		return nil, err
	}
	b, err := p.Output("y")
	for ; len(b) > 0; b = b[4:] {
		y = append(y, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return y, err
}
