package record_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// batch is the number of dispatches of one recording, about as many as a decoded token has.
const batch = 600

// BenchmarkDispatch measures the cost of recording a dispatch: of a kernel with and without
// a declaration, and of an operation. encode-ns leaves out Finish. ns includes it, and so
// the check of the graph or, in a live recording, the execution on the CPU.
func BenchmarkDispatch(b *testing.B) {
	group := [3]uint32{256, 1, 1}
	run := func(name string, with func() []record.Setting, make func(s *record.Session) func(i int)) {
		b.Run(name, func(b *testing.B) {
			s := record.New("t", with()...)
			one := make(s)
			b.ReportAllocs()
			b.ResetTimer()
			encoding := time.Duration(0)
			for n := 0; n < b.N; n += batch {
				start := time.Now()
				for i := range min(batch, b.N-n) {
					one(i)
				}
				encoding += time.Since(start)
				if s.Err() != nil {
					b.Fatal(s.Err())
				}
				if _, err := s.Finish(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(encoding.Nanoseconds())/float64(b.N), "encode-ns/op")
		})
	}
	capture := func() []record.Setting { return nil }
	live := func() []record.Setting { return []record.Setting{record.Live(cpu.New(1))} }
	declared := func(s *record.Session) func(i int) {
		k := s.Function("vv_Addfloat32")
		x := s.State("x", ir.F32, 64, 256)
		var rows []record.Tensor
		for i := range int64(64) {
			rows = append(rows, x.Row(ir.Const(i)))
		}
		grid := record.Size(256)
		return func(i int) {
			s.Dispatch(k).Buffer(0, rows[i%64]).Buffer(1, rows[(i+1)%64]).Buffer(2, rows[(i+2)%64]).Threads(grid, group)
		}
	}
	run("declared", capture, declared)
	run("declared/live", live, declared)
	run("foreign", capture, func(s *record.Session) func(i int) {
		k := s.Kernel(foreign)
		x := s.State("x", ir.F32, 64, 256)
		var rows []record.Tensor
		for i := range int64(64) {
			rows = append(rows, x.Row(ir.Const(i)))
		}
		grid := record.Size(256)
		return func(i int) {
			s.Dispatch(k).Buffer(0, rows[i%64]).Buffer(1, rows[(i+2)%64]).Uint32(2, 256).Reads(rows[i%64]).Writes(rows[(i+2)%64]).Threads(grid, group)
		}
	})
	operations := func(s *record.Session) func(i int) {
		x := s.Input("x", ir.F32, 1, 576)
		y := s.Output("y", ir.F32, 1, 576)
		var w []record.Matrix
		for i := range 8 {
			at := fmt.Sprint(i)
			w = append(w, record.Quantized(record.QTensor{
				W:      s.RandomWeight("w"+at, 1, ir.U32, 576, 576/8),
				Scales: s.RandomWeight("s"+at, 2, ir.F32, 576, 576/32),
				Biases: s.RandomWeight("b"+at, 3, ir.F32, 576, 576/32),
				N:      576, K: 576, Bits: 4, Group: 32,
			}))
		}
		return func(i int) {
			m := s.ScratchMark()
			switch i % 4 {
			case 0:
				s.RMSNorm(x, 1e-5)
			case 1:
				s.Matmul(x, w[i/4%8])
			case 2:
				s.Silu(x)
			default:
				s.Add(x, x, record.Into(y))
			}
			s.ScratchReset(m)
		}
	}
	run("operations", capture, operations)
	run("operations/live", live, operations)
}
