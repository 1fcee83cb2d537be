//go:build unix

package kernelcases_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/kernelcases"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// ggmlCases returns cases of a quarter of ggml's operations: the first case of each, and a sample of the others.
func ggmlCases(t *testing.T) []*kernelcases.Case {
	cases, err := kernelcases.Load(filepath.Join("..", "..", "..", "testdata", "ggml"))
	require.NoError(t, err)
	operations := someOperations(t, cases)
	cases = slices.DeleteFunc(cases, func(c *kernelcases.Case) bool { return !slices.Contains(operations, c.Family) })
	return sample.Families(t, "ggml", cases, func(c *kernelcases.Case) string { return c.Family }, sample.Few)
}

// someOperations returns a quarter of the operations that occur in the cases.
func someOperations(t *testing.T, cases []*kernelcases.Case) (out []string) {
	for _, c := range cases {
		if !slices.Contains(out, c.Family) {
			out = append(out, c.Family)
		}
	}
	return sample.Of(t, "operations of ggml", out, sample.Few)
}

// runGGML runs the cases on a device, compares their results, and calls after for each with the difference, if there
// is one. Every buffer has spare more bytes behind it.
func runGGML(t *testing.T, o softmetal.Options, spare int64, cases []*kernelcases.Case, after func(d *softmetal.Device, c *kernelcases.Case, wrong error)) {
	library := ir.Library{Kind: ir.SourceFile, Path: metallibs.GGML(t)}
	d, err := softmetal.New(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	// All kernels are compiled first as those of one graph, so that the compiler reads the file a few times instead
	// of once for each kernel.
	all, err := kernelcases.StepGraph(library, spare, cases...)
	require.NoError(t, err)
	x, err := d.Compile(t.Context(), &backend.Program{Graph: all, Places: make([]backend.Place, len(all.Memories))})
	require.NoError(t, err)
	require.NoError(t, x.Close())
	q, err := d.NewQueue()
	require.NoError(t, err)
	defer q.Close()
	kernels, families := map[string]bool{}, map[string]bool{}
	for _, c := range cases {
		g, err := kernelcases.StepGraph(library, spare, c)
		require.NoError(t, err)
		p, err := c.Prepare(t.Context(), d, g)
		require.NoError(t, err)
		_, err = p.Run(t.Context(), q)
		after(d, c, err)
		require.NoError(t, p.Close())
		for i := range c.Steps {
			kernels[c.Steps[i].Kernel] = true
		}
		families[c.Family] = true
	}
	t.Logf("%d cases of %d kernels, %d operations", len(cases), len(kernels), len(families))
}

// Kernels of ggml's Metal source, dispatched as ggml does, compute what ggml's CPU backend computes, except where
// ggml on Metal itself differs: there the kernels must differ too.
func TestGGML(t *testing.T) {
	sample.Seldom(t)
	// Some kernels read a row behind the last one, for which ggml's own buffers have room.
	runGGML(t, softmetal.Options{}, 1<<16, ggmlCases(t), func(_ *softmetal.Device, c *kernelcases.Case, wrong error) {
		switch {
		case c.Defect == "":
			assert.NoError(t, wrong)
		case wrong == nil:
			t.Errorf("%s is right, though %s", c.Name, c.Defect)
		}
	})
}

// knownOfGGML are the defects of ggml's kernels: a pattern of the function's name, the kind and argument of the
// finding, and the cause.
var knownOfGGML = []struct{ function, what, why string }{
	{`^kernel_mul_mv_`, `out of bounds of src0`, "rows are read in pairs and more, also behind the last one; what comes of them is not used"},
	{`^kernel_tri_`, `write to read-only of dst`, "the results are declared const, and written through a cast"},
	{`^kernel_soft_max_`, `race of threadgroup`, "the barrier before the buffer is used again names no memory (mem_none)"},
	{`^kernel_cumsum_blk_`, `undefined read of threadgroup`, "sums of simdgroups that are not there are read; what comes of them is not used"},
	{`^kernel_solve_tri_`, `out of bounds of src0`, "rows are read to a multiple of 32"},
	{`^kernel_solve_tri_`, `out of bounds of dst`, "so are results, behind those that are there: multiplied by zero, they must be finite"},
	{`^kernel_solve_tri_`, `undefined read of dst`, "so are results that come later: multiplied by zero, they must be finite"},
	{`^kernel_solve_tri_`, `race of dst`, "no barrier of device memory stands between a lane that writes a result and those that read it"},
	{`^kernel_flash_attn_ext_blk$`, `out of bounds of mask`, "the mask is read in blocks of eight queries, also behind the last one"},
	{`^kernel_flash_attn_ext_vec_`, `race of threadgroup`, "the mask and the weights of keys go from lane to lane without a barrier"},
	{`^kernel_flash_attn_ext_[a-z]*[0-9_]+_dk`, `race of threadgroup`, "blocks of keys and values are overwritten without a barrier behind what has read them"},
	{`^kernel_flash_attn_ext_[a-z]*[0-9_]+_dk(32|40)_`, `undefined read of threadgroup`, "narrow heads are padded, and nothing has written the padding; what comes of it is not used"},
	{`^kernel_flash_attn_ext_[a-z]*[0-9_]+_dk(32|40)_`, `out of bounds of v`, "where heads are padded, values behind the last ones are read; what comes of them is not used"},
	{`^kernel_mul_mm_`, `misaligned access of dst`, "results are stored four at a time, also where rows are no multiple of four; Apple's GPUs do that"},
	{`^kernel_ssm_conv_f32_f32_batched_4$`, `misaligned access of src0`, "four floats are read at any address of one; Apple's GPUs do that"},
	{`^kernel_flash_attn_ext_(f16_dk40_dv40|f16_dk64_dv64|q8_0_dk32_dv32)$`, `misaligned access of mask`, "the mask is read in pairs, also where its rows are odd; Apple's GPUs do that"},
	{`^kernel_ssm_scan_`, `limit`, "threadgroup memory of 136 bytes, which is no multiple of 16"},
}

// defectHere reports whether this run looks for a known defect: one in four does.
func defectHere(n int) bool { return sample.Takes("known of ggml", n, 4) }

// checkedGGML returns the cases for the checker: the first of each of a quarter of the operations, and for each known
// defect of this run the first five cases that may show it; all cases with MLXC_LONG=1.
func checkedGGML(t *testing.T) (out []*kernelcases.Case) {
	cases, err := kernelcases.Load(filepath.Join("..", "..", "..", "testdata", "ggml"))
	require.NoError(t, err)
	if sample.Whole() {
		return cases
	}
	families, known := map[string]bool{}, make([]int, len(knownOfGGML))
	operations := someOperations(t, cases)
	for _, c := range cases {
		take := !families[c.Family] && slices.Contains(operations, c.Family)
		families[c.Family] = true
		for n, k := range knownOfGGML {
			has := slices.ContainsFunc(c.Steps, func(s kernelcases.Step) bool { return regexp.MustCompile(k.function).MatchString(s.Kernel) })
			if has && known[n] < 5 && defectHere(n) {
				known[n]++
				take = true
			}
		}
		if take {
			out = append(out, c)
		}
	}
	return out
}

// Under the checker the kernels compute the same, and the checker finds only known defects.
func TestCheckedGGML(t *testing.T) {
	sample.Seldom(t)
	found := map[int]bool{}
	runGGML(t, softmetal.Options{Check: true}, 0, checkedGGML(t), func(d *softmetal.Device, c *kernelcases.Case, wrong error) {
		kept := false // the checker suppresses a write that is not allowed
		for _, o := range d.Observed() {
		next:
			for i := range o.Findings {
				f := &o.Findings[i]
				kept = kept || f.Kind == softmetal.WritesReadOnly
				for n, k := range knownOfGGML {
					if regexp.MustCompile(k.function).MatchString(f.Kernel) && strings.HasPrefix(f.Kind.String()+" of "+f.Argument, k.what) {
						found[n] = true
						continue next
					}
				}
				t.Errorf("%s: %s: %v of %s: %v", c.Name, f.Kernel, f.Kind, f.Argument, f)
			}
		}
		if c.Defect == "" && !kept {
			assert.NoError(t, wrong)
		}
	})
	for n, k := range knownOfGGML {
		assert.True(t, found[n] || !defectHere(n), "%s: no longer %s", k.function, k.what)
	}
}
