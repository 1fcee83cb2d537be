package decl_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/msl/decl"
)

// products is a family: sums of one, two or three rows, or of two that are multiplied.
const products = `// @text  length() = 2*n
// @text  sizes() = 4|8
// @lines row(s; n)
// @arg   x{s} device {T}[{n}] read
// @end
// @text  total(C; s) = sum[{C}](k < {length()}, x{s}[k])
// @kernel {C:fast|slow}_{form:one=store|x3=0 1 2|times=multiply}_{T:float=f32|half=f16}_{n:{sizes()}}
// @if    form == store|multiply
// @use   row(; {length()})
// @else
// @each  i = {form}
// @use   row({i}; {length()} + {i})
// @end
// @end
// @arg   y device f32[1] write
// @arg 7 m constant i32
// @arg   l constant i32
// @arg   t threadgroup f32[1]
// @threads 1, 1, 1
// @group _, _, _
// @if    C != fast
// @require m > 1
// @end
// @if    form == store
// @term  y[i] = round(f32, {total({C}; )})
// @else
// @if    form == multiply
// @term  y[i] = round(f32, {total({C}; )} * {total(other; )})
// @else
// @term  y[i] = round(f32, {each i = {form}; {total({C}; {i})}; +})
// @end
// @end
`

// TestFamily: one declaration stands for kernels with other names, arguments, conditions and terms.
func TestFamily(t *testing.T) {
	read, err := decl.Parse("f.metal", products)
	require.NoError(t, err)
	var got []string
	families := map[string]int{}
	for _, d := range read.Decls {
		families[d.Family()]++
		if d.Template[0] != 4 || !strings.Contains(d.Name, "_half_") {
			continue
		}
		var args []string
		for _, a := range d.Args {
			args = append(args, fmt.Sprintf("%d %s %v %v", a.Slot, a.Name, a.Type, a.Shape))
		}
		got = append(got, fmt.Sprintf("%s %v %v %v", d.Name, args, d.Requires, d.Results[0].Body))
	}
	assert.Equal(t, []string{
		"fast_one_half_4 [0 x f16 [2 * n] 1 y f32 [1] 7 m i32 [] 8 l i32 [] 0 t f32 [1]] [] round(f32, sum[fast](k < 2 * n, x[k]))",
		"fast_x3_half_4 [0 x0 f16 [2 * n + 0] 1 x1 f16 [2 * n + 1] 2 x2 f16 [2 * n + 2] 3 y f32 [1] 7 m i32 [] 8 l i32 [] 0 t f32 [1]] [] " +
			"round(f32, sum[fast](k < 2 * n, x0[k]) + sum[fast](k < 2 * n, x1[k]) + sum[fast](k < 2 * n, x2[k]))",
		"fast_times_half_4 [0 x f16 [2 * n] 1 y f32 [1] 7 m i32 [] 8 l i32 [] 0 t f32 [1]] [] round(f32, sum[fast](k < 2 * n, x[k]) * sum[other](k < 2 * n, x[k]))",
		"slow_one_half_4 [0 x f16 [2 * n] 1 y f32 [1] 7 m i32 [] 8 l i32 [] 0 t f32 [1]] [m > 1] round(f32, sum[slow](k < 2 * n, x[k]))",
		"slow_x3_half_4 [0 x0 f16 [2 * n + 0] 1 x1 f16 [2 * n + 1] 2 x2 f16 [2 * n + 2] 3 y f32 [1] 7 m i32 [] 8 l i32 [] 0 t f32 [1]] [m > 1] " +
			"round(f32, sum[slow](k < 2 * n, x0[k]) + sum[slow](k < 2 * n, x1[k]) + sum[slow](k < 2 * n, x2[k]))",
		"slow_times_half_4 [0 x f16 [2 * n] 1 y f32 [1] 7 m i32 [] 8 l i32 [] 0 t f32 [1]] [m > 1] round(f32, sum[slow](k < 2 * n, x[k]) * sum[other](k < 2 * n, x[k]))",
	}, got)
	assert.Equal(t, map[string]int{
		"f.metal:7 C=fast form=store": 4, "f.metal:7 C=fast form=0 1 2": 4, "f.metal:7 C=fast form=multiply": 4,
		"f.metal:7 C=slow form=store": 4, "f.metal:7 C=slow form=0 1 2": 4, "f.metal:7 C=slow form=multiply": 4,
	}, families, "types and sizes make no family of their own")
}

// TestHeaders: a source uses what the headers that it includes define, whose lines errors name.
func TestHeaders(t *testing.T) {
	headers := map[string]string{
		"a.h": "#include \"b.h\"\n// @text two() = {one()} + 1\n",
		"b.h": "#include \"a.h\"\n// @text one() = 1\n// @lines bad()\n// @let x = 1 +\n// @end\n",
	}
	source := func(line string) string {
		return "#include \"a.h\"\n#include \"b.h\"\n#include \"c.h\"\n// @kernel k\n// @threads n, {two()}, 1\n// @group _, _, _\n// @" + line + "\n"
	}
	read, err := decl.ParseWith("f.metal", source("nondeterministic"), headers)
	require.NoError(t, err)
	assert.Equal(t, "1 + 1", read.Decls[0].Threads[1].Check.String())
	_, err = decl.ParseWith("f.metal", source("use bad()"), headers)
	assert.EqualError(t, err, `b.h:4: kernel k: @let: column 5 of " 1 +": the expression ends too early`)
	_, err = decl.Parse("f.metal", source("nondeterministic"))
	assert.ErrorContains(t, err, "f.metal:5: @threads: {two()} is neither")
}

// TestFamilyErrors: errors name the line, and what expands without end is refused soon.
func TestFamilyErrors(t *testing.T) {
	kernel := func(lines ...string) string {
		return "// @kernel k_{p:a|b}\n// @threads n, 1, 1\n// @group _, _, _\n// @" + strings.Join(lines, "\n// @") + "\n"
	}
	many := strings.Repeat("w ", 1000)
	doubling := []string{"text t0() = 1 + 1 + 1 + 1"}
	for i := range 40 {
		doubling = append(doubling, fmt.Sprintf("text t%d() = {t%d()} + {t%d()}", i+1, i, i))
	}
	for _, c := range []struct{ src, want string }{
		{kernel("if p == a"), "f.metal:4: @if: has no @end"},
		{kernel("each i = 1 2", "each j = 1", "end"), "f.metal:4: @each: has no @end"},
		{kernel("each i = 1 2", "else", "end"), "f.metal:5: @else: belongs to no @if"},
		{kernel("if p == a", "else", "else", "end"), "f.metal:6: @else: belongs to no @if"},
		{kernel("end"), "f.metal:4: @end: stands without @if or @each before it"},
		{kernel("else"), "f.metal:4: @else: stands without @if or @each before it"},
		{kernel("if q == a", "end"), `f.metal:4: @if: there is no parameter "q"`},
		{kernel("if p = a", "end"), `f.metal:4: @if: want NAME == VALUE|VALUE, or !=, found "p = a"`},
		{kernel("each 1 = a", "end"), `f.metal:4: @each: want NAME = WORD WORD …, found "1 = a"`},
		{kernel("each p = a", "end"), `f.metal:4: @each: "p" is defined twice`},
		{kernel("let x = {q}"), "f.metal:4: @let: {q} is neither a parameter nor a @text or @lines that stands before"},
		{kernel("let x = {p"), "f.metal:4: @let: { without }"},
		{kernel("let x = {each i = 1 2}"), "f.metal:4: @let: {each i = 1 2} is not {each NAME = WORD WORD …; TEXT; BETWEEN}"},
		{kernel("use f(1)"), "f.metal:4: @use: {f(1)} is neither a parameter nor a @text or @lines that stands before"},
		{"// @text f(a; b) = 1\n" + kernel("let x = {f(1)}"), "f.metal:5: @let: f has the parameters (a; b), not 1"},
		{"// @text f() = 1\n" + kernel("use f()"), "f.metal:5: @use: f() is a @text: it stands in braces"},
		{"// @lines f()\n// @end\n" + kernel("let x = {f()}"), "f.metal:6: @let: f() has lines: put them in place by @use"},
		{kernel("let x = {late()}", "text late() = 1"), "f.metal:4: @let: {late()} is neither a parameter nor a @text or @lines that stands before"},
		{"// @text a() = {b()}\n// @text b() = 1\n" + kernel("let x = {a()}"), "f.metal:6: @let: {b()} is neither a parameter nor a @text or @lines that stands before"},
		{"// @text f(\n", `f.metal:1: @text: want NAME(PARAMETER; …) = TEXT, found "f("`},
		{"// @text f = 1\n", `f.metal:1: @text: want NAME(PARAMETER; …), found "f"`},
		{"// @text f(a; a) = 1\n", `f.metal:1: @text: the parameter "a" has no valid name, or there are two of it`},
		{"// @text f() = 1\n// @text f() = 2\n", `f.metal:2: @text: "f" is defined twice`},
		{"// @lines f()\n", "f.metal:1: @lines: has no @end"},
		{kernel("arg 255 x device f32[n] read", "arg y device f32[n] read"), "f.metal:5: kernel k_a: @arg: 256 is no slot"},
		// Without end.
		{"// @kernel k" + strings.Repeat("{p:a|b}", 40) + "\n", "f.metal:1: the template parameters make more than 1024 kernels"},
		{kernel("each a = "+many, "each b = 1 2", "let x{a}{b} = 1", "end", "end"), "f.metal:1: kernel k_a: stands for more than 1024 lines"},
		{kernel("let x = " + strings.Repeat("{", 40) + "p" + strings.Repeat("}", 40)), "f.metal:4: @let: braces are nested more than 32 deep"},
		{kernel(strings.Split(strings.Repeat("if p == a|b\n", 40)+strings.Repeat("end\n", 40), "\n")...), "blocks are nested more than 32 deep"},
		{kernel("each a = "+many, "each b = "+many, "each c = "+many, "end", "end", "end"), "the declarations of this source expand to more than 8 MiB"},
		{"// @" + strings.Join(doubling[:12], "\n// @") + "\n" + kernel("each a = "+many, "each b = "+many, "let x = {t11()}", "end", "end"), "the declarations of this source expand to more than 8 MiB"},
		{"// @" + strings.Join(doubling, "\n// @") + "\n" + kernel("let x = {t40()}"), "f.metal:45: @let: braces are nested more than 32 deep"},
		// Nor without bounds in what the error quotes.
		{"// @" + strings.Join(doubling[:14], "\n// @") + "\n" + kernel("let x = {t13()} + unknown"), `"unknown" is not defined`},
	} {
		start := time.Now()
		_, err := decl.Parse("f.metal", c.src)
		assert.ErrorContains(t, err, c.want)
		assert.Less(t, len(err.Error()), 1000)
		assert.Less(t, time.Since(start), 10*time.Second, c.want)
	}
}

// TestAlternatives: a witness with alternatives is one for each combination.
func TestAlternatives(t *testing.T) {
	const kernel = "// @kernel k\n// @arg x device f32[n] read\n// @arg y device f32[n] write\n// @arg n constant i32\n" +
		"// @threads n, 1, 1\n// @group _, _, _\n// @term y[i] = x[i]\n"
	tests := func(line string) (*decl.Tests, error) {
		read, err := decl.Parse("f.metal", kernel+"// @"+line+"\n")
		require.NoError(t, err)
		return read.Tests()
	}
	read, err := tests("witness k ; n={1|2} inplace={x|y},y ; threads {4|5} 1 1 / 32 1 1 ; ok")
	require.NoError(t, err)
	var got []string
	for _, w := range read.Witnesses {
		got = append(got, fmt.Sprint(w.Values["n"], w.Inplace, w.Grid[0], w.Line))
	}
	assert.Equal(t, []string{
		"[1] [x y] 4 8", "[1] [x y] 5 8", "[1] [y y] 4 8", "[1] [y y] 5 8", "[2] [x y] 4 8", "[2] [x y] 5 8", "[2] [y y] 4 8", "[2] [y y] 5 8",
	}, got)
	_, err = tests("witness k ; n={1|2 ; threads 4 1 1 / 32 1 1 ; ok")
	assert.EqualError(t, err, "f.metal:8: @witness: { without }")
	_, err = tests("witness k ; n=" + strings.Repeat("{1|2}", 60) + " ; threads 4 1 1 / 32 1 1 ; ok")
	assert.ErrorContains(t, err, "the declarations of this source expand to more than 8 MiB")
}
