package mlxreplay

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/ir"
)

func TestDiffer(t *testing.T) {
	f32 := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	u16 := func(v ...uint16) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
		return b
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, k := range map[string]struct {
		t    ir.DType
		a, b []byte
		bits int
		ok   bool
	}{
		"equal":             {ir.F32, f32(1, nan, inf), f32(1, nan, inf), 0, true},
		"near":              {ir.F32, f32(100, 1), f32(100.05, 1), 1, true},
		"far":               {ir.F32, f32(100, 1), f32(100.2, 1), 1, false},
		"NaN and a number":  {ir.F32, f32(1, nan), f32(1, 2), 1, false},
		"infinity":          {ir.F32, f32(1, inf), f32(1, -inf), 1, false},
		"all zero":          {ir.F32, f32(0, 0), f32(0, 0), 0, true},
		"zero and not":      {ir.F32, f32(0, 0), f32(0, 1), 1, false},
		"lengths":           {ir.F32, f32(1), f32(1, 2), 0, false},
		"halves near":       {ir.F16, u16(0x3c00, 1), u16(0x3c00, 2), 1, true}, // 1, denormals
		"halves far":        {ir.F16, u16(0x3c00, 0xbc00), u16(0x3c00, 0x3c00), 1, false},
		"bf16 far":          {ir.BF16, u16(0x3f80), u16(0x3f81), 1, false},
		"integers are bits": {ir.U32, f32(1), f32(1.0000001), 1, false},
	} {
		x := differ(k.t, k.a, k.b, 1e-3)
		assert.Equal(t, k.bits, x.Bits, name)
		assert.Equal(t, k.ok, x.OK, name)
	}
}
