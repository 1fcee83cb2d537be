package mlxg_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// Files hold the numbers of constants of package ir. These must never change, because old
// files would then be read wrongly. The tables are those of docs/file-format.md.
func TestNumbersOfTheFormat(t *testing.T) {
	for i, name := range []string{"invalid", "bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "u2", "u3", "u4", "u5", "u6"} {
		assert.Equal(t, name, ir.DType(i).String())
	}
	assert.False(t, ir.DType(18).Valid(), "a new element type needs a new version of the format")
	for i, name := range []string{"weight", "input", "output", "state", "scratch", "argument", "MemKind(6)"} {
		assert.Equal(t, name, ir.MemKind(i).String())
	}
	for i, name := range []string{"shared", "private"} {
		assert.Equal(t, name, ir.Storage(i).String())
	}
	for i, name := range []string{"builtin", "source", "metallib", "generated", "LibraryKind(4)"} {
		assert.Equal(t, name, ir.LibraryKind(i).String())
	}
	for i, name := range []string{"device", "constant", "threadgroup", "ArgKind(3)"} {
		assert.Equal(t, name, ir.ArgKind(i).String())
	}
	for i, name := range []string{"read", "write", "readwrite", "ArgAccess(3)"} {
		assert.Equal(t, name, ir.ArgAccess(i).String())
	}
	for i, name := range []string{"none", "fence", "event", "CommitOrder(3)"} {
		assert.Equal(t, name, ir.CommitOrder(i).String())
	}
	for i, name := range []string{"threadgroups", "threads"} {
		assert.Equal(t, name, ir.GridKind(i).String())
	}
	assert.Equal(t, []ir.InitKind{0, 1, 2, 3, 4}, []ir.InitKind{ir.InitNone, ir.InitBlob, ir.InitFill, ir.InitRandom, ir.InitValues})
	assert.Equal(t, []ir.BindingKind{0, 1, 2}, []ir.BindingKind{ir.BindView, ir.BindBytes, ir.BindScalar})
	for i, name := range []string{"barriers", "serial", "edges", "Ordering(3)"} {
		assert.Equal(t, name, ir.Ordering(i).String())
	}
	assert.Equal(t, 3, mlxg.Version)
}
