// Command train records one training step of a small network with all gradients and the update of
// its parameters, writes it to a file and replays it: the loss decreases. It uses only public
// packages.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/replay"
)

func main() {
	file := flag.String("o", "", "graph `file` to write")
	steps := flag.Int("steps", 100, "steps of gradient descent")
	rate := flag.Float64("rate", 0.0625, "learning rate; a float32")
	flag.Parse()
	if err := run(os.Stdout, *file, *steps, *rate); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, file string, steps int, rate float64) error {
	n := network{batch: 32, inputs: 8, hidden: 64, outputs: 2}
	g, err := n.step(false)
	if err != nil {
		return err
	}
	m := &ir.Module{Graphs: []*ir.Graph{g}}
	if file != "" {
		if err := mlxg.WriteFile(context.Background(), file, m, mlxg.WriteOptions{}); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d commands\n", file, g.Stats().Dispatches)
	}
	return n.train(m, steps, rate, func(i int, loss float32) {
		if i%10 == 0 || i == steps-1 {
			fmt.Fprintf(out, "step %3d  loss %.6f\n", i, loss)
		}
	})
}

// train replays the step on the CPU and calls tell with each loss.
func (n network) train(m *ir.Module, steps int, rate float64, tell func(step int, loss float32)) error {
	device := cpu.New(0)
	defer device.Close()
	s, err := replay.Open(device, m, replay.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	g, err := s.Graph(context.Background(), "step")
	if err != nil {
		return err
	}
	if err := g.SetParam("rate", float64(float32(rate))); err != nil {
		return err
	}
	x, t := n.data()
	if err := errors.Join(g.SetInput("x", ir.ValueBytes(x)), g.SetInput("t", ir.ValueBytes(t))); err != nil {
		return err
	}
	for i := range steps {
		if _, err := g.Run(context.Background()); err != nil {
			return err
		}
		loss, err := g.Output("loss")
		if err != nil {
			return err
		}
		tell(i, get(loss)[0])
	}
	return nil
}

// data returns inputs and targets to learn: sums of sines.
func (n network) data() (x, t []float32) {
	for i := range n.batch {
		row := make([]float32, n.inputs)
		for j := range row {
			row[j] = float32(math.Sin(float64(3*i) + 1.7*float64(j)*float64(i+1)))
		}
		x = append(x, row...)
		for k := range n.outputs {
			sum := 0.0
			for j, v := range row {
				sum += float64(v) * math.Cos(float64(j)+float64(k))
			}
			t = append(t, float32(math.Sin(sum)))
		}
	}
	return x, t
}

func get(src []byte) []float32 {
	out := make([]float32, len(src)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
	return out
}
