package dispatches

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Element decodes element i of raw, whose elements of type t follow one another.
// bits is the element as it lies in memory.
func Element(raw []byte, t ir.DType, i int64) (v term.Value, bits uint64) {
	n := int64(t.Bits())
	first := i * n
	if at := first / 8; at+8 <= int64(len(raw)) { // no type of 64 bits begins within a byte
		bits = binary.LittleEndian.Uint64(raw[at:]) >> (first % 8)
	} else {
		for b := int64(0); b < n; b += 8 - (first+b)%8 { // byte by byte; the first may begin within one
			at := first + b
			part := uint64(raw[at/8]) >> (at % 8)
			bits |= part << b
		}
	}
	if n < 64 {
		bits &= 1<<n - 1
	}
	switch t {
	case ir.F32:
		return term.Value{F: float64(math.Float32frombits(uint32(bits)))}, bits
	case ir.F16:
		return term.Value{F: term.F16Value(uint16(bits))}, bits
	case ir.BF16:
		return term.Value{F: float64(math.Float32frombits(uint32(bits) << 16))}, bits
	}
	v.I = int64(bits)
	if t.Signed() {
		v.I = int64(bits<<(64-n)) >> (64 - n)
	}
	v.F = float64(v.I)
	return v, bits
}

// oddValues says which values that break careless arithmetic the random data has.
type oddValues uint8

const (
	noOdd  oddValues = iota
	nans             // a NaN now and then: for other odd values inexact terms have no error bounds
	allOdd           // also infinities, zeros of both signs, subnormals and the largest numbers
)

// fillElements fills raw with random elements: floats of both signs around 1, with
// odd values among them, all multiplied by scale; small integers for types that may hold
// an index; any bits for packed types.
func fillElements(raw []byte, t ir.DType, r *rand.Rand, odd oddValues, scale float32) {
	size := int(t.Size())
	if t == ir.Bool {
		for i := range raw {
			raw[i] = byte(r.IntN(2))
		}
		return
	}
	if t.Bits() <= 8 || size == 0 {
		noise(raw, r)
		return
	}
	for i := 0; i+size <= len(raw); i += size {
		var v uint64
		switch t {
		case ir.F32:
			v = uint64(math.Float32bits(scale * float(r, odd)))
		case ir.F16:
			v = uint64(term.F16Bits(float64(scale * float(r, odd))))
		case ir.BF16:
			v = uint64(math.Float32bits(scale*float(r, odd)) >> 16)
		default:
			v = uint64(integer(r))
		}
		switch size {
		case 4:
			binary.LittleEndian.PutUint32(raw[i:], uint32(v))
		case 2:
			binary.LittleEndian.PutUint16(raw[i:], uint16(v))
		default:
			binary.LittleEndian.PutUint64(raw[i:], v)
		}
	}
}

// takeOut sets some elements of a mask that is added to -inf, by which it takes keys out.
func takeOut(raw []byte, t ir.DType, r *rand.Rand) {
	size := int(t.Size())
	bits := map[ir.DType]uint64{ir.F32: 0xff800000, ir.F16: 0xfc00, ir.BF16: 0xff80}[t]
	for i := 0; i+size <= len(raw); i += size {
		if r.IntN(4) == 0 {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], bits)
			copy(raw[i:i+size], b[:])
		}
	}
}

// flushDenormals replaces the denormal f32 and bf16 elements of raw by zeros of the same sign, so
// that a device which flushes them to zero gets the same inputs as the interpreter.
func flushDenormals(raw []byte, t ir.DType) {
	switch t {
	case ir.F32:
		for ; len(raw) >= 4; raw = raw[4:] {
			if v := binary.LittleEndian.Uint32(raw); v&0x7f800000 == 0 {
				binary.LittleEndian.PutUint32(raw, v&0x80000000)
			}
		}
	case ir.BF16:
		for ; len(raw) >= 2; raw = raw[2:] {
			if v := binary.LittleEndian.Uint16(raw); v&0x7f80 == 0 {
				binary.LittleEndian.PutUint16(raw, v&0x8000)
			}
		}
	}
}

// flushed reports whether two results differ by no more than a few denormals, which the device
// may have flushed to zero.
func flushed(got, want float64) bool { return math.Abs(got-want) <= 16*0x1p-126 }

// noise fills raw with random bytes, of which a longer one has more behind them.
func noise(raw []byte, r *rand.Rand) {
	for ; len(raw) >= 8; raw = raw[8:] {
		binary.LittleEndian.PutUint64(raw, r.Uint64())
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], r.Uint64())
	copy(raw, last[:])
}

func float(r *rand.Rand, odd oddValues) float32 {
	u := r.Uint64()
	switch n := u >> 59; {
	case odd == nans && n == 0 && r.IntN(8) == 0:
		return math.Float32frombits([]uint32{0x7fc00000, 0x7f812345, 0xffd54321}[r.IntN(3)])
	case odd == allOdd && n < 4:
		return []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
			math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 1.1754944e-38, -1e-40, 65504, 1e-7,
			math.Float32frombits(0x7f812345), math.Float32frombits(0xffd54321)}[r.IntN(14)] // NaNs with a payload
	case n < 6:
		return float32(r.IntN(17) - 8) // few different numbers, so that some are equal
	case n < 8:
		return float32(r.NormFloat64() * 30)
	}
	// The sum of three uniform numbers is near enough to a normal one, of deviation
	// 1, and quicker; the factor fills the last bits.
	const part = 1 << 19
	return float32((float64(u%part+u/part%part+u/part/part%part)/part - 1.5) * 2.01)
}

func integer(r *rand.Rand) int64 {
	switch r.IntN(8) {
	case 0:
		return int64(r.IntN(3) - 2)
	case 1:
		return int64(r.IntN(4000))
	}
	return int64(r.IntN(9))
}
