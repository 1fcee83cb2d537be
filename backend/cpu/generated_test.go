package cpu

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// generate compiles a generated kernel.
func generate(t testing.TB, text string) *Kernel {
	t.Helper()
	d, err := decl.Elementwise(text)
	require.NoError(t, err)
	k := d.Kernel("k")
	out, err := compileGenerated(&k)
	require.NoError(t, err)
	return out
}

func runGenerated(k *Kernel, threads [3]int, args ...any) {
	c := &Call{Threads: threads, Group: [3]int{1, 1, 1}}
	for i, a := range args {
		switch a := a.(type) {
		case []float32:
			c.Device[i] = rawBytes(a)
		case []uint16:
			c.Device[i] = halfBytes(a)
		case float32:
			c.Constant[i] = ir.ValueBytes(a)
		}
	}
	var w Worker
	units := k.Units(c)
	for lo := 0; lo < units; lo += 2 {
		k.Run(c, &w, lo, min(lo+2, units))
	}
}

// A generated kernel has the bits of the builtin kernels that it replaces, with
// every implementation of package simd.
func TestGeneratedHasTheBitsOfBuiltins(t *testing.T) {
	forEachImpl(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range []int{1, 7, 1000, 1024, 5003} {
			a, b, c := floats(r, n), floats(r, n), floats(r, n)
			a[0], b[n/2] = -90, 100
			flat := [3]int{n, 1, 1}
			one := func(name string, args ...any) []float32 {
				y := make([]float32, n)
				runKernel(t, name, flat, flat, append(args, y)...)
				return y
			}
			for text, want := range map[string][]float32{
				"out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])":   one("vv_Multiplyfloat32", one("v_Silufloat32float32", a), b),
				"out0[i] = round(f32, in0[i] * (in1[i] / (exp(-in1[i]) + 1.0)))": one("vv_Multiplyfloat32", a, one("v_Silufloat32float32", b)),
				"out0[i] = round(f32, select(in0[i] < 0.0, 1.0 / (1.0 + exp(abs(in0[i]))), 1.0 - 1.0 / (1.0 + exp(abs(in0[i])))) * in0[i] + in1[i])": one("vv_Addfloat32",
					one("vv_Multiplyfloat32", one("v_Sigmoidfloat32float32", a), a), b),
				"out0[i] = round(f32, in0[i] + in1[i] + in2[i])": one("vv_Addfloat32", one("vv_Addfloat32", a, b), c),
				"out0[i] = in0[i]": one("v_copyfloat32float32", a),
			} {
				y := make([]float32, n)
				args := []any{a, b, c}[:strings.Count(text, "in2")+min(1, strings.Count(text, "in1"))+1]
				runGenerated(generate(t, text), flat, append(args, y)...)
				same(t, want, y, "%s, n = %d", text, n)
				over := append([]float32(nil), a...) // for a result that overwrites its first operand
				args[0] = over
				runGenerated(generate(t, text), flat, append(args, over)...)
				same(t, want, over, "%s in place, n = %d", text, n)
			}
		}
		const rows, n = 5, 1500
		x, w := floats(r, rows*n), floats(r, n)
		want, y := make([]float32, rows*n), make([]float32, rows*n)
		runKernel(t, "g2_Multiplyfloat32", [3]int{n, rows, 1}, [3]int{n, rows, 1}, x, w, want, []int64{n, 1}, []int64{0, 1})
		runGenerated(generate(t, "out0[i, j] = round(f32, in0[i, j] * in1[j])"), [3]int{n, rows, 1}, x, w, y)
		same(t, want, y, "a row for all")
	})
}

// Results may overwrite each other's operands, because all results are computed before any is stored.
func TestGeneratedSwapsInPlace(t *testing.T) {
	k := generate(t, "out0[i] = in0[i]; out1[i] = in1[i]; out2[i] = round(f32, in0[i] - in1[i])")
	a, b, d := []float32{1, 2, 3}, []float32{4, 6, 8}, make([]float32, 3)
	runGenerated(k, [3]int{3, 1, 1}, a, b, b, a, d)
	assert.Equal(t, []float32{4, 6, 8}, a)
	assert.Equal(t, []float32{1, 2, 3}, b)
	assert.Equal(t, []float32{-3, -4, -5}, d)
}

// A kernel whose table of arguments does not fit its term is refused.
func TestGeneratedRefuses(t *testing.T) {
	d, err := decl.Elementwise("out0[i] = round(f32, in0[i] * 2.0)")
	require.NoError(t, err)
	k := d.Kernel("k")
	k.Args[1].Access = ir.ReadArg
	_, err = compileGenerated(&k)
	assert.EqualError(t, err, "the argument table of kernel @k is not what its term says")
	k.Function = "out0[i] = f(in0[i])"
	_, err = compileGenerated(&k)
	assert.Error(t, err)
}

// BenchmarkGenerated compares silu and mul in one generated kernel with two builtin kernels.
func BenchmarkGenerated(b *testing.B) {
	const n = 1536
	r := rand.New(rand.NewPCG(5, 6))
	x, y, z := floats(r, n), floats(r, n), make([]float32, n)
	var w Worker
	c := &Call{Threads: [3]int{n, 1, 1}}
	c.Device[0], c.Device[1], c.Device[2] = rawBytes(x), rawBytes(y), rawBytes(z)
	k := generate(b, "out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])")
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			k.Run(c, &w, 0, k.Units(c))
		}
	})
	b.Run(fmt.Sprint("loops of ", simd.Active()), func(b *testing.B) {
		for range b.N {
			simd.SiluTo(z, x)
			simd.MulTo(z, z, y)
		}
	})
}

// Each operation that a generated kernel may have, but numbers and elements, has a loop and a cost.
func TestOperationsHaveLoops(t *testing.T) {
	for _, op := range term.Operations() {
		if o, ok := operations[op]; op.Elementwise() && op.Args() > 0 {
			assert.True(t, ok && o.run != nil && o.ns > 0, "%s has no loop", op)
		} else {
			assert.False(t, ok, "%s has a loop that no kernel runs", op)
		}
	}
}
