package routes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/ir"
)

// affineOf returns a matrix of n rows of k codes of 4 bits in groups of 64, or of k rows of n if it is not transposed.
func affineOf(n, k int64, transposed bool, batch ...int64) Matrix {
	rows, width := n, k
	if !transposed {
		rows, width = k, n
	}
	of := func(name string, t ir.DType, per int64) Array {
		return operandOf(name, t, sizes(append(append([]int64(nil), batch...), rows, per)...)...)
	}
	return Matrix{
		Codes: of("w", ir.U32, width/8), Scales: of("scales", ir.F16, width/64), Biases: of("biases", ir.F16, width/64),
		Affine: Affine{4, 64}, Transposed: transposed,
	}
}

// sentText writes a message: kernel, grid, threadgroup, what each slot is bound to.
func sentText(d Dispatch) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s (%d,%d,%d) (%d,%d,%d)", d.Kernel, d.Grid[0].Eval(nil), d.Grid[1].Eval(nil), d.Grid[2].Eval(nil),
		d.Group[0], d.Group[1], d.Group[2])
	for i, a := range d.Arguments {
		if a.Slot != i {
			fmt.Fprintf(&s, " !%d", a.Slot)
		}
		switch {
		case a.Buffer == nil:
			s.WriteString(" [")
			for i, v := range a.Values {
				if i > 0 {
					s.WriteString(" ")
				}
				fmt.Fprintf(&s, "%d", v.Value.Const)
			}
			s.WriteString("]")
		case a.Buffer.Name == "":
			s.WriteString(" y")
		default:
			s.WriteString(" " + a.Buffer.Name)
		}
	}
	return s.String()
}

// The routes of MLX's quantized.cpp at da691257, each limit from both sides.
func TestRoutesOfAugust2024(t *testing.T) {
	for _, c := range []struct {
		rows, n, k int64
		transposed bool
		want       string
	}{
		{5, 64, 512, true, "qmv_fast_float16_t_gs_64_b_4 (8,5,1) (32,2,1) w scales biases x y [512] [64]"},
		{5, 60, 512, true, "qmv_float16_t_gs_64_b_4 (8,5,1) (32,2,1) w scales biases x y [512] [60]"},
		{1, 64, 576, true, "qmv_float16_t_gs_64_b_4 (8,1,1) (32,2,1) w scales biases x y [576] [64]"},
		{6, 64, 512, true, "qmm_t_float16_t_gs_64_b_4_alN_true (2,1,1) (32,2,2) x w scales biases y [6] [64] [512]"},
		{33, 60, 512, true, "qmm_t_float16_t_gs_64_b_4_alN_false (2,2,1) (32,2,2) x w scales biases y [33] [60] [512]"},
		{3, 128, 96, false, "qvm_float16_t_gs_64_b_4 (2,3,1) (32,2,1) x w scales biases y [96] [128]"},
		{4, 128, 96, false, "qmm_n_float16_t_gs_64_b_4 (4,1,1) (32,2,2) x w scales biases y [4] [128] [96]"},
	} {
		e := &Encoder{Version: August2024}
		e.QuantizedMatmul(operandOf("x", ir.F16, ir.Const(c.rows), ir.Const(c.k)), affineOf(c.n, c.k, c.transposed))
		if e.Err != nil || len(e.Sent) != 1 || sentText(e.Sent[0]) != c.want {
			t.Errorf("%v\ngot  %v\nwant %s", e.Err, sentText(e.Sent[0]), c.want)
		}
	}
	// Indices under strides, and a batch of two dimensions.
	e := &Encoder{Version: August2024}
	lhs := operandOf("lhs", ir.U32, sizes(3, 2)...)
	lhs.Strides = sizes(1, 0)
	e.GatherQMM(operandOf("x", ir.F16, sizes(3, 1, 512)...), affineOf(64, 512, true, 7), lhs, operandOf("rhs", ir.U32, sizes(3, 2)...), true)
	want := "bs_qmv_fast_float16_t_gs_64_b_4 (8,1,6) (32,2,1) w scales biases x lhs rhs y [512] [64]" +
		" [2] [3 2] [1 0] [2 1] [1] [3 1 512] [512 512 1] [1] [7 64 64] [4096 64 1] [512 8 1] [512 8 1]"
	if e.Err != nil || len(e.Sent) != 1 || sentText(e.Sent[0]) != want {
		t.Errorf("%v\ngot  %v\nwant %s", e.Err, sentText(e.Sent[0]), want)
	}
	e = &Encoder{Version: August2024}
	m := affineOf(64, 96, false)
	m.Codes.Shape, m.Scales.Shape, m.Biases.Shape = sizes(96, 10), sizes(96, 5), sizes(96, 5)
	m.Bits, m.Group = 4, 16
	e.QuantizedMatmul(operandOf("x", ir.F16, sizes(4, 96)...), m)
	if e.Err == nil || !strings.Contains(e.Err.Error(), "divisible by 32 but received 80") {
		t.Errorf("80 columns: %v", e.Err)
	}
	e = &Encoder{Version: August2024}
	e.Quantize(operandOf("w", ir.F16, sizes(4, 64)...), Affine{3, 64})
	if e.Err == nil || !strings.Contains(e.Err.Error(), "codes of 3 bits") {
		t.Errorf("3 bits: %v", e.Err)
	}
	// Two dimensions past 2³²−1 threads, and a threadgroup of no more threads than there are.
	e = &Encoder{Version: August2024}
	e.Quantize(operandOf("w", ir.F32, sizes(1<<20, 1<<14)...), Affine{4, 64})
	e.Quantize(operandOf("w", ir.F32, sizes(3, 64)...), Affine{4, 64})
	e.QuantizeAs(operandOf("w", ir.F32, sizes(3, 64)...), operandOf("scales", ir.F32, sizes(3, 1)...), operandOf("biases", ir.F32, sizes(3, 1)...), Affine{4, 64})
	e.Dequantize(affineOf(3, 64, true))
	for i, want := range []string{
		"affine_quantize_float_gs_64_b_4 (1048576,8192,1) (1024,1,1) w y y y",
		"affine_quantize_float_gs_64_b_4 (96,1,1) (96,1,1) w y y y",
		"affine_quantize_scales_biases_float_gs_64_b_4 (96,1,1) (96,1,1) w scales biases y",
		"affine_dequantize_float16_t_gs_64_b_4 (96,1,1) (96,1,1) w scales biases y",
	} {
		if e.Err != nil || sentText(e.Sent[i]) != want {
			t.Errorf("%v\ngot  %v\nwant %s", e.Err, sentText(e.Sent[i]), want)
		}
	}
}

// Every quantized kernel of August 2024 is in the library of 0.16.3, and gets the arguments that it wants.
func TestLibraryOf2024(t *testing.T) {
	kernels, library := released(t, "0.16.3"), metallibs.Open(t, "0.16.3")
	right := map[string]bool{}
	for _, c := range read(t) {
		switch c.Op {
		case "quantized_matmul", "gather_qmm", "quantize", "dequantize":
		default:
			continue
		}
		if !seedBits[c.Bits] || c.Error != "" || c.Group == 0 {
			continue
		}
		e := &Encoder{Version: August2024}
		operations[c.Op](e, &c)
		if e.Err != nil {
			if !strings.Contains(e.Err.Error(), "divisible by 32") {
				t.Error(e.Err)
			}
			continue
		}
		for _, d := range e.Sent {
			if strings.Contains(d.Kernel, "copy") || strings.HasPrefix(d.Kernel, "arange") {
				continue
			}
			slots, ok := kernels[d.Kernel]
			if !ok { // the table has a part of the library's kernels
				slots, ok = described(library, d.Kernel)
				kernels[d.Kernel] = slots
			}
			if !ok {
				t.Errorf("%s is not in the library", d.Kernel)
			} else if problem := d.fits(slots); problem != "" {
				t.Errorf("%s: %s", d.Kernel, problem)
			}
			right[d.Kernel] = true
		}
	}
	if len(right) < 100 {
		t.Errorf("%d kernels of 0.16.3", len(right))
	}
}
