//go:build unix

package kernelcases_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// sampleFindings runs n random dispatches of each family of the chosen kernels of our library under the checker. It
// returns the findings, each once, and the number of dispatches.
func sampleFindings(t *testing.T, choose conformance.Choice, library string, n int) (found map[string]string, dispatches int) {
	ctx := context.Background()
	d, err := softmetal.New(ctx, softmetal.Options{Workers: 1, Check: true, Library: library})
	require.NoError(t, err)
	defer d.Close()
	found = map[string]string{}
	ran := map[string]int{}
	err = conformance.Sample(n, 7, choose, func(c *conformance.Case) error {
		// A run takes a few of each: other function constants are another kernel to compile.
		if ran[c.Function]++; ran[c.Function] > 2 && !sample.Whole() {
			return nil
		}
		if _, err := c.Run(d); err != nil {
			return err
		}
		for _, o := range d.Observed() {
			dispatches++
			for i := range o.Findings {
				// Random arguments overflow, and indices out of range give NaNs, as the declarations say.
				if f := &o.Findings[i]; f.Kind != softmetal.NonFinite {
					found[fmt.Sprintf("%s: %v of %s", c.Function, f.Kind, f.Argument)] = fmt.Sprintf("%v\n\t%v", f, c)
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	return found, dispatches
}

// The checker finds nothing in dispatches of our library's kernels with random arguments. A run takes those
// of [sample.Checked].
func TestCheckedKernels(t *testing.T) {
	sample.Seldom(t)
	found, n := sampleFindings(t, sample.Checked(t, sample.UnderChecker), "", 1)
	for what, f := range found {
		t.Errorf("%s: %s", what, f)
	}
	t.Logf("%d dispatches", n)
}

// known are the defects of MLX's own kernels: a pattern of the function's name, the kind and argument of the finding,
// and the cause.
var known = []struct{ function, what, why string }{
	{`layer_norm`, `out of bounds of private`, "threads beyond the end of a row clear their array from a negative index on"},
	{`^gemv_.*_bn8_`, `divergent barrier`, "the barrier before simdgroups add up stands where only some threads come"},
	{`^gemv_.*_bn8_`, `race of threadgroup`, "that barrier names no memory (mem_none)"},
	{`^gemv_t_`, `divergent barrier`, "the barriers in the loop and before simdgroups add up stand where only some threads come"},
	{`^(mxfp4|mxfp8|nvfp4)_qmv_quad_`, `out of bounds of scales`, "scales of rows beyond the last are read, and not used"},
	{`^gated_delta_fused_chunk_`, `race of threadgroup gamma_all`, "nothing keeps the writes for a chunk apart from the reads for the chunk before"},
	{`^(rader_|bluestein_)?fft_mem_`, `divergent barrier`, "threads of transforms that are not there return before the barriers"},
	{`^rader_fft_mem_`, `out of bounds of in`, "where a transform is no multiple of the elements of a thread, indices end with the transforms that the threadgroup has room for"},
	{`^rader_fft_mem_`, `out of bounds of out`, "the same when results are written: beyond the end of the array"},
	{`^contig_scan_`, `undefined read of threadgroup`, "the first simdgroup adds up the parts of 32, also of those that are not there; nothing follows from it"},
	{`^affine_(gather_)?qvm_`, `undefined read of private`, "lanes beyond the last row multiply codes that nothing has set by an x, a scale and a bias of 0"},
	{`^col_reduce_small_`, `divergent barrier`, "threads beyond the last column return before the barrier"},
}

// unusual are dispatches that our declarations allow but MLX never makes of its kernels, and why they fail.
var unusual = []struct{ dispatch, why string }{
	{`^affine_gather_`, "random indices lead nowhere: MLX's kernels follow them"},
	{`^gemv_\S*_tm4_.* out_vec_size=[0-3] `, "there are fewer rows than a thread has: MLX takes tm1 then"},
	{`^looped_softmax_.* threads=(32|64|\d[02468]|\d\d\d) *;`, "simdgroups are missing whose part is read: MLX takes 1024 threads"},
}

// The checker finds only known defects in those of MLX's own kernels that have the names of ours.
func TestCheckedKernelsOfMLX(t *testing.T) {
	sample.Seldom(t)
	found, n := sampleFindings(t, sample.Checked(t, "checked, compiled"), metallibs.Path(t, "0.32.4"), 1)
	count := 0
next:
	for what, f := range found {
		function, kind, _ := strings.Cut(what, ": ")
		for _, k := range known {
			if regexp.MustCompile(k.function).MatchString(function) && strings.HasPrefix(kind, k.what) {
				count++
				continue next
			}
		}
		_, dispatch, _ := strings.Cut(f, "\n\t")
		for _, u := range unusual {
			if regexp.MustCompile(u.dispatch).MatchString(dispatch) {
				continue next
			}
		}
		t.Errorf("%s: %s", what, f)
	}
	t.Logf("%d dispatches, %d known defects", n, count)
}
