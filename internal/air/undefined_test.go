package air

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/llvm"
)

// In a kernel that is not checked, what nothing has set has some value.
func TestUnsetUnchecked(t *testing.T) {
	m, err := ReadModule("k.ll", []byte(`@mlxc.unset.memory.1 = external constant [16 x i8], align 256
define void @k(ptr addrspace(1) %0) {
  %2 = tail call <2 x float> @air.mlxc.unset.0(), !dbg !3
  %3 = load float, ptr @mlxc.unset.memory.1, align 4
  ret void
}
declare <2 x float> @air.mlxc.unset.0()
`))
	require.NoError(t, err)
	m.renameUnset(false)
	assert.Equal(t, "  %2 = freeze <2 x float> zeroinitializer, !dbg !3", m.Funcs[0].Lines[0])
	assert.Equal(t, "internal constant [16 x i8] zeroinitializer, align 256", m.Globals[0].Text)
	assert.Empty(t, m.Declares)
}

// States are kept of variables that are small enough, and whose layout is known.
func TestShadeBytes(t *testing.T) {
	m := &Module{Module: &llvm.Module{Types: []string{"%struct.a = type { i8, <3 x float>, [3 x half] }", "%odd = type { x86_fp80 }"}}}
	assert.Equal(t, 0, m.shadeBytes("[2 x [60000 x i8]]"))
	assert.Equal(t, 0, m.shadeBytes("%odd"))
	assert.Equal(t, 48, m.shadeBytes("%struct.a"))
}
