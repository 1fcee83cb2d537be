package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// Every kind has a name of its own, which parses back to it. A value that is no kind prints as
// such.
func TestKindNames(t *testing.T) {
	for k := range ir.MemKind(6) {
		got, ok := ir.ParseMemKind(k.String())
		require.True(t, ok)
		require.Equal(t, k, got)
		require.Equal(t, k == ir.Weight || k == ir.Input || k == ir.Argument, k.ReadOnly())
	}
	require.Equal(t, "MemKind(6)", ir.MemKind(6).String())
	_, ok := ir.ParseMemKind("Weight")
	require.False(t, ok)

	for k := range ir.ArgKind(3) {
		got, ok := ir.ParseArgKind(k.String())
		require.True(t, ok)
		require.Equal(t, k, got)
	}
	require.Equal(t, "ArgKind(3)", ir.ArgKind(3).String())
	_, ok = ir.ParseArgKind("")
	require.False(t, ok)

	for a := range ir.ArgAccess(3) {
		got, ok := ir.ParseArgAccess(a.String())
		require.True(t, ok)
		require.Equal(t, a, got)
	}
	require.Equal(t, "ArgAccess(3)", ir.ArgAccess(3).String())
	_, ok = ir.ParseArgAccess("none")
	require.False(t, ok)

	for o := range ir.CommitOrder(3) {
		got, ok := ir.ParseCommitOrder(o.String())
		require.True(t, ok)
		require.Equal(t, o, got)
	}
	require.Equal(t, "CommitOrder(3)", ir.CommitOrder(3).String())
	_, ok = ir.ParseCommitOrder("barrier")
	require.False(t, ok)

	require.Equal(t, []string{"builtin", "source", "metallib", "generated", "LibraryKind(4)"}, []string{ir.Builtin.String(), ir.SourceFile.String(), ir.Metallib.String(), ir.Generated.String(), ir.LibraryKind(4).String()})
	require.Equal(t, []string{"shared", "private"}, []string{ir.Shared.String(), ir.Private.String()})
	require.Equal(t, []string{"threadgroups", "threads"}, []string{ir.Threadgroups.String(), ir.Threads.String()})
	require.Equal(t, "#12", ir.ID(12).String())
}

func TestDTypes(t *testing.T) {
	for _, c := range []struct {
		d             ir.DType
		name          string
		bits          int
		size          int64
		float, signed bool
	}{
		{ir.Bool, "bool", 8, 1, false, false},
		{ir.U8, "u8", 8, 1, false, false}, {ir.I8, "i8", 8, 1, false, true},
		{ir.U16, "u16", 16, 2, false, false}, {ir.I16, "i16", 16, 2, false, true},
		{ir.U32, "u32", 32, 4, false, false}, {ir.I32, "i32", 32, 4, false, true},
		{ir.U64, "u64", 64, 8, false, false}, {ir.I64, "i64", 64, 8, false, true},
		{ir.F16, "f16", 16, 2, true, false}, {ir.BF16, "bf16", 16, 2, true, false}, {ir.F32, "f32", 32, 4, true, false},
		{ir.U2, "u2", 2, 0, false, false}, {ir.U3, "u3", 3, 0, false, false}, {ir.U4, "u4", 4, 0, false, false}, {ir.U5, "u5", 5, 0, false, false}, {ir.U6, "u6", 6, 0, false, false},
	} {
		require.True(t, c.d.Valid())
		require.Equal(t, c.name, c.d.String())
		require.Equal(t, c.bits, c.d.Bits(), c.name)
		require.Equal(t, c.size, c.d.Size(), c.name)
		require.Equal(t, c.float, c.d.Float(), c.name)
		require.Equal(t, c.signed, c.d.Signed(), c.name)
		got, err := ir.ParseDType(c.name)
		require.NoError(t, err)
		require.Equal(t, c.d, got)
	}
	for _, d := range []ir.DType{ir.Invalid, ir.U6 + 1, 255} {
		require.False(t, d.Valid())
		require.Zero(t, d.Bits())
	}
	require.Equal(t, "DType(18)", (ir.U6 + 1).String())
	for _, s := range []string{"invalid", "", "F32", "u7"} {
		_, err := ir.ParseDType(s)
		require.Error(t, err, s)
	}
	_, err := ir.ParseDType("f8")
	require.EqualError(t, err, `unknown element type "f8" (want one of bool, u8…u64, i8…i64, f16, bf16, f32, u2…u6)`)
}

func TestKernelArgs(t *testing.T) {
	k := &sound().Graphs[0].Kernels[0]
	a, ok := k.Arg(0)
	require.True(t, ok)
	require.Equal(t, "a", a.Name, "not the threadgroup argument of slot 0")
	_, ok = k.Arg(7)
	require.False(t, ok)
	a, ok = k.ArgNamed("tg")
	require.True(t, ok)
	require.Equal(t, ir.ThreadgroupArg, a.Kind)
	_, ok = k.ArgNamed("b")
	require.False(t, ok)
}

func TestDescribe(t *testing.T) {
	g := sound().Graphs[0]
	var got []string
	for i := range g.Nodes {
		got = append(got, g.DescribeNode(i))
	}
	require.Equal(t, []string{"#0 fn", "node 1", "#1 copy", "node 3", "node 4 (barrier)", "#2 fill", "node 6 (commit)"}, got)
}
