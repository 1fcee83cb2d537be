//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
)

// serve has a stand-in GPU answer the calls of the driver until the test ends.
func serve(t testing.TB, o fakecuda.Options) *fakecuda.GPU {
	t.Helper()
	if shared == nil {
		var err error
		shared, err = fakecuda.SoftMetal()
		require.NoError(t, err)
	}
	o.Device = shared
	return fakecuda.Serve(t, o)
}

// quit takes the stand-in away before the test ends.
func quit(t testing.TB, x *fakecuda.GPU) {
	t.Helper()
	x.Close()
	require.Empty(t, x.Failures())
}

// images makes the image that the stand-in runs for a kernel, with the early arguments that its PTX has.
func images(ctx context.Context, in air.Input, form nvptx.Launch) ([]byte, error) {
	early, err := waits(ctx, in, form)
	if err != nil {
		return nil, err
	}
	return fakecuda.Image(in, form, early...)
}

// waits returns the arguments that a kernel's entry reads before it waits, from the cache of compiled kernels.
func waits(ctx context.Context, in air.Input, form nvptx.Launch) (early []int, err error) {
	if !form.Programmatic || !bytes.Contains(in.IR, []byte("wait_for_dispatches")) {
		return nil, nil
	}
	c, err := clang.Find(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := air.OpenCache("", 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cache.Close()) }()
	text, err := cache.Data(ctx, nvptx.Key(c, in, form), "early.json", func() ([]byte, error) {
		early, _, err := nvptx.Waits(ctx, c, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(early)
	})
	if err == nil {
		err = json.Unmarshal(text, &early)
	}
	return early, err
}

// standIn opens the stand-in.
func standIn(t testing.TB, o cuda.Options) *cuda.Device {
	t.Helper()
	if !o.HasImages() {
		o = o.WithImages(images)
	}
	d, err := cuda.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() }) // for a test that fails before it closes the device
	return d
}

// TestStandIn: the conformance suite passes with the calls that a GPU's driver would get. The kernels are those that
// the tests of softmetal run.
func TestStandIn(t *testing.T) {
	sample.Long(t)
	for _, x := range sample.Of(t, t.Name(), []struct {
		name    string
		options cuda.Options
	}{{"graph", cuda.Options{Plan: cuda.Edges}}, {"stream", cuda.Options{Plan: cuda.Stream}}}, 2) {
		t.Run(x.name, func(t *testing.T) {
			serve(t, fakecuda.Options{})
			conform(t, x.options)
		})
	}
}

// TestFits: kernels that package ptxmatrix has code for are launched as it asks, in graphs and one by one; what is launched
// so computes their declarations (the code itself is tested there).
func TestFits(t *testing.T) {
	kinds := []*regexp.Regexp{
		regexp.MustCompile(`^affine_qmm_t_.*float16_t_gs_.*_b_[48]_.*$`), regexp.MustCompile(`^sdpa_rows_b?float16_t_(64_64|96_96|128_128|256_256|q8_0_(64_64|128_128|256_256))$`),
		regexp.MustCompile(`^sdpa_rows_(window|capped|sinks)_b?float16_t_(64_64|96_96|128_128|256_256|q8_0_(64_64|128_128|256_256))$`),
		regexp.MustCompile(`^affine_qmv_(fast_)?((add|silu_mul|rms|rms_silu_mul|rms_x3_rope)_b?float16_t_gs_.*_b_4|b?float16_t_gs_.*_b_4_batch_0_pr_[01]_hgs_0_r_4)$`),
		regexp.MustCompile(`^ggml_mul_mv_(silu_mul_)?(q4_K|q6_K|q8_0|q4_0)_b?f16$`), regexp.MustCompile(`^ggml_mul_mm_(q4_K|q6_K|q8_0|q4_0)_b?f16$`),
		regexp.MustCompile(`^affine_qmm_t_x3_rope_b?float16_t_gs_.*_b_[48]$`),
		regexp.MustCompile(`^affine_qmm_t_((x2|x3|x3_rope|add|silu_mul)_)?float(_float16_t)?_gs_.*_b_4(_alN_(true|false)(_batch_0)?)?$`),
		regexp.MustCompile(`^gemm_nt_(x2_|x3_|add_|silu_mul_)?b?float16$`),
		regexp.MustCompile(`^gemv_((x2|x3|add|silu_mul)_b?float16|b?float16_bm[48]_bn1_sm1_sn32_tm[14]_.*)$`),
	}
	if !sample.Whole() { // a whole run is divided by members
		kinds = sample.Of(t, "kinds of kernels that fit", kinds, 5)
	}
	kindOf := func(name string) int {
		return slices.IndexFunc(kinds, func(r *regexp.Regexp) bool { return r.MatchString(name) })
	}
	fitted := make([]atomic.Int64, len(kinds)) // launches, by kind
	var gpu ptxmatrix.GPU
	serve(t, fakecuda.Options{Fits: func(k *air.Kernel, constants []ir.FunctionConstant, note []byte, groups [3]uint64) (grid [3]uint64, threads, shared uint32, err error) {
		f, err := ptxmatrix.Noted(note)
		if err != nil {
			return grid, 0, 0, err
		}
		if kind := kindOf(k.Name); kind >= 0 {
			fitted[kind].Add(1)
		}
		grid, threads, shared = ptxmatrix.Of(k, constants, gpu).Launch(groups, f)
		return grid, threads, shared, nil
	}})
	older := false
	for _, x := range sample.Turns(t, t.Name(), []struct {
		plan       cuda.Plan
		capability string
		gpu        ptxmatrix.GPU
	}{
		{cuda.Edges, "", ptxmatrix.Hopper}, {cuda.Stream, "", ptxmatrix.Hopper},
		{cuda.Edges, "8.0", ptxmatrix.GPU{Major: 8, Memory: 164 << 10}}, {cuda.Stream, "8.9", ptxmatrix.GPU{Major: 8, Minor: 9, Memory: 100 << 10}},
	}) {
		gpu, older = x.gpu, older || x.capability != ""
		conformance.Run(t, func() backend.Device {
			return softly{standIn(t, cuda.Options{Plan: x.plan, Capability: x.capability}.WithFits())}
		}, conformance.Options{
			Unsupported: map[string]string{"generated/*": "there is no code for it"},
			Cases:       8, Values: 2, Regular: 16,
			Other: func() backend.Device { return cpu.New(1) },
			Choose: func(members []string, family func(string) string) []string {
				members = slices.DeleteFunc(slices.Clone(members), func(m string) bool { return kindOf(m) < 0 })
				return sample.Families(t, t.Name(), members, func(m string) string { return kinds[kindOf(m)].String() }, 160)
			},
		})
	}
	for i := range kinds {
		if strings.Contains(flag.Lookup("test.run").Value.String(), "/") { // of which not all have run
			break
		}
		if older && strings.Contains(kinds[i].String(), ")?float(") { // which have code for warpgroups only
			continue
		}
		require.NotZero(t, fitted[i].Load(), "no launch of %s took the code of package ptxmatrix", kinds[i])
	}
}

// softly is a device whose kernels software Metal runs, which flushes denormal numbers.
type softly struct{ *cuda.Device }

func (d softly) Info() backend.Info {
	info := d.Device.Info()
	info.Numerics.FlushesDenormals = true
	return info
}

// conform runs the suite on a device.
func conform(t *testing.T, o cuda.Options) {
	conformance.Run(t, func() backend.Device { return standIn(t, o) }, conformance.Options{
		BorrowedKernels: true,
		Other:           func() backend.Device { return cpu.New(1) },
	})
}

// TestAnyOrder: the suite passes in any order that synchronization leaves open, and with random delays.
func TestAnyOrder(t *testing.T) {
	sample.Seldom(t)
	for _, full := range sample.Turns(t, t.Name(), []bool{false, true}) {
		t.Run(fmt.Sprint("full ", full), func(t *testing.T) {
			serve(t, fakecuda.Options{Seed: 2 + uint64(sample.Run()), Late: 300 * time.Microsecond})
			conform(t, cuda.Options{Plan: cuda.Edges, Full: full, Pool: -1})
		})
	}
}
