//go:build unix

package softmetal_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// measured pairs a dispatch with the same computation as plain C loops.
type measured struct {
	name string
	// kernel is a function of our library if ours is set, otherwise one that only MLX's library has. constants and
	// args are its function constants and arguments, in the syntax of a graph's text.
	kernel, constants, args string
	ours                    bool
	bind                    string // arguments and grid of the dispatch
	work                    float64
	unit                    string // what work counts in billions
	loop                    string // statements over the arrays of scalarProgram
}

// The memories of the graph, which are also arrays of the C program: x and y have 2M floats, w 4M, q 2M words of
// 4-bit codes, s and t 256K floats.
const measuredMemories = `
  memory %x input 8388608 f32[2097152]
  memory %y output 8388608 f32[2097152]
  memory %w weight 67108864 f32[16777216] = random seed 1
  memory %q weight 8388608 u32[2097152] = random seed 6
  memory %s weight 1048576 f32[262144] = random seed 13
  memory %t weight 1048576 f32[262144] = random seed 14
  memory %n weight 4 i32[1] = fill 0x00
`

const scalarProgram = `
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return 1e9 * t.tv_sec + t.tv_nsec; }
static float x[1 << 21], y[1 << 21], w[1 << 24], s[1 << 18], t[1 << 18], z[1 << 21];
static uint32_t q[1 << 21];
static int compare(const void *a, const void *b) { float l = *(const float *)a, r = *(const float *)b; return (l > r) - (l < r); }
%s
static void (*const loops[])(void) = {%s};
int main(int argc, char **argv) {
	for (int i = 0; i < 1 << 21; i++) x[i] = (float)(rand() %% 1000) / 500 - 1, q[i] = (uint32_t)rand();
	for (int i = 0; i < 1 << 24; i++) w[i] = (float)(rand() %% 1000) / 500 - 1;
	for (int i = 0; i < 1 << 18; i++) s[i] = t[i] = 0.01f;
	void (*f)(void) = loops[atoi(argv[1])];
	double least = 1e300;
	for (int i = 0; i < 5; i++) { double a = now(); f(); a = now() - a; if (a < least) least = a; }
	printf("%%.0f %%g\n", least, y[7]);
}
`

var measuredKernels = []measured{
	{
		name: "rms_norm", ours: true, kernel: "rmsfloat32",
		args: "0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32",
		bind: "(x = %x[0:8388608], w = %w[0:16384], out = %y[0:8388608], eps = 1e-05, axis_size = 4096, w_stride = 1) grid threads [524288, 1, 1] of [1024, 1, 1]",
		work: 16.8e6, unit: "B",
		loop: `for (int r = 0; r < 512; r++) {
			float sum = 0;
			for (int i = 0; i < 4096; i++) sum += x[r * 4096 + i] * x[r * 4096 + i];
			float inv = 1 / sqrtf(sum / 4096 + 1e-5f);
			for (int i = 0; i < 4096; i++) y[r * 4096 + i] = w[i] * (x[r * 4096 + i] * inv);
		}`,
	},
	{
		name: "layer_norm", ours: true, kernel: "layer_normfloat32",
		args: "0 x: device f32 read, 1 w: device f32 read, 2 b: device f32 read, 3 out: device f32 write, 4 eps: constant f32, 5 axis_size: constant u32, 6 w_stride: constant u32, 7 b_stride: constant u32",
		bind: "(x = %x[0:8388608], w = %w[0:16384], b = %s[0:16384], out = %y[0:8388608], eps = 1e-05, axis_size = 4096, w_stride = 1, b_stride = 1) grid threads [262144, 1, 1] of [512, 1, 1]",
		work: 16.8e6, unit: "B",
		loop: `for (int r = 0; r < 512; r++) {
			const float *a = x + r * 4096;
			float sum = 0, square = 0;
			for (int i = 0; i < 4096; i++) sum += a[i];
			float mean = sum / 4096;
			for (int i = 0; i < 4096; i++) square += (a[i] - mean) * (a[i] - mean);
			float inv = 1 / sqrtf(square / 4096 + 1e-5f);
			for (int i = 0; i < 4096; i++) y[r * 4096 + i] = w[i] * ((a[i] - mean) * inv) + s[i];
		}`,
	},
	{
		name: "softmax", ours: true, kernel: "block_softmax_float32",
		args: "0 in: device f32 read, 1 out: device f32 write, 2 axis_size: constant i32",
		bind: "(in = %x[0:8388608], out = %y[0:8388608], axis_size = 4096) grid threads [524288, 1, 1] of [1024, 1, 1]",
		work: 16.8e6, unit: "B",
		loop: `for (int r = 0; r < 512; r++) {
			const float *a = x + r * 4096;
			float most = -INFINITY, sum = 0;
			for (int i = 0; i < 4096; i++) if (a[i] > most) most = a[i];
			for (int i = 0; i < 4096; i++) sum += y[r * 4096 + i] = expf(a[i] - most);
			for (int i = 0; i < 4096; i++) y[r * 4096 + i] /= sum;
		}`,
	},
	{
		name: "rope", ours: true, kernel: "rope_float32", constants: "constants(1 forward: bool true, 2 traditional: bool true, 3 hs_transpose: bool false) ",
		args: "0 in: device f32 read, 1 out: device f32 write, 2 offset: device i32 read, 3 scale: constant f32, 4 strides: constant i64[3], 5 out_strides: constant i64[3], 6 offset_stride: constant i64, 7 n_head: constant i32, 10 base: constant f32",
		bind: "(in = %x[0:8388608], out = %y[0:8388608], offset = %n[0:4], scale = 1.0, strides = [65536, 64, 1], out_strides = [65536, 64, 1], offset_stride = 0, n_head = 32, base = 13.28771) grid threads [32, 1024, 8] of [32, 8, 1]",
		work: 16.8e6, unit: "B",
		loop: `for (int h = 0; h < 32; h++) for (int p = 0; p < 1024; p++) for (int i = 0; i < 32; i++) {
			float theta = p * exp2f(-(float)i / 32 * 13.28771f), a = cosf(theta), b = sinf(theta);
			const float *in = x + (h * 1024 + p) * 64 + 2 * i;
			float *out = y + (h * 1024 + p) * 64 + 2 * i;
			out[0] = in[0] * a - in[1] * b, out[1] = in[0] * b + in[1] * a;
		}`,
	},
	{
		name: "attention, one token", ours: true, kernel: "sdpa_vector_float_64_64",
		constants: "constants(20 has_mask: bool false, 21 query_transposed: bool false, 22 do_causal: bool false, 23 bool_mask: bool false, 24 float_mask: bool false, 25 has_sinks: bool false) ",
		args:      "0 queries: device f32 read, 1 keys: device f32 read, 2 values: device f32 read, 3 out: device f32 write, 4 gqa_factor: constant i32, 5 N: constant i32, 6 k_head_stride: constant u64, 7 k_seq_stride: constant u64, 8 v_head_stride: constant u64, 9 v_seq_stride: constant u64, 10 scale: constant f32",
		bind:      "(queries = %s[0:8192], keys = %w[0:8388608], values = %w[8388608:16777216], out = %y[0:8192], gqa_factor = 1, N = 1024, k_head_stride = 65536, k_seq_stride = 64, v_head_stride = 65536, v_seq_stride = 64, scale = 0.125) grid threadgroups [32, 1, 1] of [1024, 1, 1]",
		work:      16.8e6, unit: "B",
		loop: `for (int h = 0; h < 32; h++) {
			const float *k = w + h * 65536, *v = w + (1 << 21) + h * 65536;
			float most = -INFINITY, sum = 0;
			for (int i = 0; i < 1024; i++) {
				float dot = 0;
				for (int d = 0; d < 64; d++) dot += s[h * 64 + d] * k[i * 64 + d];
				z[i] = dot * 0.125f;
				if (z[i] > most) most = z[i];
			}
			for (int d = 0; d < 64; d++) y[h * 64 + d] = 0;
			for (int i = 0; i < 1024; i++) {
				float p = expf(z[i] - most);
				sum += p;
				for (int d = 0; d < 64; d++) y[h * 64 + d] += p * v[i * 64 + d];
			}
			for (int d = 0; d < 64; d++) y[h * 64 + d] /= sum;
		}`,
	},
	{
		name: "matrix × vector, float", ours: true, kernel: "gemv_float32_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0",
		args: "0 mat: device f32 read, 1 in_vec: device f32 read, 3 out_vec: device f32 write, 4 in_vec_size: constant i32, 5 out_vec_size: constant i32, 6 marix_ld: constant i32, 11 vector_batch_stride: constant i64, 12 matrix_batch_stride: constant i64",
		bind: "(mat = %w[0:67108864], in_vec = %s[0:16384], out_vec = %y[0:16384], in_vec_size = 4096, out_vec_size = 4096, marix_ld = 4096, vector_batch_stride = 0, matrix_batch_stride = 0) grid threadgroups [256, 1, 1] of [32, 1, 4]",
		work: 67.1e6, unit: "B",
		loop: `for (int r = 0; r < 4096; r++) {
			float sum = 0;
			for (int i = 0; i < 4096; i++) sum += w[r * 4096 + i] * s[i];
			y[r] = sum;
		}`,
	},
	{
		name: "matrix × vector, 4-bit", ours: true, kernel: "affine_qmv_fast_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4",
		args: "0 w: device u32 read, 1 scales: device f32 read, 2 biases: device f32 read, 3 x: device f32 read, 4 y: device f32 write, 5 in_vec_size: constant i32, 6 out_vec_size: constant i32",
		bind: "(w = %q[0:8388608], scales = %s[0:1048576], biases = %t[0:1048576], x = %x[0:16384], y = %y[0:16384], in_vec_size = 4096, out_vec_size = 4096) grid threadgroups [1, 512, 1] of [32, 2, 1]",
		work: 10.5e6, unit: "B",
		loop: `for (int r = 0; r < 4096; r++) {
			float sum = 0;
			for (int g = 0; g < 64; g++) {
				float dot = 0, all = 0;
				for (int k = 0; k < 64; k++) {
					int at = g * 64 + k;
					dot += x[at] * (float)(q[(r * 4096 + at) / 8] >> 4 * (at % 8) & 15);
					all += x[at];
				}
				sum += s[r * 64 + g] * dot + t[r * 64 + g] * all;
			}
			y[r] = sum;
		}`,
	},
	{
		name: "matrix × matrix, 4-bit", ours: true, kernel: "affine_qmm_t_float_gs_64_b_4_alN_true_batch_0",
		args: "0 w: device u32 read, 1 scales: device f32 read, 2 biases: device f32 read, 3 x: device f32 read, 4 y: device f32 write, 5 K: constant i32, 6 N: constant i32, 7 M: constant i32",
		bind: "(w = %q[0:524288], scales = %s[0:65536], biases = %t[0:65536], x = %x[0:262144], y = %y[0:262144], K = 1024, N = 1024, M = 64) grid threadgroups [32, 2, 1] of [32, 2, 2]",
		work: 134e6, unit: "flop",
		loop: `for (int m = 0; m < 64; m++) for (int n = 0; n < 1024; n++) {
			float sum = 0;
			for (int k = 0; k < 1024; k++) sum += x[m * 1024 + k] * (s[n * 16 + k / 64] * (float)(q[(n * 1024 + k) / 8] >> 4 * (k % 8) & 15) + t[n * 16 + k / 64]);
			y[m * 1024 + n] = sum;
		}`,
	},
	{
		name: "add", ours: true, kernel: "vv_Addfloat32",
		args: "0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write",
		bind: "(a = %x[0:8388608], b = %w[0:8388608], c = %y[0:8388608]) grid threads [2097152, 1, 1] of [1024, 1, 1]",
		work: 25.2e6, unit: "B",
		loop: `for (int i = 0; i < 1 << 21; i++) y[i] = x[i] + w[i];`,
	},
	{
		name: "transpose", kernel: "g2_copyfloat32float32",
		args: "0 src: device f32 read, 1 dst: device f32 readwrite, 3 src_strides: constant i64[]",
		bind: "(src = %x[0:8388608], dst = %y[0:8388608], src_strides = [1, 2048]) grid threads [1024, 2048, 1] of [32, 32, 1]",
		work: 16.8e6, unit: "B",
		loop: `for (int i = 0; i < 2048; i++) for (int k = 0; k < 1024; k++) y[i * 1024 + k] = x[k * 2048 + i];`,
	},
	{
		name: "sum of rows", kernel: "row_reduce_simple_sumfloat32",
		args: "0 in: device f32 read, 1 out: device f32 readwrite, 2 reduction_size: constant u64, 3 out_size: constant i64",
		bind: "(in = %x[0:8388608], out = %y[0:2048], reduction_size = 4096, out_size = 512) grid threadgroups [1, 128, 1] of [1024, 1, 1]",
		work: 8.4e6, unit: "B",
		loop: `for (int r = 0; r < 512; r++) {
			float sum = 0;
			for (int i = 0; i < 4096; i++) sum += x[r * 4096 + i];
			y[r] = sum;
		}`,
	},
	{
		name: "cumulative sum", kernel: "contig_scan_inclusive_sum_float32_float32",
		args: "0 in: device f32 read, 1 out: device f32 readwrite, 2 axis_size: constant u64",
		bind: "(in = %x[0:8388608], out = %y[0:8388608], axis_size = 4096) grid threadgroups [1, 512, 1] of [1024, 1, 1]",
		work: 16.8e6, unit: "B",
		loop: `for (int r = 0; r < 512; r++) {
			float sum = 0;
			for (int i = 0; i < 4096; i++) y[r * 4096 + i] = sum += x[r * 4096 + i];
		}`,
	},
	{
		name: "sort", kernel: "c_block_sort_float32_float32_bn256_tn4",
		args: "0 inp: device f32 read, 1 out: device f32 readwrite, 2 size_sorted_axis: constant i32, 3 in_stride_sorted_axis: constant i32, 4 out_stride_sorted_axis: constant i32, 5 in_stride_segment_axis: constant i32, 6 out_stride_segment_axis: constant i32",
		bind: "(inp = %x[0:1048576], out = %y[0:1048576], size_sorted_axis = 1024, in_stride_sorted_axis = 1, out_stride_sorted_axis = 1, in_stride_segment_axis = 1024, out_stride_segment_axis = 1024) grid threadgroups [1, 256, 1] of [256, 1, 1]",
		work: 262144, unit: "elements",
		loop: `memcpy(y, x, 1 << 20);
		for (int r = 0; r < 256; r++) qsort(y + r * 1024, 1024, 4, compare);`,
	},
	{
		name: "matrix × matrix, float", kernel: "steel_gemm_fused_nn_float32_float32_bm64_bn64_bk16_wm2_wn2",
		constants: "constants(10 has_batch: bool false, 100 use_out_source: bool false, 110 do_axpby: bool false, 200 align_M: bool true, 201 align_N: bool true, 202 align_K: bool true) ",
		args:      "0 A: device f32 read, 1 B: device f32 read, 3 D: device f32 readwrite, 4 params: constant u32[], 6 batch_shape: constant i32[], 7 batch_strides: constant i64[]",
		// GEMMParams: M, N, K, lda, ldb, ldd, tiles of N and M, three strides of batches,
		// swizzle, iterations of K, dimensions of a batch.
		bind: "(A = %w[0:1048576], B = %w[1048576:2097152], D = %y[0:1048576], params = [512, 512, 512, 512, 512, 512, 8, 8, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], batch_shape = [1], batch_strides = [0, 0]) grid threadgroups [8, 8, 1] of [32, 2, 2]",
		work: 268e6, unit: "flop",
		loop: `for (int m = 0; m < 512; m++) for (int n = 0; n < 512; n++) {
			float sum = 0;
			for (int k = 0; k < 512; k++) sum += w[m * 512 + k] * w[262144 + k * 512 + n];
			y[m * 512 + n] = sum;
		}`,
	},
	{
		name: "attention, 128 tokens", kernel: "steel_attention_float32_bq32_bk32_bd64_bv64_wm4_wn1_maskbool_",
		constants: "constants(200 align_Q: bool true, 201 align_K: bool true, 300 has_mask: bool false, 301 do_causal: bool false, 302 has_sinks: bool false, 303 save_lse: bool false) ",
		args:      "0 Q: device f32 read, 1 K: device f32 read, 2 V: device f32 read, 3 O: device f32 readwrite, 4 params: constant u32[]",
		// AttnParams: B, H, D, qL, kL, gqa_factor, scale, NQ, NK, both aligned, both remainders,
		// qL_off, then three strides each of Q, K, V and O.
		bind: "(Q = %s[0:262144], K = %w[0:1048576], V = %w[1048576:2097152], O = %y[0:262144], params = [1, 8, 64, 128, 512, 1, 0x3e000000, 4, 16, 4, 16, 0, 0, 0, 65536, 0, 8192, 0, 64, 0, 262144, 0, 32768, 0, 64, 0, 262144, 0, 32768, 0, 64, 0, 65536, 0, 8192, 0, 64, 0]) grid threadgroups [4, 8, 1] of [32, 4, 1]",
		work: 134e6, unit: "flop",
		loop: `for (int h = 0; h < 8; h++) for (int m = 0; m < 128; m++) {
			const float *a = s + (h * 128 + m) * 64, *k = w + h * 32768, *v = w + 262144 + h * 32768;
			float most = -INFINITY, sum = 0, *o = y + (h * 128 + m) * 64;
			for (int i = 0; i < 512; i++) {
				float dot = 0;
				for (int d = 0; d < 64; d++) dot += a[d] * k[i * 64 + d];
				z[i] = dot * 0.125f;
				if (z[i] > most) most = z[i];
			}
			for (int d = 0; d < 64; d++) o[d] = 0;
			for (int i = 0; i < 512; i++) {
				float p = expf(z[i] - most);
				sum += p;
				for (int d = 0; d < 64; d++) o[d] += p * v[i * 64 + d];
			}
			for (int d = 0; d < 64; d++) o[d] /= sum;
		}`,
	},
}

// scalar compiles the C loops, without vectorization. It returns a function that runs a loop several times and
// returns its shortest time.
func scalar(b *testing.B) func(i int) time.Duration {
	ctx := context.Background()
	c, err := clang.Find(ctx)
	require.NoError(b, err)
	dir := b.TempDir()
	source, program := filepath.Join(dir, "loops.c"), filepath.Join(dir, "loops")
	var functions, names strings.Builder
	for i, k := range measuredKernels {
		fmt.Fprintf(&functions, "static void loop%d(void) {\n%s\n}\n", i, k.loop)
		fmt.Fprintf(&names, "loop%d, ", i)
	}
	require.NoError(b, os.WriteFile(source, fmt.Appendf(nil, scalarProgram, functions.String(), names.String()), 0o600))
	out, err := c.Program(ctx, "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-march=native", "-o", program, source, "-lm").CombinedOutput()
	require.NoError(b, err, "%s", out)
	return func(i int) time.Duration {
		text, err := exec.Command(program, strconv.Itoa(i)).Output()
		require.NoError(b, err)
		n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		require.NoError(b, err)
		return time.Duration(n)
	}
}

// timed returns the shortest of several times of a dispatch on a device with the options o.
func timed(b *testing.B, k *measured, library string, o softmetal.Options, runs int) time.Duration {
	ctx := context.Background()
	o.Workers = 1
	from := "builtin"
	if !k.ours {
		from = fmt.Sprintf("metallib %q sha256 %064d", library, 0)
	} else if library != "" {
		o.Library = library
	}
	text := fmt.Sprintf("mlxt 1\n\ngraph g {%s\n  kernel @k %s %q %sargs(%s)\n\n  #0 @k %s\n}\n", measuredMemories, from, k.kernel, k.constants, k.args, k.bind)
	m, err := mlxt.Parse(ctx, "bench", []byte(text))
	require.NoError(b, err, text)
	g := m.Graphs[0]
	d, err := softmetal.New(ctx, o)
	require.NoError(b, err)
	defer d.Close()
	q, err := d.NewQueue()
	require.NoError(b, err)
	defer q.Close()
	places := make([]backend.Place, len(g.Memories))
	for i := range g.Memories {
		buffer, err := backend.AllocMemory(ctx, d, q, &g.Memories[i])
		require.NoError(b, err)
		defer buffer.Close()
		places[i] = backend.At(buffer)
		if g.Memories[i].Kind == ir.Input {
			// Floats of all signs, none of them denormal.
			data := make([]byte, g.Memories[i].Size)
			for j := range len(data) / 4 {
				data[4*j+2], data[4*j+3] = byte(j*7), byte(0x3e+(j&1)<<7)
			}
			require.NoError(b, backend.Wait(ctx)(q.Upload(ctx, places[i], data)))
		}
	}
	e, err := d.Compile(ctx, &backend.Program{Graph: g, Places: places, Profile: true})
	require.NoError(b, err, k.name)
	defer e.Close()
	f, err := e.NewFrame(backend.FrameSpec{})
	require.NoError(b, err)
	defer f.Close()
	least := time.Hour
	for range runs {
		begin := time.Now()
		p, err := q.Submit(ctx, backend.Submission{Executable: e, Frame: f})
		require.NoError(b, err)
		require.NoError(b, p.Wait(ctx), k.name)
		t := time.Since(begin)
		if !o.Check { // under the checker commands have no times
			command := p.Result().Times.Commands[0]
			t = command.End.Sub(command.Begin)
		}
		least = min(least, t)
	}
	return least
}

// BenchmarkKernels compares kernels with scalar C loops on one thread, and the checker with the kernel that it
// checks. Each number is the best of several runs.
func BenchmarkKernels(b *testing.B) {
	c := scalar(b)
	library := metallibs.Path(b, "0.32.4")
	for i := range measuredKernels {
		k := &measuredKernels[i]
		b.Run(strings.ReplaceAll(k.name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				loop := c(i)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(loop.Microseconds()), "C-us")
				of := library
				if k.ours {
					t := timed(b, k, "", softmetal.Options{}, 7)
					b.ReportMetric(t.Seconds()/loop.Seconds(), "source/C")
					b.ReportMetric(k.work/t.Seconds()/1e9, "source-G"+k.unit+"/s")
					b.ReportMetric(timed(b, k, "", softmetal.Options{Check: true}, 1).Seconds()/t.Seconds(), "checked/source")
				}
				t := timed(b, k, of, softmetal.Options{}, 7)
				b.ReportMetric(t.Seconds()/loop.Seconds(), "MLX/C")
				b.ReportMetric(k.work/t.Seconds()/1e9, "MLX-G"+k.unit+"/s")
				b.ReportMetric(timed(b, k, of, softmetal.Options{Check: true}, 1).Seconds()/t.Seconds(), "checked/MLX")
			}
		})
	}
}
