package calls

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// integerMeaning are the functions of integers in arithmetic without bounds; results are
// taken modulo 2^width. The arguments x are as the sign says.
var integerMeaning = map[string]func(x []*big.Int, width uint, lo, hi *big.Int) *big.Int{
	"abs": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int { return new(big.Int).Abs(x[0]) },
	"abs_diff": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		d := new(big.Int).Sub(x[0], x[1])
		return d.Abs(d)
	},
	"min":     func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int { return sorted(x)[0] },
	"max":     func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int { return sorted(x)[1] },
	"min3":    func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int { return sorted(x)[0] },
	"median3": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int { return sorted(x)[1] },
	"max3":    func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int { return sorted(x)[2] },
	"clamp": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		return sorted([]*big.Int{sorted([]*big.Int{x[0], x[1]})[1], x[2]})[0]
	},
	"add_sat": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		return sorted([]*big.Int{lo, new(big.Int).Add(x[0], x[1]), hi})[1]
	},
	"sub_sat": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		return sorted([]*big.Int{lo, new(big.Int).Sub(x[0], x[1]), hi})[1]
	},
	"hadd": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		s := new(big.Int).Add(x[0], x[1])
		return s.Rsh(s, 1)
	},
	"rhadd": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		s := new(big.Int).Add(x[0], x[1])
		return s.Rsh(s.Add(s, big.NewInt(1)), 1)
	},
	"mul_hi": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		p := new(big.Int).Mul(x[0], x[1])
		return p.Rsh(p, w)
	},
	"mad_hi": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		p := new(big.Int).Mul(x[0], x[1])
		return p.Add(p.Rsh(p, w), x[2])
	},
	"mad_sat": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		p := new(big.Int).Mul(x[0], x[1])
		return sorted([]*big.Int{lo, p.Add(p, x[2]), hi})[1]
	},
	"mul24": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		return new(big.Int).Mul(low24(x[0], lo), low24(x[1], lo))
	},
	"mad24": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		p := new(big.Int).Mul(low24(x[0], lo), low24(x[1], lo))
		return p.Add(p, x[2])
	},
	"popcount": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		n := int64(0)
		for i := range int(w) {
			n += int64(x[0].Bit(i))
		}
		return big.NewInt(n)
	},
	"reverse_bits": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		r := new(big.Int)
		for i := range int(w) {
			r.SetBit(r, int(w)-1-i, x[0].Bit(i))
		}
		return r
	},
	"clz": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int { return big.NewInt(int64(int(w) - x[0].BitLen())) },
	"ctz": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		if x[0].Sign() == 0 {
			return big.NewInt(int64(w))
		}
		return big.NewInt(int64(x[0].TrailingZeroBits()))
	},
	"rotate": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		by := uint(new(big.Int).And(x[1], big.NewInt(int64(w-1))).Int64())
		up := new(big.Int).Lsh(x[0], by)
		return up.Or(up, new(big.Int).Rsh(x[0], w-by))
	},
	"select": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int { return x[x[2].Bit(0)] },
	"extract_bits": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		offset, bits := uint(x[1].Int64()), uint(x[2].Int64())
		v := new(big.Int).Rsh(modulo(x[0], w), offset)
		v = modulo(v, bits)
		if lo.Sign() < 0 && bits > 0 && v.Bit(int(bits)-1) == 1 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), bits))
		}
		return v
	},
	"insert_bits": func(x []*big.Int, w uint, lo, hi *big.Int) *big.Int {
		offset, bits := uint(x[2].Int64()), uint(x[3].Int64())
		v := new(big.Int).Set(modulo(x[0], w))
		for i := range int(bits) {
			v.SetBit(v, int(offset)+i, x[1].Bit(i))
		}
		return v
	},
}

func sorted(x []*big.Int) []*big.Int {
	x = slices.Clone(x)
	slices.SortFunc(x, func(a, b *big.Int) int { return a.Cmp(b) })
	return x
}

// modulo is x mod 2^bits, not negative.
func modulo(x *big.Int, bits uint) *big.Int {
	return new(big.Int).And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1)))
}

func low24(x, lo *big.Int) *big.Int {
	v := modulo(x, 24)
	if lo.Sign() < 0 && v.Bit(23) == 1 {
		v.Sub(v, big.NewInt(1<<24))
	}
	return v
}

// TestIntegers holds every function of integers against arithmetic without bounds: all pairs
// of 8 bits, edges and random values of the others.
func TestIntegers(t *testing.T) {
	sample.Long(t)
	r := rand.New(rand.NewPCG(3, 4))
	var fs []Function
	type one struct {
		op     string
		signed bool
		width  int
		f      Function
	}
	var ones []one
	for i, op := range slices.Sorted(maps.Keys(integerFunctions)) {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		family := integerFunctions[op]
		if op == "all" || op == "any" {
			continue // of truth values: TestConstants
		}
		require.Contains(t, integerMeaning, op)
		for _, width := range []int{8, 16, 32, 64} {
			n := &name{t: typ{elem: fmt.Sprintf("i%d", width)}}
			var params []string
			for _, c := range []byte(family.signature[1:]) {
				params = append(params, n.letter(c).String())
			}
			for _, sign := range map[bool][]string{true: {""}, false: {"s.", "u."}}[family.kind == patterns] {
				f := Function{fmt.Sprintf("air.%s.%si%d", op, sign, width), n.t.String(), params}
				fs = append(fs, f)
				ones = append(ones, one{op, sign == "s.", width, f})
			}
		}
	}
	p := start(t, fs)
	for _, o := range ones {
		count := 1200
		if o.width == 8 && len(o.f.Params) == 2 {
			count = 65536
		}
		var in [][]byte
		rows := make([][]*big.Int, count)
		for j, param := range o.f.Params {
			ty, err := parseType(param)
			require.NoError(t, err)
			var b []byte
			for i := range count {
				mask := ^uint64(0) >> (64 - ty.bits())
				v := r.Uint64() & mask
				switch edge := r.IntN(8); {
				case count == 65536:
					v = uint64(i>>(8*j)) & mask
				case edge == 0:
					v = mask >> 1
				case edge == 1:
					v = mask>>1 + 1
				case edge == 2:
					v = (uint64(r.IntN(5)) - 2) & mask
				case edge == 3:
					v >>= r.IntN(ty.bits())
				}
				x := new(big.Int).SetUint64(v)
				if o.op == "extract_bits" && j > 0 || o.op == "insert_bits" && j > 1 {
					// The bits lie within the integer, as Metal wants.
					v = uint64(r.IntN(o.width + 1))
					if j == len(o.f.Params)-1 {
						v = uint64(r.IntN(o.width + 1 - int(rows[i][j-1].Int64())))
					}
					x.SetUint64(v)
				} else if o.signed && v>>(ty.bits()-1) == 1 {
					x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(ty.bits())))
				}
				rows[i] = append(rows[i], x)
				for k := 0; k < max(1, ty.bits()/8); k++ {
					b = append(b, byte(v>>(8*k)))
				}
			}
			in = append(in, b)
		}
		hi := new(big.Int).Lsh(big.NewInt(1), uint(o.width))
		lo := new(big.Int)
		if o.signed {
			hi.Rsh(hi, 1)
			lo.Neg(hi)
		}
		hi.Sub(hi, big.NewInt(1))
		out := p.run(t, o.f.Name, count, false, in...)
		for i, row := range rows {
			var got uint64
			for k := 0; k < o.width/8; k++ {
				got |= uint64(out[i*o.width/8+k]) << (8 * k)
			}
			want := modulo(integerMeaning[o.op](row, uint(o.width), lo, hi), uint(o.width)).Uint64()
			require.Equalf(t, want, got, "%s%v", o.f.Name, row)
		}
	}
}
