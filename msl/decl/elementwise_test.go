package decl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

func TestElementwise(t *testing.T) {
	d, err := decl.Elementwise("out0[i, j] = round(f32, in0[i, j] * in1[j] + s0); out1[i, j] = round(f32, in2[i] - in3[0])")
	require.NoError(t, err)
	var args []string
	for _, a := range d.Args {
		s := fmt.Sprint(a.Slot, " ", a.Name, " ", a.Kind, " ", a.Type)
		for _, e := range a.Shape {
			s += " " + e.String()
		}
		args = append(args, s+" "+a.Mode.String())
	}
	assert.Equal(t, []string{
		"0 in0 device f32 d0 d1 read", "1 in1 device f32 d1 read", "2 in2 device f32 d0 read", "3 in3 device f32 1 read",
		"4 out0 device f32 d0 d1 write", "5 out1 device f32 d0 d1 write", "6 s0 constant f32 read",
	}, args)
	assert.Equal(t, [][2]int{{4, 0}, {5, 0}}, d.Inplace)
	half, err := decl.Elementwise("out0[i] = round(f16, round(f16, in0_f16[i] * in1[i]) * 2.0); out1[i] = in0_f16[i]; out2[i] = round(f32, in0_f16[i])")
	require.NoError(t, err)
	args = nil
	for _, a := range half.Args {
		args = append(args, fmt.Sprint(a.Slot, " ", a.Name, " ", a.Type))
	}
	assert.Equal(t, []string{"0 in0_f16 f16", "1 in1 f32", "2 out0 f16", "3 out1 f16", "4 out2 f32"}, args)
	assert.Equal(t, [][2]int{{2, 0}, {3, 0}, {4, 1}}, half.Inplace, "operands of the same type")
	k := d.Kernel("k")
	assert.Equal(t, ir.Generated, k.Library.Kind)
	assert.Equal(t, d.Name, k.Function)
}

// Whatever is not canonical is refused: one kernel has one text.
func TestElementwiseRefuses(t *testing.T) {
	many := "in0[i]"
	for k := 1; k < 31; k++ {
		many += fmt.Sprintf(" + in%d[i]", k)
	}
	for text, want := range map[string]string{
		"":                                                                           `does not begin with "out0[i, j] = "`,
		"out0[i] = in0[j]":                                                           "in0[j]: no index of a result with [i]",
		"out0[i] = round(f32, in1[i])":                                               "in1: operands are in0[…], in1[…]",
		"out0[i] = round(f32, in00[i])":                                              "in00: operands are",
		"out0[i] = round(f32, x[i])":                                                 "x: operands are",
		"out0[i] = round(f32, s1)":                                                   "s1: operands are",
		"out0[i] = round(f32, in0)":                                                  "in0: operands are",
		"out0[i] = round(f32, in0[i)":                                                "[ without ]",
		"out0[i] = in0[i] * 2.0":                                                     "needs round(f32, …)",
		"out0[i] = round(u32, in0[i])":                                               "round takes f16, bf16 or f32",
		"out0[i] = round(bf16, in0[i] + in0_bf16[i])":                                "in0_bf16 is also in0",
		"out0[i] = round(f16, in0[i]) + in1[i]":                                      "needs round(f16, …)",
		"out0[i] = round(f16, in0[i] + in0_f16[i])":                                  "in0_f16 is also in0",
		"out0[i] = round(f16, in0_u16[i])":                                           "in0_u16: operands are",
		"out0[i] = round(f16, s0_f16)":                                               "\"s0_f16\" is not defined",
		"out0[i] = in0[i] + in1_f16[i]":                                              "needs round(f32, …)",
		"out0[i] = round(f32, in0[i]*2.0)":                                           "is not canonical",
		"out0[i] = round(f32, (in0[i]))":                                             "is not canonical",
		"out0[i] = round(f32, in0[i] * 2)":                                           "write 2.0 for the number 2",
		"out0[i] = round(f32, f32(i))":                                               "not an operation of elements",
		"out0[i] = round(f32, erf(in0[i]))":                                          "not an operation of elements",
		"out0[i] = round(f32, sum[c](k < 3, in0[i]))":                                "sum: operands are",
		"out0[i] = round(f32, round(f32, in0[i]))":                                   "around a whole result only",
		"out0[i] = round(f32, in0[i]); out1[i, j] = round(f32, in0[i])":              `result 1 does not begin with "out1[i] = "`,
		"out0[i] = round(f32, in0[i] + in0[0])":                                      "in0 is indexed with [i] and with [0]",
		"out0[i] = round(f32, " + many + ")":                                         "has 32 arguments, Metal 31 slots",
		"out0[i] = round(f32, " + strings.Repeat("-", 5000) + "in0[i])":              "at most 4096 are possible",
		"out0[i] = round(f32, " + strings.Repeat("-", 500) + "in0[i])":               "nested deeper than 100",
		"out0[i] = in0[i]" + strings.Repeat("; out1[i] = in0[i]", 4):                 "has 5 results, at most 4 are possible",
		"out0[i] = round(f32, in0[i] \\ 2.0)":                                        "unexpected",
		"out0[i] = round(f32, in99999999999999999999[i])":                            "operands are",
		"v0[i] = in0[i] + 1.0":                                                       "has no result out0",
		"v0[i] = in0[i] + 1.0; out0[i] = round(f32, v0[i])":                          "v0 is used 1 times",
		"v0[i] = in0[i] + 1.0; out0[i] = in0[i]":                                     "v0 is used 0 times",
		"v1[i] = in0[i] + 1.0; out0[i] = round(f32, v1[i] * v1[i])":                  `shared term 0 does not begin with "v0[i] = "`,
		"v0[i, j] = in0[i] + 1.0; out0[i] = round(f32, v0[i] * v0[i])":               `shared term 0 does not begin with "v0[i] = "`,
		"v0[i] = in0[i]; out0[i] = round(f32, v0[i] * v0[i])":                        "v0 is in0[i]: a name of its own is for an operation",
		"v0[i] = 2.0; out0[i] = round(f32, v0[i] * v0[i])":                           "v0 is 2.0: a name of its own is for an operation",
		"v0[i] = in0[i] + v0[i]; out0[i] = round(f32, v0[i] * v0[i])":                "v0[i]: no shared term",
		"out0[i] = round(f32, v0[i] * v0[i])":                                        "v0[i]: no shared term",
		"v0[i, j] = -in0[i, j]; out0[i, j] = round(f32, v0[j, i] * v0[i, j])":        "v0[j, i]: no shared term",
		"v0[i] = in0[i] + 1.0; out0[i] = v0[i]; out1[i] = v0[i]":                     "needs round(f32, …)",
		"v0[i] = round(f32, in0[i]); out0[i] = round(f32, v0[i] * v0[i])":            "around a whole result only",
		"v0[i] = in0[i] * 2; out0[i] = round(f32, v0[i] * v0[i])":                    "write 2.0 for the number 2",
		"v0[i] = in0[i]*2.0; out0[i] = round(f32, v0[i] * v0[i])":                    "is not canonical",
		"v0[i] = in0[i] < 1.0; out0[i] = round(f32, v0[i] * v0[i])":                  "not conditions",
		"out0[i] = round(f32, in0[i] + 1.0); v0[i] = in0[i] + 1.0; out1[i] = in0[i]": `result 1 does not begin with "out1[i] = "`,
	} {
		_, err := decl.Elementwise(text)
		assert.ErrorContains(t, err, want, "%.60s", text)
	}
}

// A term that is needed twice has a name, and is one @where of the declaration.
func TestElementwiseShared(t *testing.T) {
	d, err := decl.Elementwise("v0[i, j] = in0[i, j] < in1[j]; v1[i, j] = select(v0[i, j], in0[i, j], s0); out0[i, j] = round(f32, v1[i, j] * v1[i, j]); out1[i, j] = round(f16, select(v0[i, j], v1[i, j], 0.0))")
	require.NoError(t, err)
	require.Len(t, d.Wheres, 2)
	assert.Equal(t, []string{"i", "j"}, d.Wheres[1].Vars)
	assert.Equal(t, "select(v0[i, j], in0[i, j], s0)", d.Wheres[1].Body.String())
	assert.Equal(t, term.Bool, d.Wheres[0].Body.Kind)
	assert.Equal(t, 1, d.Results[1].Body.Args[0].Args[1].Index)
	var names []string
	for _, a := range d.Args {
		names = append(names, a.Name)
	}
	assert.Equal(t, []string{"in0", "in1", "out0", "out1", "s0"}, names)
}

// Any text is refused or describes a kernel; it never panics.
func TestElementwiseOfAnything(t *testing.T) {
	pieces := []string{"out0[i] = ", "out0[i, j] = ", "out1[i] = ", "; ", "round(f32, ", ")", "(", "in0[i]", "in1[i]", "in0[i, j]", "in1[j]", "round(f16, ", "in0_f16[i]", "in1_f16[j]", "s0", " + ", " * ", "-", "1.0", "2e",
		"select(", ", ", " < ", "inf", "[", "]", "!", "v0[i] = ", "v0[i]", "v1[i]", "x", "exp(", "\x00", "é"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 14).Draw(t, "pieces"), "")
		d, err := decl.Elementwise(text)
		require.NotEqual(t, err == nil, d == nil)
		if d != nil {
			again, err := decl.Elementwise(d.Name)
			require.NoError(t, err)
			require.Equal(t, d.Kernel("k"), again.Kernel("k"))
		}
	})
}
