package msl_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// TestSources: every embedded file declares something, and every declaration
// stands in a file that can be read.
func TestSources(t *testing.T) {
	declared := map[string]bool{}
	for _, f := range msl.Functions() {
		for _, d := range msl.Declarations(f) {
			assert.Equal(t, f, d.Name)
			declared[d.File] = true
			src, err := fs.ReadFile(msl.Own(), d.File)
			require.NoError(t, err)
			line := strings.Split(string(src), "\n")[d.Line-1]
			assert.Contains(t, line, "@kernel", "%s:%d", d.File, d.Line)
		}
	}
	assert.NotEmpty(t, msl.Files())
	for _, f := range msl.Files() {
		assert.True(t, declared[f], "%s declares no kernel", f)
		tests, err := msl.Tests(f)
		require.NoError(t, err)
		assert.NotEmpty(t, tests.Witnesses, f)
	}
	_, err := msl.Source("absent.metal")
	assert.Error(t, err)
	assert.True(t, slices.IsSorted(msl.Functions()))
	assert.Nil(t, msl.Declarations("absent"))
}

// TestHeaders: the text that is compiled has headers once, and says of each line where it stands.
func TestHeaders(t *testing.T) {
	files, err := fs.Glob(msl.Own(), "*.metal")
	require.NoError(t, err)
	for _, file := range files {
		text, err := msl.Source(file)
		require.NoError(t, err)
		assert.NotContains(t, text, `#include "`, file)
		assert.Equal(t, 1, strings.Count(text, "#include <metal_stdlib>"), file)
		at, in := 0, file
		lines := map[string][]string{}
		for _, l := range strings.Split(text, "\n") {
			if _, err := fmt.Sscanf(l, "#line %d %q", &at, &in); err == nil {
				at--
				continue
			}
			if lines[in] == nil {
				own, err := fs.ReadFile(msl.Own(), in)
				require.NoError(t, err)
				lines[in] = strings.Split(string(own), "\n")
			}
			require.Equal(t, lines[in][at], l, "%s: %s:%d", file, in, at+1)
			at++
		}
		assert.Equal(t, len(lines[file]), at, file)
	}
}

// TestBindGenerated: a generated kernel is described by its term, and only with
// the arguments that its term has.
func TestBindGenerated(t *testing.T) {
	b := ir.NewBuilder("g")
	m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 4096})
	kernel := func(text string, args ...ir.Arg) *ir.Dispatch {
		return b.Dispatch(ir.Dispatch{
			Kernel:   b.Kernel(ir.Kernel{Name: "k", Library: ir.Library{Kind: ir.Generated}, Function: text, Args: args}),
			GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(64), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(m, 0, 256)), ir.BufferArg(1, ir.ViewOf(m, 256, 256))},
		})
	}
	in, out := ir.Arg{Slot: 0, Name: "in0", Type: ir.F32}, ir.Arg{Slot: 1, Name: "out0", Type: ir.F32, Access: ir.WriteArg}
	const text = "out0[i] = round(f32, in0[i] * 2.0)"
	for range 2 { // the second time from the cache
		e, err := msl.Describe(b.Unfinished(), kernel(text, in, out))
		require.NoError(t, err)
		require.Len(t, e.Writes, 1)
		assert.True(t, e.Writes[0].Must)
		assert.Equal(t, ir.Const(256), e.Writes[0].Run)
	}
	_, err := msl.Describe(b.Unfinished(), kernel(text, in))
	assert.ErrorContains(t, err, "the argument table of kernel @k is not that of the generated function "+text)
	_, err = msl.Describe(b.Unfinished(), kernel("out0[i] = round(f32, in0[i]*2.0)", in, out))
	assert.ErrorContains(t, err, "is not canonical")
}

// TestBind looks for the declaration that fits among those of one name, and
// says what is wrong if none does.
func TestBind(t *testing.T) {
	b := ir.NewBuilder("g")
	m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 1 << 20})
	at := func(slot uint8, off int64) ir.Binding { return ir.BufferArg(slot, ir.ViewOf(m, off, 1<<16)) }
	rope := func(traditional uint64, function string, l ir.Library) *ir.Dispatch {
		constants := []ir.FunctionConstant{{Index: 1, Type: ir.Bool, Bits: 1}, {Index: 2, Type: ir.Bool, Bits: traditional}}
		k := msl.Declarations("rope_single_float32")[0].Kernel("k", constants...)
		k.Function, k.Library = function, l
		return b.Dispatch(ir.Dispatch{
			Kernel: b.Kernel(k), GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(32), ir.Ext(9), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1},
			Bindings: []ir.Binding{at(0, 0), at(1, 1<<17), ir.BytesArg(2, ir.ValueBytes(int32(3))), ir.BytesArg(3, ir.ValueBytes(float32(1))), ir.BytesArg(4, ir.ValueBytes(int64(64))), ir.BytesArg(10, ir.ValueBytes(float32(13)))},
		})
	}
	var variants [][]string
	for _, traditional := range []uint64{0, 1} {
		in, err := msl.Bind(b.Unfinished(), rope(traditional, "rope_single_float32", ir.Library{}))
		require.NoError(t, err)
		variants = append(variants, in.Decl.Variant)
	}
	assert.Equal(t, [][]string{{"order=halves"}, {"order=pairs"}}, variants, "two declarations of one name")

	_, err := msl.Bind(b.Unfinished(), rope(0, "absent", ir.Library{}))
	assert.EqualError(t, err, `#2: the builtin library has no function "absent"`)
	_, err = msl.Bind(b.Unfinished(), rope(0, "rope_single_float32", ir.Library{Kind: ir.Metallib, Path: "mlx.metallib"}))
	assert.EqualError(t, err, `#3: kernel @k is of library "mlx.metallib", which has no declarations`)
	d := rope(1, "rope_single_float32", ir.Library{})
	d.Grid[2] = ir.Ext(2)
	_, err = msl.Bind(b.Unfinished(), d)
	assert.ErrorContains(t, err, "does not describe this dispatch")
}

// TestRegister: a source that is added has all that the embedded ones have, and what
// cannot be added changes nothing.
func TestRegister(t *testing.T) {
	const text = "// @kernel register_test\n// @arg 0 x device f32[n] read\n// @arg 1 y device f32[n] write\n// @threads n, 1, 1\n// @group _, 1, 1\n" +
		"// @term y[i] = round(f32, x[i] + 1.0)\n// @witness register_test ; ; threads 64 1 1 / 32 1 1 ; ok\n// @equivalent register_test* ; group: 1 -> 2 ; a test\n"
	version := msl.Version()
	require.NoError(t, msl.Register("register_test.metal", text))
	assert.Greater(t, msl.Version(), version)
	assert.Contains(t, msl.Functions(), "register_test")
	assert.Contains(t, msl.Files(), "register_test.metal")
	assert.Len(t, msl.Declarations("register_test"), 1)
	tests, err := msl.Tests("register_test.metal")
	require.NoError(t, err)
	assert.Len(t, tests.Witnesses, 1)
	assert.Len(t, tests.Equivalents, 1)
	src, err := msl.Source("register_test.metal")
	require.NoError(t, err)
	assert.Equal(t, text, src)

	assert.EqualError(t, msl.Register("register_test.metal", text), "the library has a source register_test.metal: give the file another name")
	assert.EqualError(t, msl.Register("other.metal", text), "other.metal:1: register_test.metal:1 declares the kernel register_test: give this one another name")
	assert.EqualError(t, msl.Register("none.metal", "kernel void f();"), "none.metal declares no kernel: put a declaration, which begins with // @kernel NAME, above each (docs/kernels.md)")
	assert.ErrorContains(t, msl.Register("wrong.metal", "// @kernel k\n// @nothing\n"), "wrong.metal:2: kernel k: there is no @nothing line")
	for _, f := range []string{"other.metal", "none.metal", "wrong.metal", "witness.metal"} {
		assert.NotContains(t, msl.Files(), f)
	}
	assert.ErrorContains(t, msl.Register("witness.metal", "// @kernel k\n// @threads 1, 1, 1\n// @group 1, 1, 1\n// @witness l ; ; threads 1 1 1 / 1 1 1 ; ok\n"), "witness.metal:4: @witness: this file declares no kernel l")
	_, err = msl.Tests("absent.metal")
	assert.EqualError(t, err, "the library has no source absent.metal")
}

// TestFunctionsWithout: what is said of a kernel's types before its declarations are read is what these say then.
func TestFunctionsWithout(t *testing.T) {
	for _, types := range [][]ir.DType{nil, {ir.F16}, {ir.BF16}, {ir.F16, ir.BF16}, {ir.F32}} {
		var want []string
		for _, name := range msl.Functions() {
			if slices.ContainsFunc(msl.Declarations(name), func(d *decl.Decl) bool {
				return !slices.ContainsFunc(d.Args, func(a decl.Arg) bool {
					return a.Kind == ir.DeviceArg && a.Mode != decl.Unused && slices.Contains(types, a.Elem)
				})
			}) {
				want = append(want, name)
			}
		}
		require.NotEmpty(t, want)
		assert.Equal(t, want, msl.FunctionsWithout(types...), types)
	}
}
