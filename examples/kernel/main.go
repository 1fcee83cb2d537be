// Command kernel adds a kernel to the library from outside: a Metal source with its declaration,
// its twin for the CPU, and a golden result. It records an addition and an L2 norm. The passes,
// which know the new kernel by its declaration alone, replace the two by one dispatch, which is
// proved and has equal bits. It uses only public packages.
package main

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
)

//go:embed add_l2_norm.metal
var source string

func init() {
	if err := msl.Register("add_l2_norm.metal", source); err != nil {
		panic(err)
	}
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kernel:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	plain, err := norms("annotate,barriers", out)
	if err != nil {
		return err
	}
	fused, err := norms("annotate,fuse,dce,barriers", out)
	if err != nil {
		return err
	}
	for i := range plain {
		if math.Float32bits(plain[i]) != math.Float32bits(fused[i]) {
			return fmt.Errorf("result %d is %v by two dispatches and %v by one", i, plain[i], fused[i])
		}
	}
	fmt.Fprintf(out, "%d results, equal to the bit\n", len(plain))
	return nil
}

// norms records the residual of two matrices and its L2 norm, runs them after the given
// passes, and returns both results.
func norms(passes string, out io.Writer) ([]float32, error) {
	const rows, columns = 5, 576
	d := cpu.New(0)
	defer d.Close()
	s := record.New("norms", record.Deferred(d))
	defer s.Close()
	a, b := s.State("a", ir.F32, rows, columns), s.State("b", ir.F32, rows, columns)
	sum, norm := s.Output("sum", ir.F32, rows, columns), s.Output("norm", ir.F32, rows, columns)
	for k, t := range []record.Tensor{a, b} {
		data, err := s.Bytes(t)
		if err != nil {
			return nil, err
		}
		for i := range rows * columns {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(math.Sin(float64(i*(k+1))))))
		}
	}
	s.Add(a, b, record.Into(sum))
	s.Dispatch(s.Function("l2_norm_float32")).Buffer(0, sum).Buffer(1, norm).Float32(2, 1e-6).Uint32(3, columns).
		Threadgroups(record.Size(rows), [3]uint32{192, 1, 1})
	o := optimize.New(passes)
	o.Options.Proof.Sources = []string{"add_l2_norm.metal"}
	if _, err := s.Finish(record.Optimize(o)); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%s: %s, %d dispatches\n", passes, o.Result.Proof.Verdict, o.Result.After.Dispatches)
	var results []float32
	for _, t := range []record.Tensor{sum, norm} {
		data, err := s.Bytes(t)
		if err != nil {
			return nil, err
		}
		for i := range rows * columns {
			results = append(results, math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		}
	}
	return results, nil
}
