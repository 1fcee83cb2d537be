package air

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In a kernel that is not checked, what nothing has set has some value.
func TestUnsetUnchecked(t *testing.T) {
	m, err := parseModule("k.ll", []byte(`@mlxc.unset.memory.1 = external constant [16 x i8], align 256
define void @k(ptr addrspace(1) %0) {
  %2 = tail call <2 x float> @air.mlxc.unset.0(), !dbg !3
  %3 = load float, ptr @mlxc.unset.memory.1, align 4
  ret void
}
declare <2 x float> @air.mlxc.unset.0()
`))
	require.NoError(t, err)
	m.renameUnset(false)
	assert.Equal(t, "  %2 = freeze <2 x float> zeroinitializer, !dbg !3", m.funcs[0].lines[0])
	assert.Equal(t, "internal constant [16 x i8] zeroinitializer, align 256", m.globals[0].text)
	assert.Empty(t, m.declares)
}

func TestLayout(t *testing.T) {
	m := &module{types: []string{`%"struct.a b" = type { i8, <3 x float>, [3 x half] }`, "%self = type { %self, i8 }", "%odd = type { x86_fp80 }"}}
	for typ, want := range map[string]layout{
		"i1": {1, 1}, "float": {4, 4}, "<3 x half>": {8, 8}, "<64 x float>": {256, 256}, "ptr": {8, 8},
		"[3 x { i8, i32 }]": {24, 4}, `%"struct.a b"`: {48, 16}, "[0 x i64]": {0, 8},
		"<{ i8, [15 x i8], <2 x float> }>": {24, 1}, "%self": {}, "%odd": {}, "%none": {}, "[70000 x i8]": {}, "[2 x [60000 x i8]]": {120000, 1},
	} {
		assert.Equal(t, want, m.layout(typ), typ)
	}
	assert.Equal(t, 0, m.shadeBytes("[2 x [60000 x i8]]"))
	assert.Equal(t, 48, m.shadeBytes(`%"struct.a b"`))
}
