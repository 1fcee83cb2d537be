package ptxcode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// archived returns a Source whose archive has rmsfloat32, and rope_float32 of another state of its source.
func archived(t *testing.T) *Source {
	t.Helper()
	request := func(function string) prebuilt.Request {
		file := msl.Declarations(function)[0].File
		text, err := msl.Source(file)
		require.NoError(t, err)
		return prebuilt.NewRequest(file, text, function)
	}
	rms, rope := request("rmsfloat32"), request("rope_float32")
	rope.Code[0]++
	rope.Constants = []air.ConstantValue{{Index: 1, Bits: 1}}
	rms.Launch.Values, rope.Launch.Values = true, true
	data, err := prebuilt.Write("", []prebuilt.Compiled{
		{Request: rms, Kernel: prebuilt.Kernel{Description: &air.Kernel{Name: "rmsfloat32", Args: []air.Arg{{Space: air.Constant, Size: 4}}}, PTX: []byte("text of rms")}},
		{Request: rope, Kernel: prebuilt.Kernel{Description: &air.Kernel{Name: "rope_float32"}, PTX: []byte("text of rope")}},
	})
	require.NoError(t, err)
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	s.archive = func() (*prebuilt.Archive, error) { return prebuilt.Read(data) }
	return s
}

func builtin(function string, constants ...ir.FunctionConstant) *ir.Kernel {
	return &ir.Kernel{Function: function, Library: ir.Library{Kind: ir.Builtin}, Constants: constants}
}

// TestOwnWithoutClang: each kernel of the program's own archive that is up to date is found without a compiler, and
// is described before it is known how it is launched, as backends ask for it.
func TestOwnWithoutClang(t *testing.T) {
	sample.Long(t)
	t.Setenv(clang.Env, "/nonexistent/clang")
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	a, err := prebuilt.Own()
	require.NoError(t, err)
	wanted, _, err := prebuilt.Wanted()
	require.NoError(t, err)
	found := 0
	for _, r := range wanted {
		if _, err := a.Describe(r); errors.Is(err, prebuilt.ErrStale) || errors.Is(err, prebuilt.ErrMaker) || errors.Is(err, prebuilt.ErrUnknown) {
			continue // until the next release; make ptx-check names those that it has not, or has of another state
		}
		found++
		launch := r.Launch
		r.Launch = nvptx.Launch{}
		c := &Code{source: s, find: func(context.Context) (air.Input, error) { return air.Input{}, errors.New("it is compiled") }}
		require.NoError(t, c.described(t.Context(), &r), r.Function)
		assert.Equal(t, r.Function, c.Kernel.Name)
		_, err := c.PTX(t.Context(), launch)
		require.NoError(t, err, "%s %+v", r.Function, launch)
	}
	assert.Greater(t, found, len(wanted)/2, "of %d", len(wanted))
}

const silu = "out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])"

// TestWithoutClang: prebuilt and generated kernels need no compiler, and the errors of others say that they do.
func TestWithoutClang(t *testing.T) {
	t.Setenv(clang.Env, "/nonexistent/clang")
	s := archived(t)
	c, err := s.Find(t.Context(), builtin("rmsfloat32"))
	require.NoError(t, err)
	text, err := c.PTX(t.Context(), nvptx.Launch{Values: true})
	require.NoError(t, err)
	assert.Equal(t, "text of rms", string(text))
	assert.Equal(t, "rmsfloat32", c.Kernel.Name)

	c, err = s.Find(t.Context(), &ir.Kernel{Function: silu, Library: ir.Library{Kind: ir.Generated}})
	require.NoError(t, err)
	text, err = c.PTX(t.Context(), nvptx.Launch{Programmatic: true, Values: true})
	require.NoError(t, err)
	assert.Contains(t, string(text), silu)
	assert.Len(t, c.Kernel.Args, 4)
	assert.Equal(t, 1, s.Counts().Prebuilt)
	assert.Equal(t, 1, s.Counts().Generated)

	_, err = s.Find(t.Context(), builtin("rope_float32", ir.FunctionConstant{Index: 1, Bits: 1}))
	assert.ErrorIs(t, err, prebuilt.ErrStale)
	assert.ErrorContains(t, err, "kernel rope_float32 of rope.metal has to be compiled")
	assert.ErrorContains(t, err, clang.Env)
	assert.ErrorIs(t, err, backend.ErrNoCompiler)
	c, err = s.Find(t.Context(), builtin("rmsfloat32"))
	require.NoError(t, err)
	_, err = c.PTX(t.Context(), nvptx.Launch{Moving: true, Values: true})
	assert.ErrorIs(t, err, prebuilt.ErrUnknown)
	assert.ErrorContains(t, err, clang.Env)
	_, err = s.Own(t.Context(), plan.MovesFile, plan.Moves, "mlxc_copy_4")
	assert.ErrorContains(t, err, "kernel mlxc_copy_4 of moves.metal has to be compiled")
	_, err = s.Find(t.Context(), builtin("nothing"))
	assert.ErrorContains(t, err, `there is no kernel "nothing"`)
	_, err = s.Find(t.Context(), &ir.Kernel{Function: "out0[i] = nothing", Library: ir.Library{Kind: ir.Generated}})
	assert.Error(t, err)
	_, err = s.Find(t.Context(), &ir.Kernel{Function: "f", Library: ir.Library{Kind: ir.SourceFile, Path: "f.metal"}})
	assert.ErrorContains(t, err, "f.metal: no such file")
	path := filepath.Join(t.TempDir(), "f.metal")
	require.NoError(t, os.WriteFile(path, []byte(twice), 0o600))
	_, err = s.Find(t.Context(), &ir.Kernel{Function: "f", Library: ir.Library{Kind: ir.SourceFile, Path: path}})
	assert.ErrorContains(t, err, clang.Env)
	assert.ErrorContains(t, err, "kernel f of "+path+" has to be compiled")
	_, err = s.Find(t.Context(), &ir.Kernel{Function: "f", Library: ir.Library{Kind: ir.Metallib, Path: "user.metallib"}})
	assert.ErrorContains(t, err, clang.Env)
	assert.ErrorContains(t, err, "kernel f of user.metallib has to be compiled")
	g := &ir.Graph{Kernels: []ir.Kernel{{Function: "f", Library: ir.Library{Kind: ir.SourceFile, Path: path}}}}
	s.Together(t.Context(), g, []bool{true}, 1) // what is missing shows when the kernels are found
}

const twice = "kernel void f(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; }\n"

// TestBeforehand: kernels of source files come from the archive that was given, wherever the file lies; what it
// lacks, or has of another state, has to be compiled.
func TestBeforehand(t *testing.T) {
	t.Setenv(clang.Env, "/nonexistent/clang")
	s := archived(t)
	dir := t.TempDir()
	file := func(name, text string) *ir.Kernel {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return &ir.Kernel{Function: "f", Library: ir.Library{Kind: ir.SourceFile, Path: path}, Constants: []ir.FunctionConstant{{Index: 2, Bits: 7}}}
	}
	k := file("k.metal", twice)
	r := prebuilt.OfFile("elsewhere/k.metal", twice, "f")
	r.Launch = nvptx.Launch{Programmatic: true, Values: true}
	r.Constants = []air.ConstantValue{{Index: 2, Bits: 7}}
	data, err := prebuilt.Write("", []prebuilt.Compiled{{Request: r, Kernel: prebuilt.Kernel{Description: &air.Kernel{Name: "f"}, PTX: []byte("text of f")}}})
	require.NoError(t, err)
	a, err := prebuilt.Read(data)
	require.NoError(t, err)
	s.Beforehand(a)
	c, err := s.Find(t.Context(), k)
	require.NoError(t, err)
	text, err := c.PTX(t.Context(), r.Launch)
	require.NoError(t, err)
	assert.Equal(t, "text of f", string(text))
	_, err = c.PTX(t.Context(), nvptx.Launch{Values: true})
	assert.ErrorIs(t, err, prebuilt.ErrUnknown)
	assert.ErrorContains(t, err, clang.Env)
	_, err = s.Find(t.Context(), file("other.metal", twice))
	assert.ErrorIs(t, err, prebuilt.ErrUnknown)
	_, err = s.Find(t.Context(), file("k.metal", twice+"\n"))
	assert.ErrorIs(t, err, errTheirs)
	assert.ErrorContains(t, err, clang.Env)
	c, err = s.Find(t.Context(), builtin("rmsfloat32")) // our own kernels come from the program's archive
	require.NoError(t, err)
	text, err = c.PTX(t.Context(), nvptx.Launch{Values: true})
	require.NoError(t, err)
	assert.Equal(t, "text of rms", string(text))
}

// TestCompiled: what is not in the archive is compiled, once, and then in the cache.
func TestCompiled(t *testing.T) {
	s := archived(t)
	for n := range 2 {
		c, err := s.Own(t.Context(), plan.MovesFile, plan.Moves, "mlxc_copy_4")
		require.NoError(t, err)
		for _, l := range []nvptx.Launch{{Values: true}, {Programmatic: true, Moving: true, Values: true}} {
			text, err := c.PTX(t.Context(), l)
			require.NoError(t, err)
			assert.Equal(t, l.Programmatic, strings.Contains(string(text), ".target sm_90"))
		}
		counts := s.Counts()
		assert.Equal(t, [4]int{0, 0, 2 * n, 2}, [4]int{counts.Prebuilt, counts.Generated, counts.Cached, counts.Compiled})
		assert.Zero(t, counts.Stale)
	}
	c, err := s.Find(t.Context(), builtin("rope_float32", ir.FunctionConstant{Index: 1, Bits: 1}))
	require.NoError(t, err)
	_, err = c.PTX(t.Context(), nvptx.Launch{Values: true})
	require.NoError(t, err)
	assert.Equal(t, 1, s.Counts().Stale)
	assert.Contains(t, s.Counts().Why, "kernel rope_float32 of rope.metal: the prebuilt code is that of another state of its source")
	assert.Positive(t, s.Counts().Time)
}

// TestLibrary: where a .metallib is to give our own kernels, none is taken from the archive.
func TestLibrary(t *testing.T) {
	s := archived(t)
	s.library = "/nonexistent/mlx.metallib"
	_, err := s.Find(t.Context(), builtin("rmsfloat32"))
	assert.ErrorContains(t, err, "mlx.metallib")
}

// TestMovesMoveVectors: a copy of 16 bytes an element is one load and one store. (Once there was one for each byte,
// and it was nine times as slow.)
func TestMovesMoveVectors(t *testing.T) {
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	s.archive = func() (*prebuilt.Archive, error) { return nil, prebuilt.ErrUnknown }
	for name, want := range map[string][2]int{"mlxc_copy_16": {1, 1}, "mlxc_fill_16": {1, 1}, "mlxc_copy_4": {1, 1}} {
		c, err := s.Own(t.Context(), plan.MovesFile, plan.Moves, name)
		require.NoError(t, err)
		text, err := c.PTX(t.Context(), nvptx.Launch{Values: true, Programmatic: true})
		require.NoError(t, err)
		loads, stores := strings.Count(string(text), "\tld.global."), strings.Count(string(text), "\tst.global.")
		assert.Equal(t, want, [2]int{loads, stores}, "%s:\n%s", name, text)
	}
}
