package calls

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestRefusals are names and types for which there is no body.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		f    Function
		want string
	}{
		{Function{"air.sample_texture_2d.v4f32", "<4 x float>", []string{"ptr"}}, "air.sample_texture_2d.v4f32: no body"},
		{Function{"air.exp.f64", "double", []string{"double"}}, "no type"},
		{Function{"air.exp.f32", "float", []string{"double"}}, "parameter 0: type double"},
		{Function{"air.exp.f32", "float", []string{"half"}}, "parameter 0 is half, by its name it is float"},
		{Function{"air.exp.f32", "half", []string{"float"}}, "result is half"},
		{Function{"air.exp.f32", "float", nil}, "0 parameters, it has 1"},
		{Function{"air.exp.f32", "float", []string{"void"}}, "parameter 0: void"},
		{Function{"air.exp.s.i32", "i32", []string{"i32"}}, "no body"},
		{Function{"air.min.i32", "i32", []string{"i32", "i32"}}, "no body"},
		{Function{"air.all.v2i8", "i8", []string{"<2 x i8>"}}, "no body"},
		{Function{"air.popcount.i1", "i1", []string{"i1"}}, "no body"},
		{Function{"air.convert.f.f32.f.i32", "float", []string{"i32"}}, "'f' is no kind of i32"},
		{Function{"air.convert.f.v2f32.s.i32", "<2 x float>", []string{"i32"}}, "other elements"},
		{Function{"air.convert.f.f32.s.i32", "float", []string{"i64"}}, "by its name it is float (i32)"},
		{Function{"air.convert", "float", nil}, "no body"},
		{Function{"air.atomic.global.add.f16", "half", []string{"ptr addrspace(1)", "half", "i32", "i32", "i1"}}, "no body"},
		{Function{"air.atomic.global.nand.u.i32", "i32", []string{"ptr addrspace(1)", "i32", "i32", "i32", "i1"}}, "no body"},
		{Function{"air.atomic.local.add.u.i32", "i32", []string{"ptr addrspace(1)", "i32", "i32", "i32", "i1"}}, "points to address space 1, by its name to 3"},
		{Function{"air.atomic.global.store.i32", "i32", []string{"ptr addrspace(1)", "i32", "i32", "i32", "i1"}}, "it is void"},
		{Function{"air.pack.unorm4x8.v3f32", "i32", []string{"<3 x float>"}}, "no body"},
		{Function{"air.is_uniform.i32", "i32", []string{"i32"}}, "i1 (i32)"},
		{Function{"air.simd_sum.f32", "float", []string{"float"}}, "the executor's"},
		{Function{"air.exp\n.f32", "float", []string{"float"}}, `"air.exp\n.f32": no body`},
		{Function{"", "", nil}, "no body"},
		{Function{"air." + strings.Repeat("x", 1<<20), "", nil}, "…"},
		{Function{"air.exp.f32", "<999999999999 x float>", []string{"float"}}, "result: type"},
	} {
		for target := Host; target <= PTX; target++ {
			_, err := Define(c.f, target)
			require.Error(t, err)
			assert.ErrorContains(t, err, c.want)
			assert.Less(t, len(err.Error()), 400)
		}
	}
	_, err := Define(Function{"air.exp.f32", "float", []string{"float"}}, 9)
	assert.ErrorContains(t, err, "no target 9")
}

// TestMixtures puts parts of names and types together at random: an error or a body, and a
// body is one of the type that was asked for.
func TestMixtures(t *testing.T) {
	sample.Long(t)
	r := rand.New(rand.NewPCG(25, 26))
	fs := append(families(), known(t)...)
	var parts, types []string
	for _, f := range fs {
		parts = append(parts, strings.Split(f.Name, ".")...)
		types = append(append(types, f.Params...), f.Result)
	}
	parts = append(parts, "", "v", "v9f32", "i128", "air", "fast_", "fast_convert", "fast_atomic")
	usual := map[string]bool{}
	for _, f := range fs {
		usual[f.Name] = true
	}
	var unusual []Function
	defined := 0
	for range 100000 {
		f := fs[r.IntN(len(fs))]
		name := strings.Split(f.Name, ".")
		params := slices.Clone(f.Params)
		for range r.IntN(3) {
			switch r.IntN(5) {
			case 0:
				name[r.IntN(len(name))] = parts[r.IntN(len(parts))]
			case 1:
				name = slices.Insert(name, r.IntN(len(name)+1), parts[r.IntN(len(parts))])
			case 2:
				name = slices.Delete(name, 0, r.IntN(2))
			case 3:
				params = append(params, types[r.IntN(len(types))])
			case 4:
				if len(params) > 0 {
					params[r.IntN(len(params))] = types[r.IntN(len(types))]
				}
			}
			if len(name) == 0 {
				break
			}
		}
		f = Function{strings.Join(name, "."), f.Result, params}
		d, err := Define(f, Target(r.IntN(2)))
		if err == nil {
			defined++
			require.True(t, strings.HasPrefix(d.Text, "define internal "), f.Name)
			if !usual[f.Name] {
				usual[f.Name] = true
				unusual = append(unusual, f)
			}
		}
	}
	assert.Greater(t, defined, 10000)
	require.NotEmpty(t, unusual)
	for _, target := range targets {
		compiles(t, compiler(t), called(t, unusual, target.target), target.args...)
	}
	t.Logf("%d bodies, %d of names that nobody wrote down", defined, len(unusual))
}

// TestDeterministic defines everything twice.
func TestDeterministic(t *testing.T) {
	assert.NotZero(t, Digest())
	for target := Host; target <= PTX; target++ {
		once, err := Module(families(), target)
		require.NoError(t, err)
		again, err := Module(families(), target)
		require.NoError(t, err)
		assert.True(t, once == again)
	}
	assert.True(t, Runtime() == Runtime())
}
