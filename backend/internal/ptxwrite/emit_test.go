package ptxwrite

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/randomterm"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
)

var launches = []nvptx.Launch{{}, {Moving: true}, {Values: true}, {Programmatic: true, Values: true}, {Programmatic: true, Moving: true, Values: true}}

// texts use every operation, type and index.
var texts = []string{
	"out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])",
	"out0[i, j] = round(f32, (in0[i, j] - in1[i]) * in2[j] + in3[0] * s0); out1[i, j] = in0[i, j]",
	"out0[i] = round(f32, select(!(in0[i] < 0.0) && in0[i] <= inf || in0[i] == 1e-05, 1.0, -abs(in0[i])))",
	"out0[i] = round(f32, min(exp(in0[i]), exp2(in0[i]))); out1[i] = round(f32, max(log(in0[i]), sqrt(in0[i]))); out2[i] = round(f32, rsqrt(in0[i]) * sin(in0[i])); out3[i] = round(f32, cos(in0[i]) / tanh(in0[i]))",
	"out0[i] = round(f32, min(in0[i], in1[i])); out1[i] = round(f32, max(in0[i], in1[i])); out2[i] = round(f32, sin(in0[i])); out3[i] = round(f32, tanh(in0[i]))",
	"out0[i, j] = round(f32, 2.5)",
	"out0[i] = round(f16, round(f16, in0_f16[i] * in1[i]) + s0); out1[i] = in0_f16[i]; out2[i] = round(f32, -in0_f16[i])",
	"out0[i, j] = round(f16, in0_f16[i] * in1_f16[j] - in2_f16[0])",
	"out0[i, j] = round(bf16, round(bf16, in0_bf16[i, j] * in1_bf16[j]) + round(f16, in2[0])); out1[i, j] = in0_bf16[i, j]; out2[i, j] = round(f16, in0_bf16[i, j])",
	"v0[i, j] = in0[i, j] < in1[j]; v1[i, j] = round(f16, select(v0[i, j], in0[i, j], s0)); out0[i, j] = round(f32, v1[i, j] * v1[i, j]); out1[i, j] = round(f16, v1[i, j]); out2[i, j] = round(f32, select(v0[i, j], 1.0, 2.0))",
	"out0[i] = round(f32, select(in0[i] != s0 && in0[i] > s1, s0, select(in0[i] >= s1, s1, in0[i])))",
}

// compiled is what clang makes of a kernel's Metal source.
func compiled(t *testing.T, d *decl.Decl) air.Input {
	t.Helper()
	u, err := mslc.Compile(t.Context(), "generated.metal", elementwise.Compile(d).Source(), mslc.Options{})
	require.NoError(t, err)
	m, err := u.Module(elementwise.Function)
	require.NoError(t, err)
	return air.Input{Name: "generated.metal", IR: []byte(m), Kernel: &u.Kernels[0]}
}

// results runs the text of a kernel, and returns what it has stored.
func results(d *decl.Decl, text []byte, launch nvptx.Launch, seed uint64) ([]byte, error) {
	p, err := ptxrun.Parse(text)
	if err != nil {
		return nil, err
	}
	if early, err := nvptx.Early(text); err != nil || len(early) > 0 {
		return nil, fmt.Errorf("early arguments %v: %w", early, err)
	}
	if target := map[bool]string{false: "sm_80", true: "sm_90"}[launch.Programmatic]; p.Target != target {
		return nil, fmt.Errorf("it is for %s, and not for %s", p.Target, target)
	}
	l := randomterm.NewLaunch(d, launch, seed)
	m := &ptxrun.Memory{}
	var addresses []uint64
	for _, b := range l.Memory {
		addresses = append(addresses, m.Add(b))
	}
	params, table := l.Params(addresses)
	if launch.Moving {
		params = append(params, m.Add(table), l.Moves)
	}
	if err := p.Run(m, ptxrun.Launch{Params: params, Grid: l.Grid, Block: l.Block}); err != nil {
		return nil, err
	}
	// Threads that are in the grid wait, and others may; those that have waited let others begin.
	threads, some, all := int(l.Grid[0]*l.Grid[1]*l.Grid[2]*l.Block), p.Calls["wait"], p.Calls["launch_dependents"]
	if right := all == some && some <= threads && some >= l.Threads(); launch.Programmatic != right || !launch.Programmatic && len(p.Calls) > 0 {
		return nil, fmt.Errorf("threads called %v: there are %d, %d of them in the grid", p.Calls, threads, l.Threads())
	}
	var stored []byte
	for _, i := range l.Results {
		stored = append(stored, l.Memory[i]...)
	}
	return stored, nil
}

// same compares what both texts of a kernel store, for all launches.
func same(t *testing.T, c clang.Compiler, text string, seed uint64, launches ...nvptx.Launch) {
	t.Helper()
	d, err := decl.Elementwise(text)
	require.NoError(t, err)
	in := compiled(t, d)
	for i := range in.Kernel.Args {
		in.Kernel.Args[i].Unused = false // what a result does not depend on, we load all the same
	}
	require.Equal(t, in.Kernel, Describe(d), text)
	for _, l := range launches {
		theirs, err := nvptx.Compile(context.Background(), c, in, l)
		require.NoError(t, err)
		want, err := results(d, theirs, l, seed)
		require.NoError(t, err, "%s, %+v\n%s", text, l, theirs)
		ours := Emit(d, l)
		got, err := results(d, ours, l, seed)
		require.NoError(t, err, "%s, %+v\n%s", text, l, ours)
		require.Equal(t, want, got, "%s, %+v\n%s", text, l, ours)
	}
}

// TestEmit: the entries of kernels compute the same bits as those that clang makes of their source.
func TestEmit(t *testing.T) {
	sample.Seldom(t)
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	for i, text := range texts {
		all := launches
		if i > 1 {
			all = launches[i%4:][:1]
		}
		same(t, c, text, uint64(i), all...)
	}
	r := rand.New(rand.NewPCG(7, 7))
	n := 12
	if os.Getenv("MLXC_LONG") != "" {
		n = 1000
	}
	skipped := 0
	for i := 0; i-skipped < n; i++ {
		text := randomterm.Elementwise(r)
		// LLVM (22 at least) computes in f16 what is made of bfloats in f32 and then rounded to f16: it compares the bits of
		// the significands, and not those of the exponents. So 1e-30 / 0 is NaN, for 1e-30 is 0 then.
		if strings.Contains(text, "bf16") && strings.Contains(text, "round(f16") {
			skipped++
			continue
		}
		same(t, c, text, uint64(100+i), launches[i%4])
	}
	assert.Less(t, skipped, 2*n) // both types stand in two thirds of the first terms, and in fewer than half of a thousand
}

// TestEmitNoticed: one wrong instruction in the text of a kernel changes what it stores.
func TestEmitNoticed(t *testing.T) {
	d, err := decl.Elementwise("out0[i, j] = round(f32, min(in0[i, j], in1[j]) * s0 + exp(in0[i, j])); out1[i, j] = round(f16, in0[i, j] - in2[i])")
	require.NoError(t, err)
	l := nvptx.Launch{Moving: true}
	text := string(Emit(d, l))
	const seeds = 6
	var want [seeds][]byte
	for seed := range want {
		want[seed], err = results(d, []byte(text), l, uint64(seed))
		require.NoError(t, err)
	}
	for _, change := range [][2]string{
		{"min.f32", "max.f32"}, {"add.rn.f32", "sub.rn.f32"}, {"0f7FC00000", "0f7FC00001"}, {"0x7E00", "0x7E01"}, {"2139095040", "2139095039"}, {"setp.gt.u16", "setp.lt.u16"},
		{"cvt.rn.f16.f32", "cvt.u16.u32"}, {"0f3FB8AA3B", "0f3F38AA3B"}, {"rem.u32", "min.u32"}, {"or.pred", "and.pred"}, {"add.s64", "sub.s64"},
		{"setp.ne.b64", "setp.eq.b64"}, {"setp.ge.u32", "setp.lt.u32"}, {", 2;", ", 1;"},
	} {
		bad := strings.Replace(text, change[0], change[1], 1)
		require.NotEqual(t, text, bad, change)
		noticed := false
		for seed := range want {
			got, err := results(d, []byte(bad), l, uint64(seed))
			noticed = noticed || err != nil || !bytes.Equal(want[seed], got)
		}
		assert.True(t, noticed, "%v is not noticed", change)
	}
}

// TestMathText: math.ptx is made of today's functions, by the clang that its first line names.
func TestMathText(t *testing.T) {
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	stamp, err := MathStamp()
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(mathText, stamp), "internal/air/calls has other functions than math.ptx: run `make ptx`")
	if first, _, _ := strings.Cut(mathText, "\n"); strings.Contains(first, fmt.Sprintf("clang %d;", c.Version)) {
		text, err := MathText(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, mathText, text, "run `make ptx`")
	}
	_, err = parseMath(mathText)
	require.NoError(t, err)
	for _, bad := range []string{
		strings.Replace(mathText, "mul.rn.f64", "call", 1), strings.Replace(mathText, "ret;\n}", "ret;\nadd.s32 %r1, %r1, 1;\n}", 1),
		strings.Replace(mathText, "mlxc_tanh(", "mlxc_tan(", 1), strings.Replace(mathText, "cvt.f64.f32", "ld.global.b32 [%rd1]", 1),
	} {
		require.NotEqual(t, mathText, bad)
		_, err = parseMath(bad)
		assert.Error(t, err)
	}
}
