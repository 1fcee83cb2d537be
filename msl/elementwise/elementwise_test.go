package elementwise_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/internal/toolchain/mslcheck"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

func compile(t *testing.T, text string) *elementwise.Program {
	t.Helper()
	d, err := decl.Elementwise(text)
	require.NoError(t, err)
	return elementwise.Compile(d)
}

const silu = "out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])"

func ExampleProgram_Source() {
	d, err := decl.Elementwise(silu)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, body, _ := strings.Cut(elementwise.Compile(d).Source(), "grid]]) {\n")
	fmt.Print(body)
	// Output:
	//   const float v0 = in0[at];
	//   const float v1 = 1.0f;
	//   const float v2 = -v0;
	//   const float v3 = precise::exp(v2);
	//   const float v4 = v1 + v3;
	//   const float v5 = v0 / v4;
	//   const float v6 = in1[at];
	//   const float v7 = v5 * v6;
	//   out0[at] = stored(v7);
	// }
}

// A term that is used twice is computed once.
func TestSharedSteps(t *testing.T) {
	p := compile(t, "out0[i] = round(f32, exp(in0[i]) + exp(in0[i])); out1[i] = round(f32, exp(in0[i]) * s0)")
	count := map[term.Op]int{}
	for _, s := range p.Steps {
		count[s.Op]++
	}
	assert.Equal(t, map[term.Op]int{term.Load: 1, term.Exp: 1, term.Add: 1, term.Symbol: 1, term.Mul: 1}, count)
	assert.Equal(t, []uint8{1, 2}, p.Out)
	assert.Equal(t, []uint8{3}, p.Constants)
}

var texts = []string{
	silu,
	"out0[i, j] = round(f32, (in0[i, j] - in1[i]) * in2[j] + in3[0] * s0); out1[i, j] = in0[i, j]",
	"out0[i] = round(f32, select(!(in0[i] < 0.0) && in0[i] <= inf || in0[i] == 1e-05, 1.0, -abs(in0[i])))",
	"out0[i] = round(f32, min(exp(in0[i]), exp2(in0[i])) + max(log(in0[i]), sqrt(in0[i])) + rsqrt(in0[i]) * sin(in0[i]) - cos(in0[i]) / tanh(in0[i]))",
	"out0[i, j] = round(f32, 2.5)",
	"out0[i] = round(f16, round(f16, in0_f16[i] * in1[i]) + s0); out1[i] = in0_f16[i]; out2[i] = round(f32, -in0_f16[i])",
	"out0[i, j] = round(f16, in0_f16[i] * in1_f16[j] - in2_f16[0])",
	"out0[i, j] = round(bf16, round(bf16, in0_bf16[i, j] * in1_bf16[j]) + round(f16, in2[0])); out1[i, j] = in0_bf16[i, j]; out2[i, j] = round(f16, in0_bf16[i, j])",
	"v0[i, j] = in0[i, j] < in1[j]; v1[i, j] = round(f16, select(v0[i, j], in0[i, j], s0)); out0[i, j] = round(f32, v1[i, j] * v1[i, j]); out1[i, j] = round(f16, v1[i, j]); out2[i, j] = round(f32, select(v0[i, j], 1.0, 2.0))",
	"out0[i] = round(f32, select(in0[i] != s0 && in0[i] > s1, s0, select(in0[i] >= s1, s1, in0[i])))",
}

// Generated kernels compile to LLVM IR, with the arguments of their declarations.
func TestSourceCompiles(t *testing.T) {
	sample.Seldom(t)
	for i, text := range texts {
		p := compile(t, text)
		u, err := mslc.Compile(context.Background(), fmt.Sprintf("generated%d.metal", i), p.Source(), mslc.Options{})
		require.NoError(t, err, "%s\n%s", text, p.Source())
		require.Len(t, u.Kernels, 1)
		slots := map[int]air.Arg{}
		for _, a := range u.Kernels[0].Args {
			if a.Attribute == "" {
				slots[a.Index] = a
			}
		}
		require.Len(t, slots, len(p.Decl.Args), text)
		for _, x := range p.Decl.Args {
			a := slots[int(x.Slot)]
			assert.Equal(t, x.Type, mslcheck.Types[a.Type], "%s: %s", text, x.Name)
			assert.Equal(t, x.Kind == ir.ConstantArg, a.Space == air.Constant, "%s: %s", text, x.Name)
			assert.Equal(t, x.Mode == decl.Read, a.Access == air.Read, "%s: %s", text, x.Name)
		}
		module, err := u.Module(elementwise.Function)
		require.NoError(t, err)
		assert.Contains(t, module, "define dso_local void @elementwise(", text)
	}
}

// Metal source of generated kernels passes the same checks as the library's,
// and its arguments are the declaration's.
func TestSourceIsMetal(t *testing.T) {
	sample.Seldom(t)
	for i, text := range texts {
		p := compile(t, text)
		lib, err := mslcheck.Check(context.Background(), fmt.Sprintf("generated%d.metal", i), p.Source())
		require.NoError(t, err, "%s\n%s", text, p.Source())
		require.Len(t, lib.Kernels, 1)
		k := lib.Kernels[0]
		assert.Equal(t, elementwise.Function, k.Host)
		var got []ir.Arg
		for _, a := range k.Params {
			x := ir.Arg{Slot: uint8(a.Slot), Name: a.Name, Type: map[string]ir.DType{"float": ir.F32, "half": ir.F16, "bfloat": ir.BF16}[a.Type], Access: ir.WriteArg}
			if a.Const {
				x.Access = ir.ReadArg
			}
			if a.Space == "constant" {
				x.Kind, x.Count = ir.ConstantArg, 1
			}
			got = append(got, x)
		}
		want := p.Decl.Kernel("k").Args
		for i := range want { // a device argument has no count
			if want[i].Kind == ir.DeviceArg {
				want[i].Count = 0
			}
		}
		assert.Equal(t, want, got, text)
	}
}

// scope resolves every unknown name to an operand or a constant, as in terms that a pass composes.
type scope struct{}

func (scope) Symbol(n string) (int, term.Kind, bool)    { return 0, term.Float, n == "eps" }
func (scope) Load(n string) (int, int, term.Kind, bool) { return 0, 1, term.Float, n != "grid" }
func (scope) Abbrev(string) (int, int, term.Kind, bool) { return 0, 0, 0, false }
func parse(t *testing.T, s string, vars ...string) *term.Expr {
	t.Helper()
	e, err := term.Parse(s, scope{}, vars...)
	require.NoError(t, err)
	return e
}

// A node that several others share is written once, and so are the nodes that its parts
// share. Leaves and negative numbers get no names.
func TestTextOfGraphs(t *testing.T) {
	x := parse(t, "x[i]", "i")
	op := func(op term.Op, args ...*term.Expr) *term.Expr {
		return &term.Expr{Op: op, Kind: term.Float, Args: args}
	}
	silu := func(x *term.Expr) *term.Expr {
		return op(term.Div, x, op(term.Add, parse(t, "1.0"), op(term.Exp, op(term.Neg, x))))
	}
	write := func(results ...*term.Expr) string {
		text, _, err := elementwise.Text(true, results...)
		require.NoError(t, err)
		return text
	}
	h := op(term.Add, x, silu(x))
	assert.Equal(t, "out0[i] = round(f32, in0[i] + in0[i] / (1.0 + exp(-in0[i])))", write(h))
	minus := op(term.Neg, parse(t, "2.0"))
	assert.Equal(t, "out0[i] = round(f32, -2.0 + -2.0)", write(op(term.Add, minus, minus)))
	assert.Equal(t, "v0[i] = in0[i] + in0[i] / (1.0 + exp(-in0[i])); out0[i] = round(f32, v0[i] + v0[i] / (1.0 + exp(-v0[i])))", write(op(term.Add, h, silu(h))))
	half := op(term.Round, h)
	half.Type = ir.F16
	assert.Equal(t, "v0[i] = round(f16, in0[i] + in0[i] / (1.0 + exp(-in0[i]))); out0[i] = round(f16, v0[i]); out1[i] = round(f32, v0[i] * v0[i])", write(half, op(term.Mul, half, half)))
	y := parse(t, "y[i]", "i")
	assert.Equal(t, "v0[i] = in0[i] * in1[i]; v1[i] = v0[i] + v0[i]; out0[i] = round(f32, v1[i]); out1[i] = round(f32, exp(v1[i]) - in1[i])",
		func() string {
			xy := op(term.Mul, x, y)
			s := op(term.Add, xy, xy)
			return write(s, op(term.Sub, op(term.Exp, s), y))
		}())
	// A thousand uses of a term are a thousand calls of its name, 2^64 paths to a term are 64
	// steps, and what is too long is an error.
	deep := x
	for range 64 {
		deep = op(term.Add, deep, deep)
	}
	text := write(deep)
	assert.Equal(t, 63, strings.Count(text, "; "))
	p := compile(t, text)
	assert.Len(t, p.Steps, 65)
	for range 1000 {
		deep = op(term.Add, deep, deep)
	}
	_, _, err := elementwise.Text(true, deep)
	assert.ErrorIs(t, err, elementwise.TooLong)
}

func TestText(t *testing.T) {
	text, names, err := elementwise.Text(true,
		parse(t, "round(f32, up[i] * round(f32, gate[i] + eps))", "i"), parse(t, "round(f32, gate[i])", "i"))
	require.NoError(t, err)
	assert.Equal(t, "out0[i] = round(f32, in0[i] * (in1[i] + s0)); out1[i] = round(f32, in1[i])", text)
	assert.Equal(t, elementwise.Names{Operands: []string{"up", "gate"}, Constants: []string{"eps"}}, names)

	half := parse(t, "round(f16, up[i])", "i")
	half.Args[0].Type = ir.F16
	text, _, err = elementwise.Text(true, half, half.Args[0], parse(t, "round(f32, round(f16, gate[i]))", "i"))
	require.NoError(t, err)
	assert.Equal(t, "out0[i] = round(f16, in0_f16[i]); out1[i] = in0_f16[i]; out2[i] = round(f32, round(f16, in1[i]))", text)
	text, _, err = elementwise.Text(true, parse(t, "round(bf16, up[i])", "i"))
	require.NoError(t, err)
	assert.Equal(t, "out0[i] = round(bf16, in0[i])", text)
	_, _, err = elementwise.Text(true, parse(t, "f32(i) * up[i]", "i"))
	assert.ErrorContains(t, err, "not an operation of elements")
	_, _, err = elementwise.Text(true, parse(t, "up[i] * up[0]", "i"))
	assert.ErrorContains(t, err, "in0 is indexed with [i] and with [0]")
}
