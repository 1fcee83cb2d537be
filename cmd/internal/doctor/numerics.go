package doctor

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/ir"
)

// Numeric is a result that a device computed, in a case in which devices differ or fast math would be
// noticed.
type Numeric struct {
	Name   string `json:"name"`
	Kernel string `json:"kernel"`
	In     string `json:"in"`
	Want   string `json:"want"` // by IEEE 754
	Got    string `json:"got"`
	// Is says how Got differs: "as IEEE 754 has it", "a denormal counts as zero", "another NaN",
	// "rounded once", "wrong".
	Is string `json:"is"`
	// OK: Got is right, or a deviation that the device's Numerics allow.
	OK bool `json:"ok"`
}

// The values of [Numeric.Is].
const (
	isExact   = "as IEEE 754 has it"
	isFlushed = "a denormal counts as zero"
	isNaN     = "another NaN"
	isOnce    = "rounded once"
	isNear    = "near"
	isWrong   = "wrong"
)

// number is a case: a kernel with its operands, and the bits of the result.
type number struct {
	name, kernel string
	in           [4]uint32
	want         uint32
	flushed      []uint32 // other results, if denormals count as zero
	once         uint32   // the result if a·b + c is rounded once; 0: this does not apply
	nan          bool     // any NaN is allowed, if the device has ManyNaNs
	units        uint32   // max error, in units of the last place
}

func bits(f float32) uint32 { return math.Float32bits(f) }

// product returns a · b, rounded. The conversion keeps Go from contracting it with an addition.
func product(a, b float32) float32 { return float32(a * b) }

// numbers returns all cases.
func numbers() []number {
	inf, tiny := float32(math.Inf(1)), float32(math.SmallestNonzeroFloat32)
	least := math.Float32frombits(0x00800000) // the smallest normal number
	const nan = 0x7fc00000
	zero := []uint32{0, 0x80000000}
	one := func(name, kernel string, want uint32, in ...float32) number {
		n := number{name: name, kernel: kernel, want: want}
		for i, v := range in {
			n.in[i] = bits(v)
		}
		return n
	}
	raw := func(name, kernel string, want uint32, in ...uint32) number {
		n := number{name: name, kernel: kernel, want: want}
		copy(n.in[:], in)
		return n
	}
	any := func(n number) number { n.nan = true; return n }
	flush := func(n number, to ...uint32) number { n.flushed = to; return n }
	near := func(n number, units uint32) number { n.units = units; return n }
	// The square of a has a bit that is lost by rounding, so fused and unfused results differ.
	a, c := float32(1+0x1p-12), float32(-1-0x1p-11)
	fused, unfused := bits(0x1p-24), bits(product(a, a)+c)
	half := func(n number, to uint32) number { n.flushed = []uint32{to}; return n }
	list := []number{
		one("−inf is less than any number", "numeric_max", bits(-3), -inf, -3),
		one("max of −inf and −inf", "numeric_max", bits(-inf), -inf, -inf),
		one("exp(−inf)", "numeric_exp", 0, -inf),
		one("−inf + 1", "numeric_add", bits(-inf), -inf, 1),
		any(one("inf − inf", "numeric_add", nan, inf, -inf)),
		any(one("0 · inf", "numeric_mul", nan, 0, inf)),
		any(one("0 / 0", "numeric_div", nan, 0, 0)),
		one("1 / −0", "numeric_div", bits(-inf), 1, float32(math.Copysign(0, -1))),
		any(raw("NaN + 1", "numeric_add", nan, nan, bits(1))),
		any(raw("a NaN with a payload is moved", "numeric_move", 0xffc12345, 0xffc12345)),
		any(raw("NaN · 0 stays one", "numeric_mul", nan, nan, 0)),
		raw("max of NaN and a number is the number", "numeric_max", bits(2), nan, bits(2)),
		raw("max of a number and NaN is the number", "numeric_max", bits(2), bits(2), nan),
		raw("min of NaN and a number is the number", "numeric_min", bits(2), nan, bits(2)),
		raw("NaN is found", "numeric_class", 2, nan, 0),
		raw("inf is found", "numeric_class", 5, bits(inf), 0),
		raw("−inf < 0", "numeric_class", 13, bits(-inf), 0),
		one("−0 + 0", "numeric_add", 0, float32(math.Copysign(0, -1)), 0),
		one("−0 · 1", "numeric_mul", 0x80000000, float32(math.Copysign(0, -1)), 1),
		flush(one("a denormal operand of ·", "numeric_mul", bits(product(tiny*64, 0x1p100)), tiny*64, 0x1p100), zero...),
		flush(one("a denormal operand of +", "numeric_add", bits(tiny*5), tiny*5, 0), zero...),
		flush(one("a denormal product", "numeric_mul", bits(least/2), least, 0.5), zero...),
		flush(one("a denormal difference", "numeric_add", bits(least*1.5-least), least*1.5, -least), zero...),
		flush(one("a denormal is moved", "numeric_move", bits(tiny*77), tiny*77), zero...),
		flush(one("a denormal is less than zero", "numeric_class", 1|8, -tiny, 0), 1),
		flush(one("a denormal operand of fma", "numeric_fma", bits(tiny*3), tiny, 3, 0), zero...),
		func() number {
			n := one("a·b + c with contraction off", "numeric_mul_add", unfused, a, a, c)
			n.once = fused
			return n
		}(),
		one("fma", "numeric_fma", fused, a, a, c),
		one("(a + b) − a is not b", "numeric_back", bits(float32(1e8+1)-1e8), 1e8, 1),
		one("1 / 3", "numeric_div", bits(float32(1)/3), 1, 3),
		one("2 / 3", "numeric_div", bits(float32(2)/3), 2, 3),
		one("sqrt(2)", "numeric_sqrt", bits(float32(math.Sqrt(2))), 2),
		raw("half: 1 + 2⁻¹¹ to even", "numeric_to_half", 0x3c00, bits(1+0x1p-11)),
		raw("half: 1 + 3·2⁻¹¹ to even", "numeric_to_half", 0x3c02, bits(1+3*0x1p-11)),
		raw("half: 65519", "numeric_to_half", 0x7bff, bits(65519)),
		raw("half: 65520 is too great", "numeric_to_half", 0x7c00, bits(65520)),
		raw("half: −inf", "numeric_to_half", 0xfc00, bits(-inf)),
		half(raw("half: a denormal result", "numeric_to_half", 0x0003, bits(3*0x1p-24)), 0),
		half(raw("half: a denormal operand", "numeric_from_half", bits(3*0x1p-24), 0x0003), 0),
		half(raw("half: a denormal sum", "numeric_half_add", 0x0010, 0x000f, bits(0x1p-24)), 0),
		raw("half: −inf back", "numeric_from_half", bits(-inf), 0xfc00),
		raw("half: the greatest", "numeric_from_half", bits(65504), 0x7bff),
		raw("bfloat: 1 + 2⁻⁸ to even", "numeric_to_bfloat", 0x3f80, bits(1+0x1p-8)),
		raw("bfloat: 1 + 3·2⁻⁸ to even", "numeric_to_bfloat", 0x3f82, bits(1+3*0x1p-8)),
		raw("bfloat: the greatest float is too great", "numeric_to_bfloat", 0x7f80, bits(math.MaxFloat32)),
		half(raw("bfloat: a denormal result", "numeric_to_bfloat", 0x0001, 0x00010000), 0),
		raw("bfloat: −inf back", "numeric_from_bfloat", bits(-inf), 0xff80),
		raw("to int: toward zero", "numeric_to_int", 0xfffffffe, bits(-2.9)),
		raw("to int: 2³⁰", "numeric_to_int", 1<<30, bits(1<<30)),
		one("softmax of a row with −inf", "numeric_softmax", bits(0.25), 2, 2, 2, 2),
		one("softmax: what is left out", "numeric_softmax", 0, -inf, 1, 1, -inf),
		one("softmax: what is left", "numeric_softmax", bits(0.5), 1, -inf, 1, -inf),
		any(one("softmax of nothing", "numeric_softmax", nan, -inf, -inf, -inf, -inf)),
	}
	for _, f := range []struct {
		kernel string
		of     func(float64) float64
		at     []float32
		units  uint32
	}{
		{"numeric_exp", math.Exp, []float32{-20.5, -3.3, -0.001, 0.1, 1, 5.5, 30.25}, 4},
		{"numeric_log", math.Log, []float32{1e-5, 0.3, 0.999, 1.5, 10, 1e7}, 4},
		{"numeric_sin", math.Sin, []float32{-3, 0.5, 1.5, 3, 100}, 4},
		{"numeric_rsqrt", func(x float64) float64 { return 1 / math.Sqrt(x) }, []float32{1e-6, 0.3, 2, 3, 1e6}, 2},
	} {
		for _, x := range f.at {
			list = append(list, near(one(fmt.Sprintf("%s(%g)", f.kernel[len("numeric_"):], x), f.kernel, bits(float32(f.of(float64(x)))), x), f.units))
		}
	}
	return list
}

// judge says how a result differs from IEEE 754, and whether a device with Numerics may compute it.
func (n *number) judge(got uint32, may backend.Numerics) (is string, ok bool) {
	isNaNBits := got&0x7fffffff > 0x7f800000
	switch {
	case got == n.want:
		return isExact, true
	case n.nan && isNaNBits:
		return isNaN, may.ManyNaNs
	case n.once != 0 && got == n.once:
		return isOnce, may.Contracts
	case slices.Contains(n.flushed, got):
		return isFlushed, may.FlushesDenormals
	case n.units > 0 && !isNaNBits && max(got, n.want)-min(got, n.want) <= n.units:
		return isNear, true
	}
	return isWrong, false
}

// numericLibrary writes the kernels to a file in the user's cache folder, for devices to compile. The path
// depends on the contents, so that compiled kernels are kept from run to run.
func numericLibrary() (ir.Library, error) {
	sum := sha256.Sum256([]byte(numericsSource))
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "mlxc", "doctor")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return ir.Library{}, err
	}
	path := filepath.Join(dir, "numerics-"+hex.EncodeToString(sum[:8])+".metal")
	if old, err := os.ReadFile(path); err != nil || string(old) != numericsSource {
		if err := atomicfile.Write(path, func(w io.Writer) error { _, err := io.WriteString(w, numericsSource); return err }); err != nil {
			return ir.Library{}, err
		}
	}
	return ir.Library{Kind: ir.SourceFile, Path: path, Digest: sum}, nil
}

// compute runs a kernel on inputs of four words and returns a word of output for each.
func compute(ctx context.Context, d backend.Device, lib ir.Library, kernel string, in [][4]uint32) (out []uint32, err error) {
	b := ir.NewBuilder("numerics")
	n := int64(len(in))
	from := b.Memory(ir.Memory{Name: "in", Kind: ir.State, Size: 16 * n})
	to := b.Memory(ir.Memory{Name: "out", Kind: ir.State, Size: 4 * n})
	b.Dispatch(ir.Dispatch{
		Kernel: b.Kernel(ir.Kernel{Name: kernel, Library: lib, Function: kernel}), GridKind: ir.Threads,
		Grid: [3]ir.Extent{ir.Ext(n), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1},
		Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(from, 0, 16*n)), ir.BufferArg(1, ir.ViewOf(to, 0, 4*n))},
	})
	var data []byte
	for _, row := range in {
		for _, v := range row {
			data = binary.LittleEndian.AppendUint32(data, v)
		}
	}
	before := make([][]byte, 2)
	before[from] = data
	after, err := backend.Once(ctx, d, b.Unfinished(), before)
	if err != nil {
		return nil, err
	}
	for i := range in {
		out = append(out, binary.LittleEndian.Uint32(after[to][4*i:]))
	}
	return out, nil
}

// numerics runs all cases, and finds out in which order simd_sum adds.
func (e *examination) numerics(ctx context.Context) error {
	lib, err := numericLibrary()
	if err != nil {
		return err
	}
	d := e.o.Device
	may := d.Info().Numerics
	all := numbers()
	byKernel := map[string][]int{} // the indices of cases, by kernel
	var kernels []string
	for i, n := range all {
		if byKernel[n.kernel] == nil {
			kernels = append(kernels, n.kernel)
		}
		byKernel[n.kernel] = append(byKernel[n.kernel], i)
	}
	found := make([]*Numeric, len(all))
	for i, k := range kernels {
		e.step(k, float64(i)/float64(len(kernels)+1))
		rows := byKernel[k]
		var in [][4]uint32
		for _, row := range rows {
			in = append(in, all[row].in)
		}
		out, err := compute(ctx, d, lib, k, in)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, backend.ErrNoCompiler) {
			e.unsupported("numerics", "kernels of known results", "not tried: "+err.Error(), "put a clang there and run it again; nothing else here needs one")
			return nil
		}
		if err != nil {
			e.fail("numerics", k, err.Error(), "send the report: the kernel should run")
			continue
		}
		for j, row := range rows {
			n := &all[row]
			x := &Numeric{Name: n.name, Kernel: k, In: words(n.in[:]), Want: words([]uint32{n.want}), Got: words(out[j : j+1])}
			x.Is, x.OK = n.judge(out[j], may)
			found[row] = x
			e.r.Shown.FlushesDenormals = e.r.Shown.FlushesDenormals || x.Is == isFlushed
			e.r.Shown.ManyNaNs = e.r.Shown.ManyNaNs || x.Is == isNaN
			e.r.Shown.Contracts = e.r.Shown.Contracts || x.Is == isOnce
			if !x.OK {
				e.fail("numerics", k+": "+n.name, fmt.Sprintf("%s gives %s and not %s: %s", x.In, x.Got, x.Want, x.Is), "send the report: the device computes what it says that it does not")
			}
		}
	}
	for _, x := range found { // in the order of the table
		if x != nil {
			e.r.Numerics = append(e.r.Numerics, *x)
		}
	}
	return e.simdSum(ctx, d, lib)
}

// addends returns numbers for 32 lanes whose sum differs in each of the orders of sums.
func addends() []float32 {
	var v []float32
	for i := range 32 {
		_, part := math.Modf(float64(i*i+15) * 0.6180339887498949)
		v = append(v, float32(math.Ldexp(1+part, i%7)))
	}
	return v
}

// simdSum finds out in which order simd_sum adds the lanes of a simdgroup.
func (e *examination) simdSum(ctx context.Context, d backend.Device, lib ir.Library) error {
	var in [][4]uint32
	v := addends()
	for _, x := range v {
		in = append(in, [4]uint32{bits(x)})
	}
	out, err := compute(ctx, d, lib, "numeric_simd_sum", in)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.fail("numerics", "numeric_simd_sum", err.Error(), "send the report: the kernel should run")
		return nil
	}
	e.r.SimdSum = "in an order that is not known here: lane 0 has " + words(out[:1])
	for _, o := range sums {
		if w := o.sum(v); slices.Equal(out, w) {
			e.r.SimdSum = o.name
			break
		}
	}
	return nil
}

// sums are the orders in which a simdgroup may be summed, with functions that return the result of each lane.
var sums = []struct {
	name string
	sum  func(v []float32) []uint32
}{
	{"lanes that are 16, 8, 4, 2 and 1 apart", func(v []float32) []uint32 { return tree(v, 16, 8, 4, 2, 1) }},
	{"lanes that are 1, 2, 4, 8 and 16 apart", func(v []float32) []uint32 { return tree(v, 1, 2, 4, 8, 16) }},
	{"lane after lane, from the first", func(v []float32) []uint32 { return line(v) }},
	{"lane after lane, from the last", func(v []float32) []uint32 {
		back := slices.Clone(v)
		slices.Reverse(back)
		return line(back)
	}},
}

func tree(v []float32, apart ...int) []uint32 {
	now := slices.Clone(v)
	for _, a := range apart {
		next := make([]float32, len(now))
		for i := range now {
			next[i] = now[i] + now[i^a]
		}
		now = next
	}
	out := make([]uint32, len(now))
	for i, x := range now {
		out[i] = bits(x)
	}
	return out
}

func line(v []float32) []uint32 {
	s := float32(0)
	for _, x := range v {
		s += x
	}
	return slices.Repeat([]uint32{bits(s)}, len(v))
}

// words formats words in hexadecimal, without zeros at the end.
func words(v []uint32) string {
	for len(v) > 1 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	s := ""
	for i, x := range v {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%#x", x)
	}
	return s
}
