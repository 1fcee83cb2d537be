package softmetal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// Kernels that use wide loads on operands that are aligned for them compute the same bits on operands that are not:
// each is dispatched twice, on operands at multiples of 16 bytes and on the same ones 4 bytes further on. The sizes
// leave remainders: partial lanes, partial rows, and partial blocks of what is prefetched.
func TestAlignment(t *testing.T) {
	sample.Long(t)
	ctx := context.Background()
	d, err := softmetal.New(ctx, softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	affine := "0 w: device u32 read, 1 scales: device f32 read, 2 biases: device f32 read, 3 x: device f32 read, 4 y: device f32 write, 5 in_vec_size: constant i32, 6 out_vec_size: constant i32"
	type operand struct {
		name  string
		bytes int
	}
	type dispatch struct {
		kernel, args string
		in           []operand
		out, rest    string
		bytes        int
	}
	product := func(name string, k, n, b int) (string, string, []operand, string, string) {
		return name, affine, []operand{{"w", n * k * b / 8}, {"scales", n * k / 8}, {"biases", n * k / 8}, {"x", 4 * k}}, "y",
			fmt.Sprintf("in_vec_size = %d, out_vec_size = %d) grid threadgroups [1, %d, 1] of [32, 2, 1]", k, n, (n+7)/8)
	}
	gated := "0 w_gate: device u32 read, 1 scales_gate: device f32 read, 2 biases_gate: device f32 read, 3 w_up: device u32 read, 4 scales_up: device f32 read, 5 biases_up: device f32 read, 6 x: device f32 read, 7 y: device f32 write, 8 in_vec_size: constant i32, 9 out_vec_size: constant i32"
	both := func(name string, k, n, b int) (string, string, []operand, string, string) {
		_, _, _, out, rest := product(name, k, n, b)
		w, s := n*k*b/8, n*k/8
		return name, gated, []operand{{"w_gate", w}, {"scales_gate", s}, {"biases_gate", s}, {"w_up", w}, {"scales_up", s}, {"biases_up", s}, {"x", 4 * k}}, out, rest
	}
	dense := func(k int) dispatch {
		return dispatch{"gemv_float16_float32", "0 mat: device f16 read, 1 x: device f32 read, 2 y: device f32 write, 3 K: constant i32, 4 N: constant i32",
			[]operand{{"mat", 2 * k * 13}, {"x", 4 * k}}, "y", fmt.Sprintf("K = %d, N = 13) grid threadgroups [2, 1, 1] of [32, 2, 1]", k), 4 * 13}
	}
	norm := func(name, args string, axis int, more string, operands ...operand) (string, string, []operand, string, string) {
		per := 128
		if len(operands) > 2 {
			per = 256
		}
		group := 32 * ((axis + per - 1) / per)
		return name, args, operands, "out", fmt.Sprintf("eps = 1e-05, axis_size = %d, w_stride = 1%s) grid threadgroups [2, 1, 1] of [%d, 1, 1]", axis, more, group)
	}
	of := func(bytes int) func(kernel, args string, in []operand, out, rest string) dispatch {
		return func(kernel, args string, in []operand, out, rest string) dispatch {
			return dispatch{kernel, args, in, out, rest, bytes}
		}
	}
	rms := "0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32"
	layer := "0 x: device f32 read, 1 w: device f32 read, 2 b: device f32 read, 3 out: device f32 write, 4 eps: constant f32, 5 axis_size: constant u32, 6 w_stride: constant u32, 7 b_stride: constant u32"
	for _, x := range sample.Turns(t, "alignment", []dispatch{
		of(4 * 24)(product("affine_qmv_fast_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", 512*5, 24, 4)),
		of(4 * 24)(product("affine_qmv_fast_float_gs_32_b_8_batch_0_pr_0_hgs_0_r_4", 256*4, 24, 8)),
		of(4 * 16)(product("affine_qmv_fast_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", 512*7, 16, 4)),
		of(4 * 16)(product("affine_qmv_fast_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", 512*10, 16, 4)),
		of(4 * 16)(product("affine_qmv_fast_float_gs_32_b_8_batch_0_pr_0_hgs_0_r_4", 256*12, 16, 8)),
		of(4 * 21)(product("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", 32*37, 21, 4)),
		of(4 * 21)(product("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", 32*53, 21, 4)),
		of(4 * 21)(product("affine_qmv_float_gs_32_b_8_batch_0_pr_0_hgs_0_r_4", 32*19, 21, 8)),
		of(4 * 21)(product("affine_qmv_float_gs_32_b_8_batch_0_pr_0_hgs_0_r_4", 32*29, 21, 8)),
		of(4 * 8)(both("affine_qmv_fast_silu_mul_float_gs_32_b_4", 512*5, 8, 4)),
		of(4 * 11)(both("affine_qmv_silu_mul_float_gs_32_b_4", 32*37, 11, 4)),
		dense(1032), dense(8 * 255), dense(2576), dense(256 * 7),
		of(8 * 602)(norm("rmsfloat32", rms, 602, "", operand{"x", 8 * 602}, operand{"w", 4 * 602})),
		of(8 * 604)(norm("layer_normfloat32", layer, 604, ", b_stride = 1", operand{"x", 8 * 604}, operand{"w", 4 * 604}, operand{"b", 4 * 604})),
	}) {
		t.Run(x.kernel, func(t *testing.T) {
			text := ""
			bind := func(at int) string {
				b := ""
				for _, o := range x.in {
					b += fmt.Sprintf("%s = %%%s%d[%d:%d], ", o.name, o.name, at, at, at+o.bytes)
				}
				return fmt.Sprintf("%s%s = %%out%d[%d:%d], %s", b, x.out, at, at, at+x.bytes, x.rest)
			}
			for _, at := range []int{0, 4} {
				for _, o := range x.in {
					text += fmt.Sprintf("  memory %%%s%d input %d u8[%d]\n", o.name, at, at+o.bytes, at+o.bytes)
				}
				text += fmt.Sprintf("  memory %%out%d output %d u8[%d]\n", at, at+x.bytes, at+x.bytes)
			}
			text = fmt.Sprintf("mlxt 1\n\ngraph g {\n%s\n  kernel @k builtin %q args(%s)\n\n  #0 @k (%s\n  #1 @k (%s\n}\n", text, x.kernel, x.args, bind(0), bind(4))
			m, err := mlxt.Parse(ctx, "aligned", []byte(text))
			require.NoError(t, err, text)
			g := m.Graphs[0]
			q, err := d.NewQueue()
			require.NoError(t, err)
			defer q.Close()
			random := rand.New(rand.NewPCG(1, 2))
			data := map[string][]byte{}
			for _, o := range x.in {
				b := make([]byte, o.bytes)
				for i := range b {
					b[i] = byte(random.Uint32())
				}
				for i := 3; o.name != "w" && i < len(b) || x.out == "out" && i < len(b); i += 4 {
					b[i], b[i-2] = 0x3e+b[i]&0x80, 0x2e&b[i-2] // finite values near 1, as floats and as halves
				}
				data[o.name] = b
			}
			places := make([]backend.Place, len(g.Memories))
			for i := range g.Memories {
				buffer, err := backend.AllocMemory(ctx, d, q, &g.Memories[i])
				require.NoError(t, err)
				defer buffer.Close()
				places[i] = backend.At(buffer)
				if name := g.Memories[i].Name; g.Memories[i].Kind == ir.Input {
					at := int(name[len(name)-1] - '0')
					require.NoError(t, backend.Wait(ctx)(q.Upload(ctx, places[i], append(make([]byte, at), data[name[:len(name)-1]]...))))
				}
			}
			e, err := d.Compile(ctx, &backend.Program{Graph: g, Places: places})
			require.NoError(t, err)
			defer e.Close()
			f, err := e.NewFrame(backend.FrameSpec{})
			require.NoError(t, err)
			defer f.Close()
			p, err := q.Submit(ctx, backend.Submission{Executable: e, Frame: f})
			require.NoError(t, err)
			require.NoError(t, p.Wait(ctx))
			var out [2][]byte
			for i := range g.Memories {
				if g.Memories[i].Kind != ir.Output {
					continue
				}
				at := int(g.Memories[i].Size) - x.bytes
				got := make([]byte, at+x.bytes)
				require.NoError(t, backend.Wait(ctx)(q.Download(ctx, got, places[i])))
				out[at/4] = got[at:]
			}
			assert.Equal(t, out[0], out[1])
			assert.NotContains(t, string(out[0]), "\x00\x00\xc0\x7f", "results are numbers")
			assert.NotEqual(t, make([]byte, x.bytes), out[0])
		})
	}
}
