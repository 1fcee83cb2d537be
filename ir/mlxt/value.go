package mlxt

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// appendValue writes one value of an unpacked type that has the given bits: as the shortest decimal
// that reads back to the same bits, as inf, true or false, or, if no decimal denotes it, as its
// bits (f32:0x7fc00001).
func appendValue(b []byte, d ir.DType, bits uint64) []byte {
	switch {
	case d == ir.Bool && bits <= 1:
		return strconv.AppendBool(b, bits == 1)
	case d == ir.Bool:
		return appendBits(b, d, bits)
	case d == ir.F32:
		v := math.Float32frombits(uint32(bits))
		if v != v {
			return appendBits(b, d, bits)
		}
		return appendFloat32(b, v)
	case d.Float():
		return appendHalf(b, d, bits)
	case d.Signed():
		s := 64 - d.Bits()
		return strconv.AppendInt(b, int64(bits<<s)>>s, 10)
	}
	return strconv.AppendUint(b, bits, 10)
}

func appendBits(b []byte, d ir.DType, bits uint64) []byte {
	return fmt.Appendf(b, "%s:0x%0*x", d, d.Bits()/4, bits)
}

func appendFloat32(b []byte, v float32) []byte {
	if math.IsInf(float64(v), 0) {
		return appendInf(b, v < 0)
	}
	return strconv.AppendFloat(b, float64(v), 'g', -1, 32)
}

func appendInf(b []byte, negative bool) []byte {
	if negative {
		b = append(b, '-')
	}
	return append(b, "inf"...)
}

// appendHalf writes an f16 or bf16.
func appendHalf(b []byte, d ir.DType, bits uint64) []byte {
	v := halfFormats[d].decode(bits)
	switch {
	case v != v:
		return appendBits(b, d, bits)
	case math.IsInf(v, 0):
		return appendInf(b, v < 0)
	case v == math.Trunc(v) && math.Abs(v) < 1<<17:
		return strconv.AppendFloat(b, v, 'f', -1, 64) // 65504, not 6.55e+04
	}
	for digits := 1; ; digits++ { // 17 digits distinguish all float64 values
		s := strconv.FormatFloat(v, 'g', digits, 64)
		if got, err := parseValue(d, v < 0 || math.Signbit(v), strings.TrimPrefix(s, "-")); err == nil && got == bits {
			return append(b, s...)
		}
	}
}

// parseValue returns the bits of the value that text, without its sign, denotes. Floating-point
// numbers round to nearest, ties to even.
func parseValue(d ir.DType, negative bool, text string) (uint64, error) {
	switch {
	case d == ir.Bool:
		if !negative && text == "true" {
			return 1, nil
		}
		if !negative && text == "false" {
			return 0, nil
		}
		return 0, errors.New("is no bool: want true or false")
	case d.Float():
		return parseFloat(d, negative, text)
	}
	v, err := parseUint(text)
	if err != nil {
		return 0, err
	}
	most := uint64(math.MaxUint64) >> (64 - d.Bits())
	switch {
	case d.Signed() && negative && v <= most/2+1:
		return -v & most, nil
	case d.Signed() && !negative && v <= most/2, !d.Signed() && !negative && v <= most, v == 0:
		return v, nil
	}
	return 0, fmt.Errorf("is no %s", d)
}

// parseUint parses a decimal or 0x… integer of 64 bits.
func parseUint(text string) (uint64, error) {
	base := 10
	digits := text
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		base, digits = 16, text[2:]
	}
	v, err := strconv.ParseUint(digits, base, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("leaves 64 bits")
	case err != nil:
		return 0, errors.New("is no integer")
	}
	return v, nil
}

func parseFloat(d ir.DType, negative bool, text string) (uint64, error) {
	sign := uint64(0)
	if negative {
		sign = 1 << (d.Bits() - 1)
	}
	width := 64
	if d == ir.F32 {
		width = 32
	}
	v, err := strconv.ParseFloat(text, width)
	if err != nil && !errors.Is(err, strconv.ErrRange) || v != v || strings.ContainsAny(text, "xX_") {
		return 0, fmt.Errorf("is no %s: want a decimal, or bits like %[1]s:0x%0*x", d, d.Bits()/4, 1)
	}
	var bits uint64
	if d == ir.F32 {
		bits = uint64(math.Float32bits(float32(v)))
	} else {
		bits = halfFormats[d].encode(v)
	}
	if text != "inf" && bits == infinity(d) {
		return 0, fmt.Errorf("is too large for %s", d)
	}
	return sign | bits, nil
}

func infinity(d ir.DType) uint64 {
	if d == ir.F32 {
		return 0x7f800000
	}
	return halfFormats[d].encode(math.Inf(1))
}

// halfFormat is a binary floating-point format of 16 bits.
type halfFormat struct{ exponent, mantissa int } // bits

var halfFormats = map[ir.DType]halfFormat{ir.F16: {5, 10}, ir.BF16: {8, 7}}

// least is the exponent of the smallest normal number.
func (f halfFormat) least() int { return 2 - 1<<(f.exponent-1) }

func (f halfFormat) decode(bits uint64) float64 {
	m := int64(bits & (1<<f.mantissa - 1))
	e := int(bits>>f.mantissa) & (1<<f.exponent - 1)
	var v float64
	switch {
	case e == 1<<f.exponent-1 && m != 0:
		v = math.NaN()
	case e == 1<<f.exponent-1:
		v = math.Inf(1)
	case e == 0:
		v = math.Ldexp(float64(m), f.least()-f.mantissa)
	default:
		v = math.Ldexp(float64(m|1<<f.mantissa), e-1+f.least()-f.mantissa)
	}
	if bits>>15 != 0 {
		return math.Copysign(v, -1)
	}
	return v
}

// encode returns the bits of v ≥ 0, rounded to nearest, ties to even.
func (f halfFormat) encode(v float64) uint64 {
	inf := uint64(1<<f.exponent-1) << f.mantissa
	switch {
	case v == 0:
		return 0
	case math.IsInf(v, 1):
		return inf
	}
	_, e := math.Frexp(v) // v in [2^(e-1), 2^e)
	e = max(e-1, f.least())
	if e > 1<<(f.exponent-1)-1 {
		return inf
	}
	// The hidden bit of a normal mantissa adds the missing 1 to the exponent, as
	// does a mantissa that rounds up to the next power of two.
	n := uint64(math.RoundToEven(math.Ldexp(v, f.mantissa-e)))
	return min(inf, uint64(e-f.least())<<f.mantissa+n)
}
