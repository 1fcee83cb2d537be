package msl_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

const foreignDigest = "8899aabbccddeeff00112233445566778899aabbccddeeff0011223344556677"

// Another text declares kernels of a compiled library or of a source file, which it names by the
// digest of its file. The argument table of the graph may list more accesses than these
// declarations.
func TestDeclarationsOfOtherFiles(t *testing.T) {
	const text = "// @library metallib \"engine.metallib\" sha256 " + foreignDigest + `
// @kernel rmsfloat32
// @effects
// @arg 0 x device f32[threads] read
// @arg 1 w device f32 unused
// @arg 2 y device f32[threads] write
// @arg 3 n constant i32[2]
// @threads threads, 1, 1
// @group _, _, _
`
	require.NoError(t, msl.Register("engine.effects", text))
	var digest ir.Digest
	_, err := hex.Decode(digest[:], []byte(foreignDigest))
	require.NoError(t, err)
	kernel := func(change func(k *ir.Kernel)) *ir.Kernel {
		k := &ir.Kernel{Name: "k", Library: ir.Library{Kind: ir.Metallib, Path: "elsewhere.metallib", Digest: digest}, Function: "rmsfloat32", Args: []ir.Arg{
			{Slot: 0, Name: "a", Type: ir.F32, Access: ir.ReadWriteArg}, {Slot: 1, Name: "b", Type: ir.F32}, {Slot: 2, Name: "c", Type: ir.F32, Access: ir.WriteArg},
			{Slot: 3, Name: "d", Kind: ir.ConstantArg, Type: ir.I32},
		}}
		if change != nil {
			change(k)
		}
		return k
	}
	k := kernel(nil)
	assert.True(t, msl.Declared(k))
	assert.True(t, msl.EffectsOnly(k))
	file, ok := msl.Registered(k)
	assert.True(t, ok)
	assert.Equal(t, "engine.effects", file)
	assert.NotContains(t, msl.Declarations("rmsfloat32")[0].File, "engine", "the library's kernel of this name is another")
	assert.False(t, msl.EffectsOnly(&ir.Kernel{Function: "rmsfloat32"}))
	_, ok = msl.Registered(&ir.Kernel{Function: "rmsfloat32"})
	assert.False(t, ok)
	_, ok = msl.TextOf(k)
	assert.False(t, ok, "the file of declarations is not the source of its kernels")
	for _, change := range []func(*ir.Kernel){
		func(k *ir.Kernel) { k.Function = "other" },
		func(k *ir.Kernel) { k.Library.Digest[0]++ },
		func(k *ir.Kernel) { k.Library.Digest = ir.Digest{} },
		func(k *ir.Kernel) { k.Library.Kind = ir.SourceFile },
	} {
		assert.False(t, msl.Declared(kernel(change)))
	}

	describe := func(k *ir.Kernel) (*ir.Effects, error) {
		b := ir.NewBuilder("g")
		m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 4096})
		d := b.Dispatch(ir.Dispatch{Kernel: b.Kernel(*k), GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(8), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{8, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(m, 0, 64)), ir.BufferArg(1, ir.ViewOf(m, 64, 64)), ir.BufferArg(2, ir.ViewOf(m, 128, 64)), ir.BytesArg(3, make([]byte, 8))}})
		cached, err2 := msl.NewCache(b.Unfinished()).Describe(d)
		e, err := msl.Describe(b.Unfinished(), d)
		require.Equal(t, err == nil, err2 == nil)
		require.True(t, e.Equal(cached))
		return e, err
	}
	e, err := describe(k)
	require.NoError(t, err)
	assert.Len(t, e.Reads, 1)
	assert.Len(t, e.Writes, 1)
	for want, change := range map[string]func(k *ir.Kernel){
		"argument 2 (y) is declared to be written, by the table of the graph it is only read": func(k *ir.Kernel) { k.Args[2].Access = ir.ReadArg },
		"argument 0 (x) is declared as device f32, the table of the graph has device f16":     func(k *ir.Kernel) { k.Args[0].Type = ir.F16 },
		"argument 3 (n) is declared as constant i32, the table of the graph has constant i32": func(k *ir.Kernel) { k.Args[3].Count = 3 },
		"has argument 4 (more), of which engine.effects:2 says nothing":                       func(k *ir.Kernel) { k.Args = append(k.Args, ir.Arg{Slot: 4, Name: "more", Type: ir.F32}) },
		"argument 0 (x) is declared, and not in the table of the graph":                       func(k *ir.Kernel) { k.Args = k.Args[1:] },
	} {
		_, err := describe(kernel(change))
		assert.ErrorContains(t, err, want)
	}
	assert.ErrorContains(t, msl.Register("twice.effects", text), "twice.effects:2: engine.effects:2 declares the kernel rmsfloat32 of engine.metallib: leave one of them out")
}

// TestNoText: Metal's compiler accepts only UTF-8, and a text ends for it at a zero byte. The error
// names the first such byte.
func TestNoText(t *testing.T) {
	for text, at := range map[string]string{"// \xb5s\n": "byte 3 is", "kernel\x00": "byte 6 is"} {
		path := filepath.Join(t.TempDir(), "k.metal")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := msl.SourceOf(&ir.Kernel{Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: path}})
		require.ErrorContains(t, err, at)
	}
}
