package calls

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
)

// TestAtomics holds what an atomic function returns and leaves in memory against plain
// arithmetic, with each memory order.
func TestAtomics(t *testing.T) {
	type meaning func(was, x uint64) uint64
	f32 := func(f func(a, b float32) float32) meaning {
		return func(was, x uint64) uint64 {
			return uint64(math.Float32bits(f(math.Float32frombits(uint32(was)), math.Float32frombits(uint32(x)))))
		}
	}
	updates := map[string]meaning{
		"add": func(a, b uint64) uint64 { return a + b }, "sub": func(a, b uint64) uint64 { return a - b },
		"and": func(a, b uint64) uint64 { return a & b }, "or": func(a, b uint64) uint64 { return a | b },
		"xor": func(a, b uint64) uint64 { return a ^ b }, "xchg": func(a, b uint64) uint64 { return b },
		"min.u": func(a, b uint64) uint64 { return min(a, b) }, "max.u": func(a, b uint64) uint64 { return max(a, b) },
		"add.f32": f32(func(a, b float32) float32 { return a + b }), "sub.f32": f32(func(a, b float32) float32 { return a - b }),
		"xchg.f32": func(a, b uint64) uint64 { return b },
	}
	for width := range map[int]bool{32: true, 64: true} {
		sign := func(v uint64) int64 { return int64(v<<(64-width)) >> (64 - width) }
		updates[fmt.Sprintf("min.s%d", width)] = func(a, b uint64) uint64 { return uint64(min(sign(a), sign(b))) }
		updates[fmt.Sprintf("max.s%d", width)] = func(a, b uint64) uint64 { return uint64(max(sign(a), sign(b))) }
	}
	var fs []Function
	for _, f := range families() {
		if strings.HasPrefix(f.Name, "air.atomic.global.") {
			fs = append(fs, f)
		}
	}
	require.Greater(t, len(fs), 30)
	p := start(t, fs)
	r := rand.New(rand.NewPCG(11, 12))
	for _, f := range fs {
		n, err := parseName(f.Name)
		require.NoError(t, err)
		const count = 400
		var was, desired, expected []uint64
		mask := ^uint64(0) >> (64 - n.t.bits())
		for range count {
			if n.t.float() {
				was = append(was, uint64(math.Float32bits(r.Float32()*8-4)))
				desired = append(desired, uint64(math.Float32bits(r.Float32()*8-4)))
			} else {
				was = append(was, r.Uint64()&mask>>r.IntN(n.t.bits()))
				desired = append(desired, r.Uint64()&mask)
			}
			expected = append(expected, []uint64{was[len(was)-1], desired[len(desired)-1]}[r.IntN(2)])
		}
		var args [][]byte
		pointers := 0
		for j, param := range f.Params {
			ty := element(t, f, j)
			switch {
			case strings.HasPrefix(param, "ptr") && pointers == 0:
				args = append(args, pack(was, ty))
				pointers++
			case strings.HasPrefix(param, "ptr"):
				args = append(args, pack(expected, ty))
				pointers++
			case j < len(f.Params)-3+strings.Count(f.Name, "load")-strings.Count(f.Name, "cmpxchg"):
				args = append(args, pack(desired, ty))
			default:
				var order []uint64
				for i := range count {
					order = append(order, []uint64{0, 0, 5}[i%3]&(1<<(ty.bits()-1)))
				}
				args = append(args, pack(order, ty))
			}
		}
		out := p.run(t, f.Name, count, false, args...)
		size := n.t.bits() / 8 * count
		var returned []uint64
		if f.Result != "void" {
			returned, out = unpack(out[:size], n.t), out[size:]
		}
		memory := unpack(out[:size], n.t)
		for i := range count {
			what := fmt.Sprintf("%s of 0x%x and 0x%x", f.Name, was[i], desired[i])
			if f.Result != "void" {
				require.Equal(t, was[i], returned[i], what)
			}
			switch n.what {
			case "load":
				require.Equal(t, was[i], memory[i], what)
			case "store":
				require.Equal(t, desired[i], memory[i], what)
			case "cmpxchg.weak":
				want := was[i]
				if expected[i] == was[i] {
					want = desired[i]
				}
				require.Equal(t, want, memory[i], what)
				require.Equal(t, was[i], unpack(out[size:], n.t)[i], what)
			default:
				m := updates[n.what]
				if n.t.float() {
					m = updates[n.what+".f32"]
				} else if n.what == "min" || n.what == "max" {
					m = updates[n.what+".u"]
					if n.sign == 's' {
						m = updates[fmt.Sprintf("%s.s%d", n.what, n.t.bits())]
					}
				}
				require.Equal(t, m(was[i], desired[i])&mask, memory[i], what)
			}
		}
	}
}

// TestPacking unpacks every word of 8 and 16 bits and random ones of 32 and 64, and packs
// them again.
func TestPacking(t *testing.T) {
	var fs []Function
	for _, f := range families() {
		if strings.HasPrefix(f.Name, "air.pack.") || strings.HasPrefix(f.Name, "air.unpack.") {
			fs = append(fs, f)
		}
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(13, 14))
	for format, k := range packings {
		word, _ := parseType(k.word)
		var x []uint64
		for i := range 65536 {
			x = append(x, uint64(i)&(1<<min(word.bits(), 16)-1))
			if word.bits() > 16 {
				x[i] = r.Uint64() >> (64 - word.bits())
			}
		}
		lanes := len(k.fields)
		n := typ{elem: "float"}
		if lanes > 1 {
			n.lanes = lanes
		}
		out := p.run(t, "air.unpack."+format+"."+n.suffix(), len(x), false, pack(x, word))
		got := bytesFloat(out)
		for i, v := range x {
			for j, f := range k.fields {
				bits := v >> f.offset & (1<<f.width - 1)
				want := float64(bits) / float64(uint64(1)<<f.width-1)
				if k.signed {
					top := float64(int64(1)<<(f.width-1) - 1)
					want = max(-1, float64(int64(bits<<(64-f.width))>>(64-f.width))/top)
				}
				if k.srgb && j < 3 {
					if want <= 0.04045 {
						want /= 12.92
					} else {
						want = math.Pow((want+0.055)/1.055, 2.4)
					}
					require.InEpsilon(t, want+1, got[lanes*i+j]+1, 1e-7)
					continue
				}
				require.Equal(t, float32(want), got[lanes*i+j], "%s of 0x%x", format, v)
			}
		}
		back := unpack(p.run(t, "air.pack."+format+"."+n.suffix(), len(x), false, out), word)
		for i, v := range x {
			want := v
			for _, f := range k.fields {
				// The least signed value stands for -1, as the one after it does.
				if least := uint64(1) << (f.width - 1); k.signed && v>>f.offset&(1<<f.width-1) == least {
					want += 1 << f.offset
				}
			}
			require.Equal(t, want, back[i], "%s of 0x%x", format, v)
		}
		// Beyond the range, and no number.
		for v, top := range map[float32]bool{2: true, float32(math.Inf(1)): true, float32(math.NaN()): false, -0.0: false} {
			args := floatBytes(slices.Repeat([]float32{v}, lanes)...)
			got := unpack(p.run(t, "air.pack."+format+"."+n.suffix(), 1, false, args), word)[0]
			for _, f := range k.fields {
				want := uint64(0)
				if top {
					want = uint64(k.top(f))
				}
				require.Equal(t, want, got>>f.offset&(1<<f.width-1), "%s of %v", format, v)
			}
		}
	}
}

// TestGeometry holds functions of vectors against float32 arithmetic in Go.
func TestGeometry(t *testing.T) {
	v3 := "<3 x float>"
	fs := []Function{
		{"air.dot.v4f16", "half", []string{"<4 x half>", "<4 x half>"}},
		{"air.dot.v3f32", "float", []string{v3, v3}},
		{"air.cross.v3f32", v3, []string{v3, v3}},
		{"air.normalize.v3f32", v3, []string{v3}},
		{"air.length.v3f32", "float", []string{v3}},
		{"air.distance.v3f32", "float", []string{v3, v3}},
		{"air.reflect.v3f32", v3, []string{v3, v3}},
		{"air.refract.v3f32", v3, []string{v3, v3, "float"}},
		{"air.faceforward.v3f32", v3, []string{v3, v3, v3}},
		{"air.smoothstep.v3f32", v3, []string{v3, v3, v3}},
		{"air.mix.v3f32", v3, []string{v3, v3, v3}},
		{"air.select.v3f32", v3, []string{v3, v3, "<3 x i1>"}},
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(15, 16))
	for range 200 {
		var a, b, c [3]float64
		for i := range a {
			a[i], b[i], c[i] = float64(float32(r.Float64()*4-2)), float64(float32(r.Float64()*4-2)), float64(float32(r.Float64()))
		}
		bytes := func(v [3]float64) []byte { return floatBytes(float32(v[0]), float32(v[1]), float32(v[2])) }
		dot := func(x, y [3]float64) float64 { return x[0]*y[0] + x[1]*y[1] + x[2]*y[2] }
		plus := func(x [3]float64, s float64, y [3]float64) [3]float64 {
			return [3]float64{x[0] + s*y[0], x[1] + s*y[1], x[2] + s*y[2]}
		}
		near := func(name string, want []float64, args ...[]byte) {
			t.Helper()
			got := bytesFloat(p.run(t, "air."+name+".v3f32", 1, false, args...))
			for i := range want {
				require.InDelta(t, want[i], got[i], 4e-6, name)
			}
		}
		near("dot", []float64{dot(a, b)}, bytes(a), bytes(b))
		x := [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
		near("cross", x[:], bytes(a), bytes(b))
		unit := plus([3]float64{}, 1/math.Sqrt(dot(a, a)), a)
		near("normalize", unit[:], bytes(a))
		near("length", []float64{math.Sqrt(dot(a, a))}, bytes(a))
		d := plus(a, -1, b)
		near("distance", []float64{math.Sqrt(dot(d, d))}, bytes(a), bytes(b))
		x = plus(a, -2*dot(b, a), b)
		near("reflect", x[:], bytes(a), bytes(b))
		in, eta := plus([3]float64{}, 1/math.Sqrt(dot(b, b)), b), c[0]*2
		nd := dot(unit, in)
		k := 1 - eta*eta*(1-nd*nd)
		x = [3]float64{}
		if k >= 0 {
			x = plus(plus([3]float64{}, eta, in), -(eta*nd + math.Sqrt(k)), unit)
		}
		if math.Abs(k) > 1e-3 {
			near("refract", x[:], bytes(in), bytes(unit), floatBytes(float32(eta)))
		}
		x = a
		if dot(c, b) >= 0 {
			x = plus([3]float64{}, -1, a)
		}
		near("faceforward", x[:], bytes(a), bytes(b), bytes(c))
		x = [3]float64{}
		for i := range x {
			s := max(0, min(1, (b[i]-c[i])/(c[i]+1-c[i])))
			x[i] = s * s * (3 - 2*s)
		}
		near("smoothstep", x[:], bytes(c), bytes([3]float64{c[0] + 1, c[1] + 1, c[2] + 1}), bytes(b))
		x = [3]float64{a[0] + (b[0]-a[0])*c[0], a[1] + (b[1]-a[1])*c[1], a[2] + (b[2]-a[2])*c[2]}
		near("mix", x[:], bytes(a), bytes(b), bytes(c))
		near("select", []float64{b[0], a[1], b[2]}, bytes(a), bytes(b), []byte{1, 0, 1})
	}
	// Of halves, products are exact and the sum is rounded at the end.
	h := format{'f', typ{elem: "half"}}
	put := func(x ...float64) (b []byte) {
		for _, v := range x {
			b = append(b, pack([]uint64{h.encode(numberOf(v))}, h.t)...)
		}
		return b
	}
	got := unpack(p.run(t, "air.dot.v4f16", 1, false, put(300, 300, -300, 1), put(300, 1, 300, 0.5)), h.t)
	assert.Equal(t, h.encode(numberOf(300.5)), got[0])
}

// TestConstants calls what asks the compiler, and what asks of truth values.
func TestConstants(t *testing.T) {
	fs := []Function{
		{"air.is_uniform.i32", "i1", []string{"i32"}},
		{"air.get_simdgroup_size.i16", "i16", []string{"i16"}},
		{"air.normalize_function_constant_predicate.i8", "i8", []string{"i8"}},
	}
	fs[1].Params = nil
	for target := Host; target <= PTX; target++ {
		d, err := Define(fs[0], target)
		require.NoError(t, err)
		assert.Contains(t, d.Text, "ret i1 true")
		d, err = Define(fs[1], target)
		require.NoError(t, err)
		assert.Contains(t, d.Text, "ret i16 32")
	}
	all, any := Function{"air.all.v2i1", "i1", []string{"<2 x i1>"}}, Function{"air.any.v2i1", "i1", []string{"<2 x i1>"}}
	p := start(t, []Function{fs[0], fs[2], all, any})
	assert.Equal(t, []byte{0, 0, 0, 1}, p.run(t, all.Name, 4, false, []byte{0, 0, 0, 1, 1, 0, 1, 1}))
	assert.Equal(t, []byte{0, 1, 1, 1}, p.run(t, any.Name, 4, false, []byte{0, 0, 0, 1, 1, 0, 1, 1}))
	assert.Equal(t, []byte{1, 1}, p.run(t, fs[0].Name, 2, false, make([]byte, 8)))
	assert.Equal(t, []byte{0, 1, 1, 1}, p.run(t, fs[2].Name, 4, false, []byte{0, 1, 2, 255}))
}

// TestDenormals checks that a machine which flushes denormals computes the same where no
// float is denormal, and that a denormal argument is the zero there that it is said to be.
func TestDenormals(t *testing.T) {
	var fs []Function
	for _, op := range []string{"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "exp10", "exp2", "log", "log10", "log2", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "floor", "round"} {
		fs = append(fs, Function{"air." + op + ".f32", "float", []string{"float"}})
	}
	for _, op := range []string{"fabs", "frexp"} {
		fs = append(fs, Function{"air." + op + ".f32", "float", []string{"float", "ptr"}[:len(floatFunctions[op].signature)-1]})
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(17, 18))
	var x, denormal []float32
	for len(x) < 5000 {
		v := math.Float32frombits(r.Uint32())
		if math.Abs(float64(v)) >= 0x1p-126 {
			x = append(x, v)
			denormal = append(denormal, math.Float32frombits(r.Uint32()&0x807fffff))
		}
	}
	for _, f := range fs {
		args := func(v []float32) [][]byte { return [][]byte{floatBytes(v...), make([]byte, 4*len(v))}[:len(f.Params)] }
		plain, flushed := p.run(t, f.Name, len(x), false, args(x)...), p.run(t, f.Name, len(x), true, args(x)...)
		a, b := bytesFloat(plain), bytesFloat(flushed)
		for i := range x {
			if d := math.Abs(float64(a[i])); d > 0 && d < 0x1p-126 {
				a[i] = float32(math.Copysign(0, float64(a[i])))
			}
			require.Equal(t, math.Float32bits(a[i]), math.Float32bits(b[i]), "%s(%x)", f.Name, x[i])
		}
		if strings.Contains(f.Name, "fabs") || strings.Contains(f.Name, "frexp") {
			assert.Equal(t, p.run(t, f.Name, len(x), false, args(denormal)...), p.run(t, f.Name, len(x), true, args(denormal)...), "%s works on bits", f.Name)
			continue
		}
		var zeros []float32
		for _, v := range denormal {
			zeros = append(zeros, float32(math.Copysign(0, float64(v))))
		}
		assert.Equal(t, p.run(t, f.Name, len(x), true, args(zeros)...), p.run(t, f.Name, len(x), true, args(denormal)...), f.Name)
	}
}

// TestLevels checks that machines with and without fused multiply-add, and with vectors of
// other lengths, compute the same bits.
func TestLevels(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("levels of x86-64")
	}
	var fs []Function
	for _, op := range slices.Sorted(maps.Keys(floatFunctions)) {
		signature := floatFunctions[op].signature
		if strings.Trim(signature, "T") != "" || op == "cross" {
			continue
		}
		fs = append(fs, Function{"air." + op + ".f32", "float", slices.Repeat([]string{"float"}, len(signature)-1)})
	}
	fs = append(fs, Function{"air.fma.f16", "half", []string{"half", "half", "half"}}, Function{"air.exp.bf16", "bfloat", []string{"bfloat"}})
	require.Greater(t, len(fs), 50)
	levels := []string{"-march=x86-64-v2", "-march=x86-64-v3"}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512CD {
		levels = append(levels, "-march=x86-64-v4")
	}
	var first [][]uint64
	for l, level := range levels {
		p := start(t, fs, level)
		r := rand.New(rand.NewPCG(23, 24))
		for i, f := range fs {
			in := floatFormats()[slices.IndexFunc(floatFormats(), func(ff format) bool { return ff.t.String() == f.Result })]
			const count = 2000
			e := edges(in)
			var args [][]byte
			for range f.Params {
				var x []uint64
				for range count {
					v := r.Uint64() >> (64 - in.t.bits())
					switch r.IntN(3) {
					case 0:
						v = e[r.IntN(len(e))]
					case 1:
						v = in.encode(numberOf(r.Float64()*8 - 4))
					}
					x = append(x, v)
				}
				args = append(args, pack(x, in.t))
			}
			got := unpack(p.run(t, f.Name, count, false, args...), in.t)
			for j, v := range got {
				if in.decode(v).not == "nan" {
					got[j] = 0
				}
			}
			if l == 0 {
				first = append(first, got)
				continue
			}
			require.True(t, slices.Equal(first[i], got), "%s with %s", f.Name, level)
		}
	}
}

// TestVector checks that loops around the mathematical functions become vector code without
// calls.
func TestVector(t *testing.T) {
	c := compiler(t)
	for _, op := range slices.Sorted(func(yield func(string) bool) {
		for op, f := range floatFunctions {
			if len(f.signature) == 2 && f.signature == "TT" && op != "cross" && op != "normalize" && !yield(op) {
				return
			}
		}
	}) {
		f := Function{"air." + op + ".f32", "float", []string{"float"}}
		text, err := Module([]Function{f}, Host)
		require.NoError(t, err)
		text += `define void @loop(ptr noalias %in, ptr noalias %out, i64 %n) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %p = getelementptr inbounds float, ptr %in, i64 %i
  %x = load float, ptr %p, align 4
  %r = call float @` + f.Name + `(float %x)
  %q = getelementptr inbounds float, ptr %out, i64 %i
  store float %r, ptr %q, align 4
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
`
		code := string(compiles(t, c, text, "--target=x86_64-unknown-linux-gnu", "-march=x86-64-v3", "-O2", "-S", "-emit-llvm"))
		assert.Regexp(t, `store <\d+ x (float|i32)>`, code, op)
		for _, m := range regexp.MustCompile(`call [^@]*@([\w.]+)`).FindAllStringSubmatch(code, -1) {
			assert.True(t, strings.HasPrefix(m[1], "llvm."), "%s calls %s", op, m[1])
		}
	}
}

// TestRefusals are names and types for which there is no body.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		f    Function
		want string
	}{
		{Function{"air.sample_texture_2d.v4f32", "<4 x float>", []string{"ptr"}}, "air.sample_texture_2d.v4f32: no body"},
		{Function{"air.exp.f64", "double", []string{"double"}}, "no type"},
		{Function{"air.exp.f32", "float", []string{"double"}}, "parameter 0: type double"},
		{Function{"air.exp.f32", "float", []string{"half"}}, "parameter 0 is half, by its name it is float"},
		{Function{"air.exp.f32", "half", []string{"float"}}, "result is half"},
		{Function{"air.exp.f32", "float", nil}, "0 parameters, it has 1"},
		{Function{"air.exp.f32", "float", []string{"void"}}, "parameter 0: void"},
		{Function{"air.exp.s.i32", "i32", []string{"i32"}}, "no body"},
		{Function{"air.min.i32", "i32", []string{"i32", "i32"}}, "no body"},
		{Function{"air.all.v2i8", "i8", []string{"<2 x i8>"}}, "no body"},
		{Function{"air.popcount.i1", "i1", []string{"i1"}}, "no body"},
		{Function{"air.convert.f.f32.f.i32", "float", []string{"i32"}}, "'f' is no kind of i32"},
		{Function{"air.convert.f.v2f32.s.i32", "<2 x float>", []string{"i32"}}, "other elements"},
		{Function{"air.convert.f.f32.s.i32", "float", []string{"i64"}}, "by its name it is float (i32)"},
		{Function{"air.convert", "float", nil}, "no body"},
		{Function{"air.atomic.global.add.f16", "half", []string{"ptr addrspace(1)", "half", "i32", "i32", "i1"}}, "no body"},
		{Function{"air.atomic.global.nand.u.i32", "i32", []string{"ptr addrspace(1)", "i32", "i32", "i32", "i1"}}, "no body"},
		{Function{"air.atomic.local.add.u.i32", "i32", []string{"ptr addrspace(1)", "i32", "i32", "i32", "i1"}}, "points to address space 1, by its name to 3"},
		{Function{"air.atomic.global.store.i32", "i32", []string{"ptr addrspace(1)", "i32", "i32", "i32", "i1"}}, "it is void"},
		{Function{"air.pack.unorm4x8.v3f32", "i32", []string{"<3 x float>"}}, "no body"},
		{Function{"air.is_uniform.i32", "i32", []string{"i32"}}, "i1 (i32)"},
		{Function{"air.simd_sum.f32", "float", []string{"float"}}, "the executor's"},
		{Function{"air.exp\n.f32", "float", []string{"float"}}, `"air.exp\n.f32": no body`},
		{Function{"", "", nil}, "no body"},
		{Function{"air." + strings.Repeat("x", 1<<20), "", nil}, "…"},
		{Function{"air.exp.f32", "<999999999999 x float>", []string{"float"}}, "result: type"},
	} {
		for target := Host; target <= PTX; target++ {
			_, err := Define(c.f, target)
			require.Error(t, err)
			assert.ErrorContains(t, err, c.want)
			assert.Less(t, len(err.Error()), 400)
		}
	}
	_, err := Define(Function{"air.exp.f32", "float", []string{"float"}}, 9)
	assert.ErrorContains(t, err, "no target 9")
}

// TestMixtures puts parts of names and types together at random: an error or a body, and a
// body is one of the type that was asked for.
func TestMixtures(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	fs := append(families(), known(t)...)
	var parts, types []string
	for _, f := range fs {
		parts = append(parts, strings.Split(f.Name, ".")...)
		types = append(append(types, f.Params...), f.Result)
	}
	parts = append(parts, "", "v", "v9f32", "i128", "air", "fast_", "fast_convert", "fast_atomic")
	usual := map[string]bool{}
	for _, f := range fs {
		usual[f.Name] = true
	}
	var unusual []Function
	defined := 0
	for range 100000 {
		f := fs[r.IntN(len(fs))]
		name := strings.Split(f.Name, ".")
		params := slices.Clone(f.Params)
		for range r.IntN(3) {
			switch r.IntN(5) {
			case 0:
				name[r.IntN(len(name))] = parts[r.IntN(len(parts))]
			case 1:
				name = slices.Insert(name, r.IntN(len(name)+1), parts[r.IntN(len(parts))])
			case 2:
				name = slices.Delete(name, 0, r.IntN(2))
			case 3:
				params = append(params, types[r.IntN(len(types))])
			case 4:
				if len(params) > 0 {
					params[r.IntN(len(params))] = types[r.IntN(len(types))]
				}
			}
			if len(name) == 0 {
				break
			}
		}
		f = Function{strings.Join(name, "."), f.Result, params}
		d, err := Define(f, Target(r.IntN(2)))
		if err == nil {
			defined++
			require.True(t, strings.HasPrefix(d.Text, "define internal "), f.Name)
			if !usual[f.Name] {
				usual[f.Name] = true
				unusual = append(unusual, f)
			}
		}
	}
	assert.Greater(t, defined, 10000)
	require.NotEmpty(t, unusual)
	for _, target := range targets {
		compiles(t, compiler(t), called(t, unusual, target.target), target.args...)
	}
	t.Logf("%d bodies, %d of names that nobody wrote down", defined, len(unusual))
}

// TestDeterministic defines everything twice.
func TestDeterministic(t *testing.T) {
	assert.NotZero(t, Digest())
	for target := Host; target <= PTX; target++ {
		once, err := Module(families(), target)
		require.NoError(t, err)
		again, err := Module(families(), target)
		require.NoError(t, err)
		assert.True(t, once == again)
	}
	assert.True(t, Runtime() == Runtime())
}
