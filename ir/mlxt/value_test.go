package mlxt

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

// reread parses what appendValue wrote, as [parser.value] does.
func reread(t require.TestingT, d ir.DType, text string) uint64 {
	if hex, ok := strings.CutPrefix(text, d.String()+":0x"); ok {
		v, err := strconv.ParseUint(hex, 16, d.Bits())
		require.NoError(t, err)
		return v
	}
	digits, negative := strings.CutPrefix(text, "-")
	v, err := parseValue(d, negative, digits)
	require.NoError(t, err, "%s %s", d, text)
	return v
}

func TestAllValuesOf16BitsReadBack(t *testing.T) {
	for _, d := range []ir.DType{ir.F16, ir.BF16, ir.U16, ir.I16} {
		for bits := range uint64(1 << 16) {
			text := string(appendValue(nil, d, bits))
			if got := reread(t, d, text); got != bits {
				t.Fatalf("%s %#04x is written %s, which is %#04x", d, bits, text, got)
			}
		}
	}
}

func TestAllValuesOf8BitsReadBack(t *testing.T) {
	for _, d := range []ir.DType{ir.Bool, ir.U8, ir.I8} {
		for bits := range uint64(1 << 8) {
			require.Equal(t, bits, reread(t, d, string(appendValue(nil, d, bits))), d)
		}
	}
}

func TestValuesReadBack(t *testing.T) {
	types := []ir.DType{ir.U32, ir.I32, ir.U64, ir.I64, ir.F32}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(types).Draw(t, "type")
		bits := rapid.Uint64().Draw(t, "bits") & (math.MaxUint64 >> (64 - d.Bits()))
		text := string(appendValue(nil, d, bits))
		if got := reread(t, d, text); got != bits {
			t.Fatalf("%s %#x is written %s, which is %#x", d, bits, text, got)
		}
	})
}

// The midpoint between two neighbours rounds to the even one, and numbers next to the midpoint
// round to the nearer one.
func TestHalvesRoundToNearestEven(t *testing.T) {
	for d, f := range halfFormats {
		inf := infinity(d)
		for low := range inf {
			a, b := f.decode(low), f.decode(low+1)
			if low+1 == inf {
				b = a + (a - f.decode(low-1)) // what would come next
			}
			mid := (a + b) / 2 // exact: float64 has the digits
			require.Equal(t, low+low&1, f.encode(mid), "%s midpoint above %#x", d, low)
			require.Equal(t, low, f.encode(math.Nextafter(mid, 0)), "%s below the midpoint above %#x", d, low)
			require.Equal(t, low+1, f.encode(math.Nextafter(mid, math.Inf(1))), "%s above the midpoint above %#x", d, low)
		}
	}
}

func TestValueTexts(t *testing.T) {
	for _, c := range []struct {
		d    ir.DType
		bits uint64
		text string
	}{
		{ir.F32, 0x3f800000, "1"},
		{ir.F32, 0x3727c5ac, "1e-05"},
		{ir.F32, 0x80000000, "-0"},
		{ir.F32, 0x7f7fffff, "3.4028235e+38"},
		{ir.F32, 0x00000001, "1e-45"},
		{ir.F32, 0xff800000, "-inf"},
		{ir.F32, 0x7fc00001, "f32:0x7fc00001"},
		{ir.F16, 0x2e66, "0.1"},
		{ir.F16, 0x7bff, "65504"},
		{ir.F16, 0x0001, "6e-08"},
		{ir.F16, 0x8000, "-0"},
		{ir.BF16, 0x3dcd, "0.1"},
		{ir.BF16, 0x7f7f, "3.39e+38"},
		{ir.BF16, 0x7f80, "inf"},
		{ir.BF16, 0xffc0, "bf16:0xffc0"},
		{ir.U64, math.MaxUint64, "18446744073709551615"},
		{ir.I64, 1 << 63, "-9223372036854775808"},
		{ir.I8, 0xff, "-1"},
		{ir.Bool, 1, "true"},
		{ir.Bool, 2, "bool:0x02"},
	} {
		require.Equal(t, c.text, string(appendValue(nil, c.d, c.bits)))
	}
}
