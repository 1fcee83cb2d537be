package kernelcases

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// Rule gives the contents of a buffer: element i is (Low + hash(Seed, i) mod (High-Low+1)) · Scale, rounded to the
// buffer's type. Scale 0 stands for 1. If High and Low are 0, the elements are the bits of the hash.
type Rule struct {
	Seed      uint64
	Low, High int64
	Scale     float64
}

// hash is the finalizer of splitmix64, on a Weyl sequence of its own for each seed.
func hash(seed, i uint64) uint64 {
	x := seed*0xd1342543de82ef95 + (i+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// elementType is a type of elements.
type elementType struct {
	size, wanted int     // bytes in a buffer, and as results are stored
	mantissa     int     // bits of a float's fraction, 0 for integers
	least        float64 // smallest normal float
}

var types = map[string]elementType{
	"bool": {1, 1, 0, 0}, "u8": {1, 1, 0, 0}, "i8": {1, 1, 0, 0}, "u16": {2, 2, 0, 0}, "i16": {2, 2, 0, 0}, "u32": {4, 4, 0, 0}, "i32": {4, 4, 0, 0}, "u64": {8, 8, 0, 0}, "i64": {8, 8, 0, 0},
	"f16": {2, 4, 10, 0x1p-14}, "bf16": {2, 4, 7, 0x1p-126}, "f32": {4, 4, 23, 0x1p-126},
	"c64": {8, 8, 23, 0x1p-126}, // two floats
}

// before returns the contents of a buffer before the dispatch; nil if they are not given.
func (c *Case) before(a *Arg) []byte {
	if a.Given != nil {
		return c.data[a.Given.At:][:a.Given.Size]
	}
	if a.Rule == nil {
		return nil
	}
	t, n := types[a.Type], a.Count
	size := t.size
	if a.Type == "c64" {
		size, n = 4, 2*n
	}
	out := make([]byte, 0, n*size)
	for i := range n {
		h := hash(a.Rule.Seed, uint64(i))
		if a.Rule.Low != 0 || a.Rule.High != 0 {
			v := a.Rule.Low + int64(h%uint64(a.Rule.High-a.Rule.Low+1))
			h = uint64(v)
			if t.mantissa > 0 {
				f := float64(v)
				if a.Rule.Scale != 0 {
					f *= a.Rule.Scale
				}
				h = t.bits(f)
			}
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], h)
		out = append(out, b[:size]...)
	}
	return out
}

// bits rounds a number to a float of the type, to nearest, ties to even. The number is no
// NaN and in the normal range, or zero.
func (t elementType) bits(f float64) uint64 {
	switch t.mantissa {
	case 23:
		return uint64(math.Float32bits(float32(f)))
	case 7:
		b := math.Float64bits(f)
		drop := uint(52 - 7)
		b += 1<<(drop-1) - 1 + b>>drop&1
		v := math.Float64frombits(b >> drop << drop)
		return uint64(math.Float32bits(float32(v)) >> 16)
	}
	b := math.Float64bits(f)
	drop := uint(52 - 10)
	b += 1<<(drop-1) - 1 + b>>drop&1
	sign, exponent, fraction := b>>63, int(b>>52&0x7ff)-1023+15, b>>drop&0x3ff
	if f == 0 {
		return sign << 15
	}
	return sign<<15 | uint64(exponent)<<10 | fraction
}

// float returns the value of a float's bits.
func (t elementType) float(b uint64) float64 {
	switch {
	case t.mantissa == 23:
		return float64(math.Float32frombits(uint32(b)))
	case t.mantissa == 7:
		return float64(math.Float32frombits(uint32(b) << 16))
	}
	sign, exponent, fraction := 1-2*float64(b>>15&1), int(b>>10&31), float64(b&0x3ff)
	switch exponent {
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	case 0:
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// ulp returns the distance from v to the next float of the type.
func (t elementType) ulp(v float64) float64 {
	_, e := math.Frexp(max(math.Abs(v), t.least))
	return math.Ldexp(1, e-1-t.mantissa)
}

// compare compares a buffer with its expected contents. It returns the largest fraction of a tolerance that an
// element has used.
func (c *Case) compare(a *Arg, got []byte) (used float64, _ error) {
	t := types[a.Type]
	w := a.Want
	if w != nil && w.Every > 1 {
		var some []byte
		for i := 0; i < len(got); i += w.Every * t.size {
			some = append(some, got[i:i+t.size]...)
		}
		got = some
	}
	if w == nil {
		if before := c.before(a); before != nil && !bytes.HasPrefix(got, before) {
			return 0, fmt.Errorf("%s: %s was changed", c.Name, a.Name)
		}
		return 0, nil
	}
	want := c.data[w.At:][:w.Size]
	if t.mantissa == 0 {
		for i := 0; i < len(want); i += t.size {
			if !bytes.Equal(got[i:i+t.size], want[i:i+t.size]) {
				return 0, fmt.Errorf("%s: %s[%d] of %d is %x, not %x (bytes, lowest first)", c.Name, a.Name, i/t.size*max(w.Every, 1), a.Count, got[i:i+t.size], want[i:i+t.size])
			}
		}
		return 0, nil
	}
	size := t.size
	if a.Type == "c64" {
		size = 4
	}
	for i := 0; i*4 < len(want); i++ {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(want[4*i:])))
		var b [8]byte
		copy(b[:], got[i*size:][:size])
		y := t.float(binary.LittleEndian.Uint64(b[:]))
		if x == y || x != x && y != y {
			continue
		}
		tolerance := w.Abs + w.Rel*math.Abs(x) + w.ULP*t.ulp(x)
		part := math.Abs(x-y) / tolerance
		if !(part <= 1) || math.IsInf(x, 0) {
			return part, fmt.Errorf("%s: %s[%d] of %d is %v, not %v: %.3g times what is tolerated", c.Name, a.Name, i*max(w.Every, 1), a.Count, y, x, part)
		}
		used = max(used, part)
	}
	return used, nil
}
