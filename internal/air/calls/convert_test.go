package calls

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// number is a value of any type, exactly. One of the two is set.
type number struct {
	v   *big.Float
	not string // "nan", "+inf", "-inf"
}

// format is how a type keeps numbers.
type format struct {
	kind byte
	t    typ
}

func (f format) String() string { return fmt.Sprintf("%c.%s", f.kind, f.t.suffix()) }

var formats = []format{
	{'u', int1s},
	{'u', typ{elem: "i8"}}, {'s', typ{elem: "i8"}}, {'u', typ{elem: "i16"}}, {'s', typ{elem: "i16"}},
	{'u', int32s}, {'s', int32s}, {'u', typ{elem: "i64"}}, {'s', typ{elem: "i64"}},
	{'f', typ{elem: "half"}}, {'f', typ{elem: "bfloat"}}, {'f', float32s},
}

// small are the values of a 16-bit type of floats from 0 on, by their bits, up to what
// infinity's bits would mean if the exponent went on.
func small(t typ) []*big.Float {
	digits, bias, top := 10, 15, 0x7c00
	if t.elem == "bfloat" {
		digits, bias, top = 7, 127, 0x7f80
	}
	var vs []*big.Float
	for b := 0; b <= top; b++ {
		m, e := int64(b&(1<<digits-1)), b>>digits
		if e > 0 {
			m += 1 << digits
		} else {
			e = 1
		}
		v := new(big.Float).SetPrec(400).SetInt64(m)
		vs = append(vs, v.SetMantExp(v, e-bias-digits))
	}
	return vs
}

var smalls = map[string][]*big.Float{"half": small(typ{elem: "half"}), "bfloat": small(typ{elem: "bfloat"})}

// smallFloats are the same as float64, which has them and the middles between them exactly.
var smallFloats = func() map[string][]float64 {
	m := map[string][]float64{}
	for t, vs := range smalls {
		for _, v := range vs {
			x, _ := v.Float64()
			m[t] = append(m[t], x)
		}
	}
	return m
}()

func (f format) decode(bits uint64) number {
	v := new(big.Float).SetPrec(400)
	switch {
	case f.kind == 'u':
		return number{v: v.SetInt(new(big.Int).SetUint64(bits))}
	case f.kind == 's':
		shift := 64 - f.t.bits()
		return number{v: v.SetInt64(int64(bits<<shift) >> shift)}
	case f.t.elem == "float":
		x := float64(math.Float32frombits(uint32(bits)))
		switch {
		case math.IsNaN(x):
			return number{not: "nan"}
		case math.IsInf(x, 0):
			return number{not: map[bool]string{true: "+inf", false: "-inf"}[x > 0]}
		}
		return number{v: v.SetFloat64(x)}
	}
	vs, m := smalls[f.t.elem], int(bits&0x7fff)
	switch negative := bits>>15 == 1; {
	case m >= len(vs):
		return number{not: "nan"}
	case m == len(vs)-1:
		return number{not: map[bool]string{true: "-inf", false: "+inf"}[negative]}
	case negative:
		return number{v: v.Neg(vs[m])}
	default:
		return number{v: vs[m]}
	}
}

// encode is the number in the format: integers truncated and clamped, floats rounded to the
// nearest, ties to even. A NaN of floats is all ones.
func (f format) encode(n number) uint64 {
	width := f.t.bits()
	if f.kind == 'f' {
		infinity := map[string]uint64{"half": 0x7c00, "bfloat": 0x7f80, "float": 0x7f800000}[f.t.elem]
		switch n.not {
		case "nan":
			return 1<<width - 1
		case "+inf":
			return infinity
		case "-inf":
			return infinity | 1<<(width-1)
		}
		if f.t.elem == "float" {
			x, _ := n.v.Float32()
			return uint64(math.Float32bits(x))
		}
		var r uint64
		if a, accuracy := n.v.Float64(); accuracy == big.Exact {
			a = math.Abs(a)
			vs := smallFloats[f.t.elem]
			i := sort.Search(len(vs), func(i int) bool { return vs[i] > a }) // vs[i-1] <= a < vs[i]
			if i < len(vs) {
				if middle := (vs[i-1] + vs[i]) / 2; a < middle || a == middle && i%2 == 1 {
					i--
				}
			}
			r = uint64(min(i, len(vs)-1))
		} else {
			vs, a := smalls[f.t.elem], new(big.Float).Abs(n.v)
			i := sort.Search(len(vs), func(i int) bool { return vs[i].Cmp(a) > 0 })
			if i < len(vs) {
				up, down := new(big.Float).Sub(vs[i], a), new(big.Float).Sub(a, vs[i-1])
				if c := up.Cmp(down); c > 0 || c == 0 && i%2 == 1 {
					i--
				}
			}
			r = uint64(min(i, len(vs)-1))
		}
		if n.v.Signbit() {
			r |= 0x8000
		}
		return r
	}
	if f.t.elem == "i1" {
		if n.not != "" || n.v.Sign() != 0 {
			return 1
		}
		return 0
	}
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(width))
	if f.kind == 's' {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	i := new(big.Int)
	switch n.not {
	case "nan":
		return 0
	case "+inf":
		i = hi
	case "-inf":
		i = lo
	default:
		n.v.Int(i)
	}
	if i.Cmp(hi) > 0 {
		i = hi
	}
	if i.Cmp(lo) < 0 {
		i = lo
	}
	return new(big.Int).And(i, new(big.Int).SetUint64(math.MaxUint64)).Uint64() & (math.MaxUint64 >> (64 - width))
}

// samples are all values up to 16 bits, else edges and random ones.
func (f format) samples(r *rand.Rand) []uint64 {
	width := f.t.bits()
	mask := uint64(math.MaxUint64) >> (64 - width)
	var x []uint64
	if width <= 16 {
		for i := range mask + 1 {
			x = append(x, i)
		}
		return x
	}
	for i := range width {
		for d := range uint64(5) {
			x = append(x, (1<<i+d-2)&mask, -(1<<i+d-2)&mask)
			// Ties of bfloats and halves, and their neighbours.
			x = append(x, (0x181<<i>>1+d-2)&mask, -(0x181<<i>>1+d-2)&mask, (0x1801<<i>>2+d-2)&mask, -(0x1801<<i>>2+d-2)&mask)
		}
	}
	for range 3000 {
		v := r.Uint64() & mask
		x = append(x, v, v>>r.IntN(width), v&^0xfff, v&^0xffff|0x8000)
	}
	if f.kind == 'f' {
		for range 2000 { // near integers of all sizes
			v := math.Ldexp(r.Float64()*4-2, r.IntN(66))
			x = append(x, uint64(math.Float32bits(float32(v))), uint64(math.Float32bits(float32(math.Trunc(v)))))
		}
	}
	return x
}

// TestConversions converts every value of up to 16 bits, and edges and random ones of the
// wider types, between all types.
func TestConversions(t *testing.T) {
	sample.Long(t)
	var fs []Function
	for i, to := range formats {
		for k, from := range formats {
			if !sample.Takes(t.Name(), i+k, 4) {
				continue
			}
			if to.kind == 'f' || from.kind == 'f' {
				fs = append(fs, Function{fmt.Sprintf("air.convert.%s.%s", to, from), to.t.String(), []string{from.t.String()}})
			}
		}
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(1, 2))
	put := func(b []byte, width int, v uint64) []byte {
		switch max(8, width) {
		case 8:
			return append(b, byte(v))
		case 16:
			return binary.LittleEndian.AppendUint16(b, uint16(v))
		case 32:
			return binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		return binary.LittleEndian.AppendUint64(b, v)
	}
	take := func(b []byte, width, i int) uint64 {
		switch max(8, width) {
		case 8:
			return uint64(b[i])
		case 16:
			return uint64(binary.LittleEndian.Uint16(b[2*i:]))
		case 32:
			return uint64(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return binary.LittleEndian.Uint64(b[8*i:])
	}
	checked := 0
	for _, from := range formats {
		x := from.samples(r)
		var in []byte
		var values []number
		for _, v := range x {
			in = put(in, from.t.bits(), v)
			values = append(values, from.decode(v))
		}
		for _, to := range formats {
			name := fmt.Sprintf("air.convert.%s.%s", to, from)
			if p.index(name) < 0 {
				continue
			}
			out := p.run(t, name, len(x), false, in)
			for i, v := range x {
				got, want := take(out, to.t.bits(), i), to.encode(values[i])
				if to.kind == 'f' && values[i].not == "nan" {
					if to.decode(got).not == "nan" {
						continue
					}
				}
				require.Equalf(t, want, got, "%s of 0x%x is 0x%x, want 0x%x", name, v, got, want)
				checked++
			}
		}
	}
	t.Logf("%d conversions", checked)
}
