package ptxrun

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/msl/term"
)

// typ is a type of PTX.
type typ struct {
	kind byte // b, u, s, f, p
	bits int
}

func typeOf(s string) (typ, bool) {
	if s == "pred" {
		return typ{'p', 1}, true
	}
	if len(s) < 2 || !strings.Contains("busf", s[:1]) {
		return typ{}, false
	}
	n, err := strconv.Atoi(s[1:])
	return typ{s[0], n}, err == nil
}

// low returns a value without the bits above those of a type.
func (t typ) low(v uint64) uint64 {
	if t.bits >= 64 {
		return v
	}
	return v & (1<<t.bits - 1)
}

// signed returns a value as a signed number.
func (t typ) signed(v uint64) int64 { return int64(v<<(64-t.bits)) >> (64 - t.bits) }

// resolve returns the function that executes an instruction; an error if that is not known.
func resolve(in *instruction) (func(*thread, *instruction) error, error) {
	op := in.op
	last, ok := typeOf(op[len(op)-1])
	unknown := fmt.Errorf("%s is not known here", strings.Join(op, "."))
	need := func(n int) bool { return len(in.args) == n }
	switch op[0] {
	case "ret", "exit":
		return func(t *thread, _ *instruction) error { t.finished = true; return nil }, nil
	case "bra":
		if !need(1) || in.args[0].kind != 'l' {
			return nil, unknown
		}
		return func(t *thread, in *instruction) error { t.next = in.args[0].index; return nil }, nil
	case "griddepcontrol":
		name := op[len(op)-1]
		return func(t *thread, _ *instruction) error { t.Calls[name]++; return nil }, nil
	case "prefetch":
		if last.bits != 0 || !need(1) || op[len(op)-1] != "L2" {
			return nil, unknown
		}
		return func(t *thread, in *instruction) error {
			return t.access(&in.args[0], []operand{{kind: '_'}}, 1, false, global)
		}, nil
	}
	if f := asyncOf(in); f != nil {
		return f, nil
	}
	if f := bitsOf(in); f != nil {
		return f, nil
	}
	if f := remoteOf(in); f != nil {
		return f, nil
	}
	switch f, full := bfloats[strings.Join(op, ".")], strings.Join(op, "."); {
	case f != nil && need(2):
		return func(t *thread, in *instruction) error { t.set(&in.args[0], f(t.value(&in.args[1]))); return nil }, nil
	case full == "fma.rn.bf16x2" && need(4):
		return func(t *thread, in *instruction) error {
			a, b, c := t.value(&in.args[1]), t.value(&in.args[2]), t.value(&in.args[3])
			t.set(&in.args[0], fusedBfloat(a>>16, b>>16, c>>16)<<16|fusedBfloat(a&0xffff, b&0xffff, c&0xffff))
			return nil
		}, nil
	case full == "popc.b32" && need(2):
		return func(t *thread, in *instruction) error {
			t.set(&in.args[0], uint64(bits.OnesCount32(uint32(t.value(&in.args[1])))))
			return nil
		}, nil
	case full == "cvta.global.u64" && need(2): // a global address is a generic one
		return func(t *thread, in *instruction) error { t.set(&in.args[0], t.value(&in.args[1])); return nil }, nil
	case full == "cvt.rn.bf16x2.f32" && need(3):
		return func(t *thread, in *instruction) error {
			t.set(&in.args[0], bfloat(t.value(&in.args[1]))<<16|bfloat(t.value(&in.args[2])))
			return nil
		}, nil
	}
	if op[0] == "setp" && op[len(op)-1] == "bf16" {
		last, ok = typ{'f', bfloatBits}, true
	}
	if !ok {
		return nil, unknown
	}
	switch op[0] {
	case "ld", "st":
		store := op[0] == "st"
		n := max(1, in.vector)
		if !need(n + 1) {
			return nil, unknown
		}
		if op[1] == "param" && !store && n == 1 && in.args[1].kind == 'p' {
			return func(t *thread, in *instruction) error { t.set(&in.args[0], last.low(t.value(&in.args[1]))); return nil }, nil
		}
		at := n
		if store {
			at = 0
		}
		where, known := map[string]space{"global": global, "shared": ownShared, "shared::cta": ownShared, "shared::cluster": clusterShared}[op[1]]
		if !known || in.args[at].kind != '[' {
			return nil, unknown
		}
		return func(t *thread, in *instruction) error {
			if store {
				return t.access(&in.args[0], in.args[1:], last.bits/8, true, where)
			}
			err := t.access(&in.args[n], in.args[:n], last.bits/8, false, where)
			if last == (typ{'s', 8}) { // as cvt.s8
				for i := range in.args[:n] {
					t.set(&in.args[i], uint64(last.signed(t.value(&in.args[i]))))
				}
			}
			return err
		}, nil
	case "mov":
		if in.vector == 2 && need(3) && in.first { // {low, high}, whole
			half := last.bits / 2
			return func(t *thread, in *instruction) error {
				v := t.value(&in.args[2])
				t.set(&in.args[0], v&(1<<half-1))
				t.set(&in.args[1], v>>half)
				return nil
			}, nil
		}
		if in.vector == 2 && need(3) { // whole, {low, high}
			half := last.bits / 2
			return func(t *thread, in *instruction) error {
				t.set(&in.args[0], t.value(&in.args[1])&(1<<half-1)|t.value(&in.args[2])<<half)
				return nil
			}, nil
		}
		if !need(2) || in.vector > 0 {
			return nil, unknown
		}
		return func(t *thread, in *instruction) error { t.set(&in.args[0], last.low(t.value(&in.args[1]))); return nil }, nil
	case "selp":
		if !need(4) {
			return nil, unknown
		}
		return func(t *thread, in *instruction) error {
			v := t.value(&in.args[2])
			if t.value(&in.args[3]) != 0 {
				v = t.value(&in.args[1])
			}
			t.set(&in.args[0], last.low(v))
			return nil
		}, nil
	case "setp":
		holds, err := comparison(op[1], last)
		if err != nil || !need(3) || len(op) != 3 {
			return nil, unknown
		}
		return func(t *thread, in *instruction) error {
			t.set(&in.args[0], flag(holds(t.value(&in.args[1]), t.value(&in.args[2]))))
			return nil
		}, nil
	case "cvt":
		from := last
		to, ok := typeOf(op[len(op)-2])
		f := conversion(op[1:len(op)-2], to, from)
		if !ok || f == nil || !need(2) {
			return nil, unknown
		}
		return func(t *thread, in *instruction) error { t.set(&in.args[0], f(t.value(&in.args[1]))); return nil }, nil
	}
	if f := arithmetic(op[0], op[1:len(op)-1], last); f != nil && len(in.args) >= 2 && len(in.args) <= 4 {
		return func(t *thread, in *instruction) error {
			var x [3]uint64
			for i := range in.args[1:] {
				x[i] = t.value(&in.args[1+i])
			}
			t.set(&in.args[0], f(x[0], x[1], x[2]))
			return nil
		}, nil
	}
	return nil, unknown
}

// bfloats are the operations of one bfloat: conversions, and its sign.
var bfloats = map[string]func(uint64) uint64{
	"cvt.f32.bf16":     func(v uint64) uint64 { return ofSingle(float32(ofBfloat(v))) },
	"cvt.f64.bf16":     func(v uint64) uint64 { return ofDouble(ofBfloat(v)) },
	"cvt.rn.bf16.f32":  bfloat,
	"cvt.rna.tf32.f32": tf32,
	"neg.bf16":         func(v uint64) uint64 { return v&0xffff ^ 1<<15 },
	"abs.bf16":         func(v uint64) uint64 { return v & 0x7fff },
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// bfloatBits stands for the 16 bits of a bfloat, of which a half has as many.
const bfloatBits = -16

// comparison returns the function of a comparison operator of setp.
func comparison(name string, t typ) (func(a, b uint64) bool, error) {
	if t.kind == 'f' {
		value := func(v uint64) float64 { return float64(single(v)) }
		switch t.bits {
		case 64:
			value = double
		case 16:
			value = ofHalf
		case bfloatBits:
			value = ofBfloat
		}
		plain, unordered := name, false
		if name != "neu" && name != "equ" && strings.HasSuffix(name, "u") && len(name) == 3 {
			plain, unordered = name[:2], true
		}
		f := map[string]func(a, b float64) bool{
			"eq": func(a, b float64) bool { return a == b }, "ne": func(a, b float64) bool { return a < b || a > b },
			"lt": func(a, b float64) bool { return a < b }, "le": func(a, b float64) bool { return a <= b },
			"gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b },
			"neu": func(a, b float64) bool { return a != b }, "equ": func(a, b float64) bool { return !(a < b || a > b) },
			"nan": func(a, b float64) bool { return a != a || b != b }, "num": func(a, b float64) bool { return a == a && b == b },
		}[plain]
		if f == nil {
			return nil, fmt.Errorf("no comparison %s", name)
		}
		return func(x, y uint64) bool {
			a, b := value(x), value(y)
			return f(a, b) || unordered && (a != a || b != b)
		}, nil
	}
	order := func(a, b uint64) int {
		a, b = t.low(a), t.low(b)
		if t.kind == 's' {
			x, y := t.signed(a), t.signed(b)
			return int(flag(x > y)) - int(flag(x < y))
		}
		return int(flag(a > b)) - int(flag(a < b))
	}
	f := map[string]func(n int) bool{
		"eq": func(n int) bool { return n == 0 }, "ne": func(n int) bool { return n != 0 },
		"lt": func(n int) bool { return n < 0 }, "le": func(n int) bool { return n <= 0 },
		"gt": func(n int) bool { return n > 0 }, "ge": func(n int) bool { return n >= 0 },
		"lo": func(n int) bool { return n < 0 }, "ls": func(n int) bool { return n <= 0 },
		"hi": func(n int) bool { return n > 0 }, "hs": func(n int) bool { return n >= 0 },
	}[name]
	if f == nil {
		return nil, fmt.Errorf("no comparison %s", name)
	}
	return func(a, b uint64) bool { return f(order(a, b)) }, nil
}

// conversion returns the function of a cvt; nil if that is not known.
func conversion(mods []string, to, from typ) func(uint64) uint64 {
	nearest := slices.Equal(mods, []string{"rn"})
	integer := func(t typ) bool { return t.kind != 'f' && t.kind != 'p' }
	switch {
	case to == typ{'s', 8} && integer(from) && len(mods) == 0: // a register is wider, and gets all of the number
		return func(v uint64) uint64 { return uint64(to.signed(v)) }
	case integer(to) && integer(from) && len(mods) == 0:
		if from.kind == 's' {
			return func(v uint64) uint64 { return to.low(uint64(from.signed(v))) }
		}
		return func(v uint64) uint64 { return to.low(from.low(v)) }
	case to == typ{'f', 64} && from == typ{'f', 32} && len(mods) == 0:
		return func(v uint64) uint64 { return ofDouble(float64(single(v))) }
	case to == typ{'f', 32} && from == typ{'f', 64} && nearest:
		return func(v uint64) uint64 { return ofSingle(float32(double(v))) }
	case to == typ{'f', 32} && from == typ{'f', 16} && len(mods) == 0:
		return func(v uint64) uint64 { return ofSingle(float32(ofHalf(v))) }
	case to == typ{'f', 64} && from == typ{'f', 16} && len(mods) == 0:
		return func(v uint64) uint64 { return ofDouble(ofHalf(v)) }
	case to == typ{'f', 32} && from == to && slices.Equal(mods, []string{"rzi"}):
		return func(v uint64) uint64 { return ofSingle(float32(math.Trunc(float64(single(v))))) }
	case to == typ{'s', 32} && from == typ{'f', 32} && slices.Equal(mods, []string{"rzi"}):
		return func(v uint64) uint64 { // the nearest that there is; of NaN 0
			x := float64(single(v))
			if x != x {
				return 0
			}
			return to.low(uint64(int64(min(max(x, math.MinInt32), math.MaxInt32))))
		}
	case to == typ{'f', 16} && from == typ{'f', 32} && nearest:
		return func(v uint64) uint64 { return half(float64(single(v))) }
	case to.kind == 'f' && to.bits > 16 && integer(from) && nearest:
		return func(v uint64) uint64 {
			// Rounded once: to the 53 bits of an f64, and then to an f32, would be twice.
			x := new(big.Float).SetUint64(from.low(v))
			if from.kind == 's' {
				x = new(big.Float).SetInt64(from.signed(v))
			}
			if to.bits == 32 {
				f, _ := x.Float32()
				return ofSingle(f)
			}
			f, _ := x.Float64()
			return ofDouble(f)
		}
	}
	return nil
}

// fused is a·b + c, rounded once: the product is exact as a double, and the sum is rounded to an odd double where it
// is not exact, which then rounds to an f32 as the exact sum would.
func fused(a, b, c float32) float32 { return float32(fusedOdd(a, b, c)) }

// fusedOdd is a·b + c rounded to odd, so that rounding that to fewer bits gives what rounding the exact sum would.
func fusedOdd(a, b, c float32) float64 {
	p, z := float64(a)*float64(b), float64(c)
	sum := p + z
	of := sum - p
	if rest := (p - (sum - of)) + (z - of); rest != 0 && math.Float64bits(sum)&1 == 0 && !math.IsInf(sum, 0) {
		sum = math.Nextafter(sum, math.Copysign(math.Inf(1), rest))
	}
	return sum
}

// fusedBfloat is a·b + c of bf16, rounded once.
func fusedBfloat(a, b, c uint64) uint64 {
	sum := fusedOdd(single(a<<16), single(b<<16), single(c<<16))
	if sum != sum {
		return 0x7fff
	}
	f := float32(sum)
	if float64(f) != sum && math.Float32bits(f)&1 == 0 && !math.IsInf(float64(f), 0) {
		f = math.Nextafter32(f, float32(math.Copysign(math.Inf(1), sum-float64(f))))
	}
	return bfloat(uint64(math.Float32bits(f)))
}

// half rounds to the nearest half, ties to even.
func half(x float64) uint64 {
	sign := math.Float64bits(x) >> 48 & 0x8000
	a := math.Abs(x)
	switch {
	case x != x:
		return nan16
	case a >= 65520:
		return sign | 0x7c00
	case a < 0x1p-14: // a multiple of 2^−24
		return sign | uint64(math.RoundToEven(a*0x1p24))
	}
	_, e := math.Frexp(a)
	return sign | uint64(int(math.RoundToEven(math.Ldexp(a, 11-e)))-1024+(e+14)<<10)
}

func ofHalf(x uint64) float64 { return term.F16Value(uint16(x)) }

// arithmetic returns the function of an instruction; nil if that is not known.
func arithmetic(name string, mods []string, t typ) func(a, b, c uint64) uint64 {
	mod := strings.Join(mods, ".")
	switch {
	case t.kind == 'f' && t.bits == 32:
		return map[string]func(a, b, c uint64) uint64{
			"add.rn":   func(a, b, _ uint64) uint64 { return ofSingle(single(a) + single(b)) },
			"sub.rn":   func(a, b, _ uint64) uint64 { return ofSingle(single(a) - single(b)) },
			"mul.rn":   func(a, b, _ uint64) uint64 { return ofSingle(single(a) * single(b)) },
			"div.rn":   func(a, b, _ uint64) uint64 { return ofSingle(single(a) / single(b)) },
			"rcp.rn":   func(a, _, _ uint64) uint64 { return ofSingle(1 / single(a)) },
			"sqrt.rn":  func(a, _, _ uint64) uint64 { return ofSingle(float32(math.Sqrt(float64(single(a))))) },
			"fma.rn":   func(a, b, c uint64) uint64 { return ofSingle(fused(single(a), single(b), single(c))) },
			"neg":      func(a, _, _ uint64) uint64 { return a ^ 1<<31 },
			"abs":      func(a, _, _ uint64) uint64 { return a &^ (1 << 31) },
			"copysign": func(a, b, _ uint64) uint64 { return a&(1<<31) | b&^(1<<31) },
			"min":      func(a, b, _ uint64) uint64 { return extreme(a, b, math.Min) },
			"max":      func(a, b, _ uint64) uint64 { return extreme(a, b, math.Max) },
		}[strings.TrimSuffix(name+"."+mod, ".")]
	case t.kind == 'f' && t.bits == 64:
		return map[string]func(a, b, c uint64) uint64{
			"add.rn":  func(a, b, _ uint64) uint64 { return ofDouble(double(a) + double(b)) },
			"sub.rn":  func(a, b, _ uint64) uint64 { return ofDouble(double(a) - double(b)) },
			"mul.rn":  func(a, b, _ uint64) uint64 { return ofDouble(double(a) * double(b)) },
			"div.rn":  func(a, b, _ uint64) uint64 { return ofDouble(double(a) / double(b)) },
			"fma.rn":  func(a, b, c uint64) uint64 { return ofDouble(math.FMA(double(a), double(b), double(c))) },
			"rcp.rn":  func(a, _, _ uint64) uint64 { return ofDouble(1 / double(a)) },
			"sqrt.rn": func(a, _, _ uint64) uint64 { return ofDouble(math.Sqrt(double(a))) },
			"neg":     func(a, _, _ uint64) uint64 { return a ^ 1<<63 },
			"abs":     func(a, _, _ uint64) uint64 { return a &^ (1 << 63) },

			"copysign": func(a, b, _ uint64) uint64 { return a&(1<<63) | b&^(1<<63) },
		}[strings.TrimSuffix(name+"."+mod, ".")]
	case t.kind == 'f':
		return map[string]func(a, b, c uint64) uint64{
			"neg": func(a, _, _ uint64) uint64 { return a ^ 1<<15 },
			"abs": func(a, _, _ uint64) uint64 { return a &^ (1 << 15) },
			// Exact sums and products of halves are doubles.
			"add.rn": func(a, b, _ uint64) uint64 { return half(ofHalf(a) + ofHalf(b)) },
			"sub.rn": func(a, b, _ uint64) uint64 { return half(ofHalf(a) - ofHalf(b)) },
			"mul.rn": func(a, b, _ uint64) uint64 { return half(ofHalf(a) * ofHalf(b)) },
		}[strings.TrimSuffix(name+"."+mod, ".")]
	}
	limited := func(n uint64) uint64 { return min(t.low(n)&math.MaxUint32, uint64(t.bits)) }
	plain := map[string]func(a, b, c uint64) uint64{
		"add": func(a, b, _ uint64) uint64 { return a + b }, "sub": func(a, b, _ uint64) uint64 { return a - b },
		"mul.lo": func(a, b, _ uint64) uint64 { return a * b }, "mad.lo": func(a, b, c uint64) uint64 { return a*b + c },
		"neg": func(a, _, _ uint64) uint64 { return -a },
		"and": func(a, b, _ uint64) uint64 { return a & b }, "or": func(a, b, _ uint64) uint64 { return a | b },
		"xor": func(a, b, _ uint64) uint64 { return a ^ b }, "not": func(a, _, _ uint64) uint64 { return ^a },
		"shl": func(a, b, _ uint64) uint64 { return a << min(b&math.MaxUint32, 64) },
		"shr": func(a, b, _ uint64) uint64 {
			if t.kind == 's' {
				return uint64(t.signed(a) >> min(limited(b), uint64(t.bits-1)))
			}
			return t.low(a) >> limited(b)
		},
	}
	unsigned := map[string]func(a, b, c uint64) uint64{
		"div": func(a, b, _ uint64) uint64 {
			if b == 0 {
				return math.MaxUint64
			}
			return a / b
		},
		"rem": func(a, b, _ uint64) uint64 {
			if b == 0 {
				return a
			}
			return a % b
		},
		"min": func(a, b, _ uint64) uint64 { return min(a, b) }, "max": func(a, b, _ uint64) uint64 { return max(a, b) },
		"bfe": func(a, b, c uint64) uint64 { return a >> (b & 255) & (1<<(c&255) - 1) },
		"mul.hi": func(a, b, _ uint64) uint64 {
			if t.bits == 64 {
				high, _ := bits.Mul64(a, b)
				return high
			}
			return a * b >> t.bits
		},
	}
	full := strings.TrimSuffix(name+"."+mod, ".")
	switch f := plain[full]; {
	case f != nil:
		return func(a, b, c uint64) uint64 { return t.low(f(a, b, c)) }
	case full == "mul.wide" && t.kind == 'u':
		return func(a, b, _ uint64) uint64 { return t.low(a) * t.low(b) }
	case full == "mul.wide" && t.kind == 's':
		return func(a, b, _ uint64) uint64 { return typ{'u', 2 * t.bits}.low(uint64(t.signed(a) * t.signed(b))) }
	case full == "bfe" && t.kind == 's': // of a field that lies inside
		return func(a, b, c uint64) uint64 {
			from, n := b&255, min(max(c&255, 1), uint64(t.bits))
			return t.low(uint64(int64(t.low(a)<<(64-min(from+n, 64))) >> (64 - n)))
		}
	case full == "min" && t.kind == 's':
		return func(a, b, _ uint64) uint64 { return t.low(uint64(min(t.signed(a), t.signed(b)))) }
	case full == "max" && t.kind == 's':
		return func(a, b, _ uint64) uint64 { return t.low(uint64(max(t.signed(a), t.signed(b)))) }
	case (full == "div" || full == "rem") && t.kind == 's': // towards zero
		return func(a, b, c uint64) uint64 {
			x, y := t.signed(a), t.signed(b)
			switch {
			case y == 0:
				return t.low(unsigned[full](a, 0, c))
			case full == "div":
				return t.low(uint64(x / y))
			}
			return t.low(uint64(x % y))
		}
	case full == "mad.wide" && t.kind == 'u':
		return func(a, b, c uint64) uint64 { return t.low(a)*t.low(b) + c }
	}
	if f := unsigned[full]; f != nil && t.kind != 's' {
		return func(a, b, c uint64) uint64 { return t.low(f(t.low(a), t.low(b), c)) }
	}
	return nil
}

// extreme is the minimum or maximum: of a NaN and a number the number, and −0 is less than +0.
func extreme(a, b uint64, of func(x, y float64) float64) uint64 {
	x, y := single(a), single(b)
	switch {
	case x != x:
		return ofSingle(y)
	case y != y:
		return ofSingle(x)
	}
	return ofSingle(float32(of(float64(x), float64(y))))
}
