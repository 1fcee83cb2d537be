package cpu

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// TestOracle compares every kernel, with every implementation of package simd, with results that NumPy computed in
// float64, and some also with MLX's results. A fused kernel may have no such data: another test compares it with
// the kernels that it replaces, bit by bit. Nor need a member of a family have some of whose type, group and bits
// others have. Templates of the sources ofCases have NumPy's results in the cases of MLX's kernels, which package
// kernelcases runs.
func TestOracle(t *testing.T) {
	templates := templatesWithCases(t)
	forEachImpl(t, func(t *testing.T) {
		dev := New(1) // one worker for all, whose caches must not affect results
		counts := conformance.Goldens(t, dev, os.DirFS("../../testdata/kernels"))
		assert.NoError(t, dev.Close())
		with := map[string]bool{}
		for n := range counts {
			for _, of := range traits(msl.Declarations(n)[0]) {
				with[of] = true
			}
		}
		for _, n := range Names() {
			if ofParts(n) {
				assert.Zero(t, counts[n], "%s has a golden: take it off the list of fused kernels", n)
				continue
			}
			d := msl.Declarations(n)[0]
			if templates[template(d)] {
				continue
			}
			if slices.Contains(ofCases, d.File) {
				assert.True(t, templates[kin(d)], "%s:%d: testdata/kernelcases has no case of %s or another kernel of its template", d.File, d.Line, n)
				continue
			}
			if counts[n] > 0 || len(d.Template) > 0 && !slices.ContainsFunc(traits(d), func(of string) bool { return !with[of] }) {
				continue
			}
			t.Errorf("%s:%d: testdata/kernels has no golden of %s that its declaration describes: write one (docs/kernels.md, \"Goldens\")", d.File, d.Line, n)
		}
	})
}

// traits are the type of a kernel's results and the values of its template's numbers, each with its family.
func traits(d *decl.Decl) (out []string) {
	for s, n := range d.Template {
		out = append(out, fmt.Sprint(d.Family(), d.Symbols[s].Name, n))
	}
	for _, a := range d.Args {
		if a.Mode == decl.Write {
			out = append(out, fmt.Sprint(d.Family(), a.Elem))
		}
	}
	return out
}

// ofCases are the sources of kernels that take the dispatches of MLX's kernels of the same names, most of them in many
// types, widths and groups.
var ofCases = []string{"quantize.metal", "code_products.metal", "arange.metal", "rope_freqs.metal", "sdpa_vector_2pass.metal", "steel_attention.metal"}

// caseNames are what names of the kernels begin with whose cases package kernelcases runs with our kernels.
var caseNames = []string{"affine_", "arange", "gather_mm_offsets", "rope_", "sdpa_", "steel_attention_", "steel_gemm_splitk_accum"}

func template(d *decl.Decl) string { return fmt.Sprintf("%s:%d", d.File, d.Line) }

// kin is the name of a kernel without its types, widths and groups: kernels that are instances of one
// template, where several lines declare them.
func kin(d *decl.Decl) string { return typesAndWidths.ReplaceAllString(d.Name, "") }

var typesAndWidths = regexp.MustCompile(`b?float(16|32)?(_t)?|_gs_\d+|_b_\d|_d_\d+|_bk\d+_bd\d+_bv\d+|_\d+_\d+$`)

// templatesWithCases are the templates of which a kernel has a case in testdata/kernelcases.
func templatesWithCases(t *testing.T) map[string]bool {
	out := map[string]bool{}
	for _, file := range []string{"affine", "copy", "gemm", "rope", "sdpa", "attention"} {
		text, err := os.ReadFile("../../testdata/kernelcases/" + file + ".json")
		require.NoError(t, err)
		var cases []struct{ Kernel string }
		require.NoError(t, json.Unmarshal(text, &cases))
		for _, c := range cases {
			if !slices.ContainsFunc(caseNames, func(prefix string) bool { return strings.HasPrefix(c.Kernel, prefix) }) {
				continue
			}
			for _, d := range msl.Declarations(c.Kernel) {
				out[template(d)] = true
				out[kin(d)] = true
			}
		}
	}
	return out
}

func forEachImpl(t *testing.T, f func(t *testing.T)) {
	for _, impl := range simd.Available() {
		t.Run(string(impl), func(t *testing.T) {
			previous, err := simd.Use(impl)
			require.NoError(t, err)
			defer simd.Use(previous)
			f(t)
		})
	}
}
