//go:build unix

package softmetal_test

import (
	"context"
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
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// scalarLoops are the same computations as plain loops, compiled without vectors. The program
// prints the nanoseconds of the best of some runs of each.
const scalarLoops = `
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return 1e9 * t.tv_sec + t.tv_nsec; }
enum { ROWS = 512, N = 4096, M = 4096, K = 4096, G = 64 };
static float x[ROWS * N], w[N], y[ROWS * N], v[K], out[M], scales[M * K / G], biases[M * K / G];
static uint32_t q[M * K / 8];
static void rms(void) {
	for (int r = 0; r < ROWS; r++) {
		float s = 0;
		for (int i = 0; i < N; i++) s += x[r * N + i] * x[r * N + i];
		float inv = 1 / sqrtf(s / N + 1e-5f);
		for (int i = 0; i < N; i++) y[r * N + i] = w[i] * (x[r * N + i] * inv);
	}
}
static void qmv(void) {
	for (int m = 0; m < M; m++) {
		float sum = 0;
		for (int g = 0; g < K / G; g++) {
			float dot = 0, all = 0;
			for (int k = 0; k < G; k++) {
				int at = g * G + k;
				dot += v[at] * (float)(q[(m * K + at) / 8] >> 4 * (at % 8) & 15);
				all += v[at];
			}
			sum += scales[m * (K / G) + g] * dot + biases[m * (K / G) + g] * all;
		}
		out[m] = sum;
	}
}
static double best(void (*f)(void)) {
	double least = 1e300;
	for (int i = 0; i < 7; i++) { double t = now(); f(); t = now() - t; if (t < least) least = t; }
	return least;
}
int main(void) {
	for (int i = 0; i < ROWS * N; i++) x[i] = (float)(rand() % 1000) / 500 - 1;
	for (int i = 0; i < N; i++) w[i] = v[i] = (float)(rand() % 1000) / 500 - 1;
	for (int i = 0; i < M * K / 8; i++) q[i] = (uint32_t)rand();
	for (int i = 0; i < M * K / G; i++) scales[i] = biases[i] = 0.01f;
	double a = best(rms), b = best(qmv);
	printf("%.0f %.0f %g\n", a, b, y[7] + out[9]);
}
`

const benchGraph = `mlxt 1

graph g {
  memory %x input 8388608 f32[512, 4096]
  memory %y output 8388608 f32[512, 4096]
  memory %w weight 16384 f32[4096] = random seed 1
  memory %q weight 8388608 u32[4096, 512] = random seed 6
  memory %qs weight 1048576 f32[4096, 64] = random seed 13
  memory %qb weight 1048576 f32[4096, 64] = random seed 13
  memory %v output 16384 f32[4096]
  kernel @rms builtin "rmsfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @qmv builtin "affine_qmv_fast_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4" args(0 w: device u32 read, 1 scales: device f32 read, 2 biases: device f32 read, 3 x: device f32 read, 4 y: device f32 write, 5 in_vec_size: constant i32, 6 out_vec_size: constant i32)

  #0 @rms (x = %x[0:8388608], w = %w[0:16384], out = %y[0:8388608], eps = 1e-05, axis_size = 4096, w_stride = 1) grid threads [524288, 1, 1] of [1024, 1, 1] op rms_norm
  barrier
  #1 @qmv (w = %q[0:8388608], scales = %qs[0:1048576], biases = %qb[0:1048576], x = %x[0:16384], y = %v[0:16384], in_vec_size = 4096, out_vec_size = 4096) grid threadgroups [1, 512, 1] of [32, 2, 1] op quantized_matmul
}
`

// BenchmarkKernels compares kernels with scalar C loops, on one thread, in one run: of each the
// best of some runs. With MLX_METALLIB naming MLX's library the kernels are Apple's.
func BenchmarkKernels(b *testing.B) {
	ctx := context.Background()
	c, err := clang.Find(ctx)
	require.NoError(b, err)
	dir := b.TempDir()
	source, program := filepath.Join(dir, "loops.c"), filepath.Join(dir, "loops")
	require.NoError(b, os.WriteFile(source, []byte(scalarLoops), 0o600))
	out, err := c.Program(ctx, "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-march=native", "-o", program, source, "-lm").CombinedOutput()
	require.NoError(b, err, "%s", out)
	d, err := softmetal.New(ctx, softmetal.Options{Workers: 1, Library: os.Getenv("MLX_METALLIB")})
	require.NoError(b, err)
	defer d.Close()
	m, err := mlxt.Parse(ctx, "bench", []byte(benchGraph))
	require.NoError(b, err)
	g := m.Graphs[0]
	q, err := d.NewQueue()
	require.NoError(b, err)
	defer q.Close()
	places := make([]backend.Place, len(g.Memories))
	for i := range g.Memories {
		if g.Memories[i].Kind == ir.Weight {
			buffer, err := backend.AllocMemory(ctx, d, q, &g.Memories[i])
			require.NoError(b, err)
			defer buffer.Close()
			places[i] = backend.At(buffer)
		}
	}
	e, err := d.Compile(ctx, &backend.Program{Graph: g, Places: places, Profile: true})
	require.NoError(b, err)
	defer e.Close()
	f, err := e.NewFrame(backend.FrameSpec{})
	require.NoError(b, err)
	defer f.Close()
	least := [2]time.Duration{time.Hour, time.Hour}
	var scalar [2]float64
	for b.Loop() {
		text, err := exec.Command(program).Output()
		require.NoError(b, err)
		for i, s := range strings.Fields(string(text))[:2] {
			n, err := strconv.ParseFloat(s, 64)
			require.NoError(b, err)
			if scalar[i] == 0 || n < scalar[i] {
				scalar[i] = n
			}
		}
		for range 7 {
			p, err := q.Submit(ctx, backend.Submission{Executable: e, Frame: f})
			require.NoError(b, err)
			for i, t := range p.Result().Times.Commands {
				least[i] = min(least[i], t.End.Sub(t.Begin))
			}
		}
	}
	for i, name := range []string{"rms", "qmv"} {
		b.ReportMetric(float64(least[i].Nanoseconds())/scalar[i], name+"-times-C")
		b.ReportMetric(float64(least[i].Microseconds()), name+"-us")
	}
}
