package mlxreplay

import (
	"encoding/binary"
	"math"
	"slices"
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
		"two NaNs":          {ir.F16, u16(0x3c00, 0x7e00), u16(0x3c00, 0xfe01), 1, true},
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

// The figures of a difference are those that a person works out.
func TestDifferenceFigures(t *testing.T) {
	f32 := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	x := differ(ir.F32, f32(1, 2, -4, 0), f32(1, 2.5, -4, float32(math.Copysign(0, -1))), 1)
	assert.Equal(t, 2, x.Bits, "zeros of two signs have other bits")
	assert.Equal(t, int64(1), x.First)
	assert.Equal(t, int64(1), x.at)
	assert.Equal(t, 0.5, x.Max)
	assert.Equal(t, 4.0, x.Of)
	assert.InDelta(t, 0.2, x.Relative, 1e-12)
	assert.Equal(t, 0.25*(1<<23), x.ULPs, "a quarter of the numbers between 2 and 4")
	assert.Equal(t, [2]any{2.0, 2.5}, *x.Values)
	// The first of those that differ most stands there, numbers have their signs, and not one is boxed but those.
	x = differ(ir.I32, []byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, []byte{2, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff}, 1)
	assert.Equal(t, [2]any{int64(1), int64(2)}, *x.Values)
	assert.Equal(t, [2]any{int64(-1), int64(-2)}, *differ(ir.I32, []byte{0xff, 0xff, 0xff, 0xff}, []byte{0xfe, 0xff, 0xff, 0xff}, 1).Values)
	assert.Equal(t, [2]any{uint64(0xff), uint64(0xfe)}, *differ(ir.U8, []byte{0xff}, []byte{0xfe}, 1).Values)
	assert.Equal(t, [2]any{1.0, "NaN"}, *differ(ir.F32, f32(5, 1, 1), f32(3, float32(math.NaN()), float32(math.NaN())), 1).Values)
	a, b := f32(slices.Repeat([]float32{1}, 10_000)...), f32(slices.Repeat([]float32{2}, 10_000)...)
	assert.Less(t, testing.AllocsPerRun(1, func() { differ(ir.F32, a, b, 1) }), 20.0)
	// Next to each other, over zero, and in half a float.
	assert.Equal(t, 1.0, differ(ir.F32, f32(1), f32(math.Nextafter32(1, 2)), 1).ULPs)
	assert.Equal(t, 2.0, differ(ir.F32, f32(math.SmallestNonzeroFloat32), f32(-math.SmallestNonzeroFloat32), 1).ULPs)
	assert.Equal(t, 1.0, differ(ir.F16, []byte{0, 0x3c}, []byte{1, 0x3c}, 1).ULPs)
	assert.Equal(t, []int64{1, 2}, place([]int64{2, 3}, 5))
	assert.Equal(t, []int64{7}, place([]int64{2, 3}, 7), "more elements than the shape says")
	assert.Equal(t, []int64{7}, place(nil, 7))
}

// A memory that says no type has that of all arguments by which it is bound, or bytes.
func TestTypeOf(t *testing.T) {
	g := &ir.Graph{Memories: []ir.Memory{{Name: "m", Size: 8, Alias: ir.NoMem}}, Kernels: []ir.Kernel{{Args: []ir.Arg{{Slot: 0, Type: ir.F32}, {Slot: 1, Type: ir.F32}, {Slot: 2, Type: ir.U32}}}}}
	bind := func(slots ...uint8) ir.DType {
		d := &ir.Dispatch{}
		for _, s := range slots {
			d.Bindings = append(d.Bindings, ir.Binding{Slot: s, Kind: ir.BindView, View: ir.View{Len: ir.Const(8)}})
		}
		g.Nodes = []ir.Node{d}
		return typeOf(g, 0)
	}
	assert.Equal(t, ir.U8, bind())
	assert.Equal(t, ir.F32, bind(0, 1))
	assert.Equal(t, ir.U8, bind(0, 2))
	g.Memories[0].Size = 7
	assert.Equal(t, ir.U8, bind(0), "no whole elements")
	g.Memories[0].DType = ir.BF16
	assert.Equal(t, ir.BF16, bind(0, 2))
}
