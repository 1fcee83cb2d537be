package calls

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
