package llvm

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLayout(t *testing.T) {
	m := &Module{Types: []string{`%"struct.a b" = type { i8, <3 x float>, [3 x half] }`, "%self = type { %self, i8 }", "%odd = type { x86_fp80 }"}}
	for typ, want := range map[string]Layout{
		"i1": {1, 1}, "float": {4, 4}, "<3 x half>": {8, 8}, "<64 x float>": {256, 256}, "ptr": {8, 8},
		"[3 x { i8, i32 }]": {24, 4}, `%"struct.a b"`: {48, 16}, "[0 x i64]": {0, 8},
		"<{ i8, [15 x i8], <2 x float> }>": {24, 1}, "%self": {}, "%odd": {}, "%none": {}, "[70000 x i8]": {}, "[2 x [60000 x i8]]": {120000, 1},
	} {
		assert.Equal(t, want, m.Layout(typ), typ)
	}
}
