package decl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// source makes a Metal source of declaration lines: the first stands in line 3.
func source(lines ...string) string {
	return "#include <metal_stdlib>\n\n// @" + strings.Join(lines, "\n// @") + "\nkernel void f();\n"
}

// row is a whole declaration, to be damaged.
func row() []string {
	return []string{
		/* 3 */ "kernel row{T:float32=f32|float16=f16}",
		/* 4 */ "constant 20 fast bool",
		/* 5 */ "arg 0 x device {T}[rows, n : pitch, 1] read",
		/* 6 */ "arg 1 y device {T}[rows, n] write",
		/* 7 */ "arg 2 n constant u32",
		/* 8 */ "arg 3 pitch constant i64",
		/* 9 */ "groups rows, 1, 1",
		/* 10 */ "group 32*m, 1, 1",
		/* 11 */ "let m = ceil(n/32)",
		/* 12 */ "require n >= 1 && n <= 1024",
		/* 13 */ "inplace y x",
		/* 14 */ "where z[r, i] = x[r, i] + 1.0",
		/* 15 */ "term y[r, i] = round({T}, z[r, i] * 2)",
	}
}

// with returns the source of row with changed lines: "12: require n == 2" replaces line 12,
// or appends it, and "12:" deletes it.
func with(changes ...string) string {
	lines := row()
	for _, c := range changes {
		at, text, _ := strings.Cut(c, ":")
		var i int
		if _, err := fmt.Sscan(at, &i); err != nil {
			panic(err)
		}
		for len(lines) <= i-3 {
			lines = append(lines, "")
		}
		lines[i-3] = strings.TrimSpace(text)
	}
	for i, l := range lines {
		if l == "" {
			lines[i] = "nondeterministic" // says nothing that these cases look at
		}
	}
	return source(lines...)
}

func TestParse(t *testing.T) {
	read, err := decl.Parse("row.metal", source(row()...))
	ds := read.Decls
	require.NoError(t, err)
	require.Len(t, ds, 2)
	d := ds[1]
	assert.Equal(t, "rowfloat32", ds[0].Name)
	assert.Equal(t, "rowfloat16", d.Name)
	assert.Equal(t, "row.metal", d.File)
	assert.Equal(t, 3, d.Line)
	assert.Equal(t, []decl.Constant{{Index: 20, Name: "fast", Type: ir.Bool, Symbol: 0}}, d.Constants)
	assert.Equal(t, []decl.Symbol{{Name: "fast"}, {Name: "n"}, {Name: "pitch"}, {Name: "rows"}, {Name: "m"}}, d.Symbols)
	assert.Empty(t, d.Template)
	x, ok := d.ArgNamed("x")
	require.True(t, ok)
	assert.Equal(t, ir.F16, x.Type)
	assert.Equal(t, decl.Read, x.Mode)
	assert.Equal(t, "[rows n] [pitch 1]", fmt.Sprint(x.Shape, x.Strides))
	y, _ := d.ArgNamed("y")
	assert.Nil(t, y.Strides)
	assert.Equal(t, 3, d.Groups[0].Bind)
	assert.Equal(t, -1, d.Groups[1].Bind)
	assert.Equal(t, "1", d.Groups[1].Check.String())
	assert.Equal(t, "32 * m", d.Group[0].Check.String())
	assert.Nil(t, d.Threads)
	assert.Equal(t, [][2]int{{1, 0}}, d.Inplace)
	assert.Equal(t, "round(f16, z[r, i] * 2)", d.Results[0].Body.String())
	assert.Equal(t, []string{"r", "i"}, d.Results[0].Vars)
	assert.Equal(t, []term.Abbrev{{Params: 2, Body: d.Wheres[0].Body}}, d.Abbrevs())
	_, ok = d.ArgNamed("w")
	assert.False(t, ok)
}

// TestKernel: the argument table that a dispatch's kernel gets leaves unused
// arguments out.
func TestKernel(t *testing.T) {
	d := parse(t, "kernel k", "arg 0 x device f32[n] read", "arg 1 y device f32[n] update", "arg 2 z device f32 unused",
		"arg 3 n constant i32", "arg 4 s constant i64[2] unused", "arg 0 t threadgroup f32[n]", "threads n, 1, 1", "term y[i] = round(f32, y[i] + x[i])")
	k := d.Kernel("k1", ir.FunctionConstant{Index: 3, Type: ir.Bool})
	assert.Equal(t, ir.Kernel{Name: "k1", Function: "k", Constants: []ir.FunctionConstant{{Index: 3, Type: ir.Bool}}, Args: []ir.Arg{
		{Slot: 0, Name: "x", Kind: ir.DeviceArg, Access: ir.ReadArg, Type: ir.F32},
		{Slot: 1, Name: "y", Kind: ir.DeviceArg, Access: ir.ReadWriteArg, Type: ir.F32},
		{Slot: 3, Name: "n", Kind: ir.ConstantArg, Access: ir.ReadArg, Type: ir.I32, Count: 1},
		{Slot: 0, Name: "t", Kind: ir.ThreadgroupArg, Access: ir.ReadWriteArg, Type: ir.F32},
	}}, k)
}

// TestTemplates: one declaration for each combination, the last parameter
// fastest; integers and booleans are symbols, everything is text in braces.
func TestTemplates(t *testing.T) {
	read, err := decl.Parse("f.metal", source(
		"kernel q_{W:half=f16|float=f32}_gs_{g:32|64}_al_{a:true|false}",
		"arg 0 w device {W}[g, 2*a + {g}] read", "arg 1 y device {W}[g] write", "threads g, 1, 1", "group _, _, _", "require a == 0 || g == 64", "term y[i] = w[i, 0]",
	))
	ds := read.Decls
	require.NoError(t, err)
	var got []string
	for _, d := range ds {
		got = append(got, fmt.Sprint(d.Name, " ", d.Args[0].Type, d.Args[0].Shape, d.Template))
	}
	assert.Equal(t, []string{
		"q_half_gs_32_al_true f16 [g 2 * a + 32] map[0:32 1:1]",
		"q_half_gs_32_al_false f16 [g 2 * a + 32] map[0:32 1:0]",
		"q_half_gs_64_al_true f16 [g 2 * a + 64] map[0:64 1:1]",
		"q_half_gs_64_al_false f16 [g 2 * a + 64] map[0:64 1:0]",
		"q_float_gs_32_al_true f32 [g 2 * a + 32] map[0:32 1:1]",
		"q_float_gs_32_al_false f32 [g 2 * a + 32] map[0:32 1:0]",
		"q_float_gs_64_al_true f32 [g 2 * a + 64] map[0:64 1:1]",
		"q_float_gs_64_al_false f32 [g 2 * a + 64] map[0:64 1:0]",
	}, got)
}

// TestLayout: where a declaration may stand, how lines continue, what a remark
// is, and that several declarations follow one another.
func TestLayout(t *testing.T) {
	read, err := decl.Parse("f.metal", strings.Join([]string{
		"// A remark about @kernel in prose is none:",
		"//   see @kernel above",
		"  /// @kernel a -- the first",
		"//\t@arg 0 y device f32[n, \\",
		"//       m] \\ ",
		"//  write -- a remark \\",
		"// @arg 1 m constant i32",
		"// @threads n, m, 1",
		"// @term y[i, j] = round(f32, i + -- not a term",
		"//",
	}, "\r\n"))
	ds := read.Decls
	assert.EqualError(t, err, `f.metal:9: kernel a: @term: column 16 of " round(f32, i +": the expression ends too early`)
	assert.Empty(t, ds)

	read, err = decl.Parse("f.metal", strings.Join([]string{
		"// @kernel a", "// @arg 0 y device f32[n] write", "// @threads n, 1, 1", "// @term y[i] = round(f32, \\", "//   f32(i)) -- done", "// @group _, 1, 1",
		"// @kernel b", "// @arg 0 y device f32[n] write", "// @threads n, 1, 1", "// @term y[i] = round(f32, 0)", "// @group _, 1, 1",
		"//", "// @kernel a", "// @arg 0 y device f32[n] write", "// @groups n, 1, 1", "// @term y[i] = round(f32, 1)", "// @group _, 1, 1",
	}, "\n"))
	ds = read.Decls
	require.NoError(t, err)
	var got []string
	for _, d := range ds {
		got = append(got, fmt.Sprintf("%s:%d %s", d.Name, d.Line, d.Results[0].Body))
	}
	assert.Equal(t, []string{"a:1 round(f32, f32(i))", "b:7 round(f32, 0)", "a:13 round(f32, 1)"}, got)
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		// Layout.
		{"// @arg 0 x device f32[1] read\n", "f.metal:1: @arg stands before @kernel"},
		{"\n// @kernel a \\", "f.metal:2: the declaration ends in a continuation"},
		{"// @kernel a\n// @let x = \\\nint y;", "f.metal:3: the line above is continued, this one is no comment"},
		{with("16: requires n > 0"), "f.metal:16: kernel rowfloat32: there is no @requires line (docs/kernels.md lists those that there are)"},
		// Names and templates.
		{with("3: kernel"), `f.metal:3: kernel : "" is no name of a function`},
		{with("3: kernel a b"), `f.metal:3: kernel a b: "a b" is no name of a function`},
		{with("3: kernel row{T:float32=f32"), `f.metal:3: template parameter "{T:float32=f32" is not {name:value|value}`},
		{with("3: kernel row{T}"), `f.metal:3: template parameter "{T" is not {name:value|value}`},
		{with("3: kernel row}"), `f.metal:3: kernel row}: "row}" is no name of a function`},
		{with("3: kernel row{T:f32}{g:1}{g:2}"), `f.metal:3: kernel rowf3212: "g" is defined twice`},
		// Function constants.
		{with("4: constant 20 fast"), `f.metal:4: kernel rowfloat32: @constant: want INDEX NAME TYPE, found "20 fast"`},
		{with("4: constant x fast bool"), `f.metal:4: kernel rowfloat32: @constant: "x" is no index`},
		{with("4: constant 70000 fast bool"), `f.metal:4: kernel rowfloat32: @constant: "70000" is no index`},
		{with("4: constant 2 f-t bool"), `f.metal:4: kernel rowfloat32: @constant: "f-t" is no name`},
		{with("4: constant 20 fast int"), `f.metal:4: kernel rowfloat32: @constant: unknown element type "int" (want one of bool, u8…u64, i8…i64, f16, bf16, f32, u2…u6)`},
		{with("4: constant 20 n bool"), `f.metal:7: kernel rowfloat32: @arg: "n" is defined twice`},
		// Arguments.
		{with("5: arg 0 x device"), `f.metal:5: kernel rowfloat32: @arg: want SLOT NAME SPACE TYPE, found "0 x device"`},
		{with("5: arg 0 x device f32[n read"), `f.metal:5: kernel rowfloat32: @arg: [ without ]`},
		{with("5: arg 300 x device f32[n] read"), `f.metal:5: kernel rowfloat32: @arg: "300" is no slot`},
		{with("5: arg 0 2x device f32[n] read"), `f.metal:5: kernel rowfloat32: @arg: "2x" is no name`},
		{with("5: arg 0 x global f32[n] read"), `f.metal:5: kernel rowfloat32: @arg: "global" is no address space`},
		{with("5: arg 0 x device float[n] read"), `f.metal:5: kernel rowfloat32: @arg: unknown element type "float" (want one of bool, u8…u64, i8…i64, f16, bf16, f32, u2…u6)`},
		{with("5: arg 0 x device u32 as u9[n] read"), `f.metal:5: kernel rowfloat32: @arg: unknown element type "u9" (want one of bool, u8…u64, i8…i64, f16, bf16, f32, u2…u6)`},
		{with("5: arg 0 x device u32 as f32[n] read"), `f.metal:5: kernel rowfloat32: @arg: only codes of up to 8 bits stand behind "as"`},
		{with("5: arg 0 x device f32[n] reads"), `f.metal:5: kernel rowfloat32: @arg: "reads" is no access (read, write, update, atomic, unused)`},
		{with("5: arg 0 x device f32[n]"), `f.metal:5: kernel rowfloat32: @arg: "" is no access (read, write, update, atomic, unused)`},
		{with("5: arg 0 x device f32[n] unused"), `f.metal:5: kernel rowfloat32: @arg: x has no shape, or is unused and has one`},
		{with("5: arg 0 x device f32 read"), `f.metal:5: kernel rowfloat32: @arg: unknown element type "f32 read" (want one of bool, u8…u64, i8…i64, f16, bf16, f32, u2…u6)`},
		{with("5: arg 0 y device f32[n] read"), `f.metal:6: kernel rowfloat32: @arg: "y" is defined twice`},
		{with("5: arg 1 x device f32[n, n] read"), `f.metal:3: kernel rowfloat32: argument y stands behind x: list buffers in the order of their slots, then threadgroup memory`},
		{with("5: arg 0 x threadgroup f32[n]", "13:", "14:", "15: term y[r, i] = round({T}, 1)"), `f.metal:3: kernel rowfloat32: argument y stands behind x: list buffers in the order of their slots, then threadgroup memory`},
		{with("5: arg 0 x device f32[rows, q] read"), `f.metal:5: kernel rowfloat32: @arg: column 1 of "q": "q" is not defined`},
		{with("5: arg 0 x device f32[rows, n < 2] read"), `f.metal:5: kernel rowfloat32: @arg: "n < 2" is a condition, not an integer`},
		{with("5: arg 0 x device f32[rows, 2.0] read"), `f.metal:5: kernel rowfloat32: @arg: "2.0" is a float, not an integer`},
		{with("5: arg 0 x device f32[rows, ] read"), `f.metal:5: kernel rowfloat32: @arg: column 1 of "": the expression ends too early`},
		{with("5: arg 0 x device f32[rows, n : 1] read"), `f.metal:5: kernel rowfloat32: @arg: 2 dimensions but 1 strides`},
		{with("5: arg 0 x device f32[rows, n : n, m+] read"), `f.metal:5: kernel rowfloat32: @arg: column 3 of "m+": the expression ends too early`},
		{with("7: arg 2 n constant u32 write"), `f.metal:7: kernel rowfloat32: @arg: unknown element type "u32 write" (want one of bool, u8…u64, i8…i64, f16, bf16, f32, u2…u6)`},
		{with("7: arg 2 n constant u32[2] write"), `f.metal:7: kernel rowfloat32: @arg: unexpected "write" after a constant argument`},
		{with("7: arg 2 n constant u32[0]"), `f.metal:7: kernel rowfloat32: @arg: a constant array has a fixed length, not "0"`},
		{with("7: arg 2 n constant u32[pitch]"), `f.metal:7: kernel rowfloat32: @arg: a constant array has a fixed length, not "pitch"`},
		{with("7: arg 2 n constant u4"), `f.metal:7: kernel rowfloat32: @arg: a constant argument has a type of whole bytes`},
		{with("16: arg 0 t threadgroup f32[n] read"), `f.metal:16: kernel rowfloat32: @arg: threadgroup memory has a shape and no access`},
		{with("16: arg 0 t threadgroup f32"), `f.metal:16: kernel rowfloat32: @arg: threadgroup memory has a shape and no access`},
		// Grids.
		{with("9:", "16: let rows = 1"), "f.metal:3: kernel rowfloat32: has not exactly one of @groups and @threads: the grid in threadgroups, or in threads"},
		{with("16: threads rows, 1, 1"), "f.metal:3: kernel rowfloat32: has not exactly one of @groups and @threads: the grid in threadgroups, or in threads"},
		{with("9: groups rows, 1"), "f.metal:9: kernel rowfloat32: @groups: has 2 dimensions, not 3"},
		{with("16: groups rows, 1, 1"), "f.metal:16: kernel rowfloat32: a second @groups"},
		{with("16: group 1, 1, 1"), "f.metal:16: kernel rowfloat32: a second @group"},
		{with("9: groups rows, 1 +, 1"), `f.metal:9: kernel rowfloat32: @groups: column 4 of "1 +": the expression ends too early`},
		{with("9: groups rows, 1.5, 1"), `f.metal:9: kernel rowfloat32: @groups: "1.5" is a float, not an integer`},
		{with("9: groups x, 1, 1"), `f.metal:9: kernel rowfloat32: @groups: "x" is defined twice`},
		{with("10: group 32*k, 1, 1"), `f.metal:10: kernel rowfloat32: @group: column 4 of "32*k": "k" is not defined`},
		// @let, @require, @inplace.
		{with("11: let m"), `f.metal:11: kernel rowfloat32: @let: want NAME = EXPRESSION, found "m"`},
		{with("11: let 3 = n"), `f.metal:11: kernel rowfloat32: @let: want NAME = EXPRESSION, found "3 = n"`},
		{with("11: let m = n == 1"), `f.metal:11: kernel rowfloat32: @let: m is a condition, not an integer`},
		{with("11: let m = n *"), `f.metal:11: kernel rowfloat32: @let: column 5 of " n *": the expression ends too early`},
		{with("16: let n = 3"), `f.metal:16: kernel rowfloat32: @let: "n" is defined twice`},
		{with("12: require n"), `f.metal:12: kernel rowfloat32: @require: "n" is a number, not a condition`},
		{with("12: require n = 1"), `f.metal:12: kernel rowfloat32: @require: column 3 of "n = 1": unexpected "="`},
		{with("13: inplace y"), `f.metal:13: kernel rowfloat32: @inplace: want OUT IN, found "y"`},
		{with("13: inplace x y"), `f.metal:13: kernel rowfloat32: @inplace: "x y" is not a written and a read argument`},
		{with("13: inplace y n"), `f.metal:13: kernel rowfloat32: @inplace: "y n" is not a written and a read argument`},
		// Terms.
		{with("14: where z = x[0, 0]"), `f.metal:14: kernel rowfloat32: @where: want NAME[i, j] = TERM, found "z = x[0, 0]"`},
		{with("14: where z[r, r] = x[r, r]"), `f.metal:14: kernel rowfloat32: @where: "r" is no index of its own`},
		{with("14: where z[2] = x[2, 2]"), `f.metal:14: kernel rowfloat32: @where: "2" is no index of its own`},
		{with("14: where z[n] = x[n, n]"), `f.metal:14: kernel rowfloat32: @where: index "n" hides a constant of this name`},
		{with("14: where z[a, b, c, d, e] = x[a, b]"), `f.metal:14: kernel rowfloat32: @where: z has 5 indices, at most 4 are possible`},
		{with("14: where x[r, i] = 1.0"), `f.metal:14: kernel rowfloat32: @where: "x" is defined twice`},
		{with("16: where z[r] = 1.0"), `f.metal:16: kernel rowfloat32: @where: "z" is defined twice`},
		{with("14: where z[r, i] = z[r, i]"), `f.metal:14: kernel rowfloat32: @where: column 2 of " z[r, i]": "z" is no readable argument and no abbreviation`},
		{with("14: where z[r, i] = y[r, i]"), `f.metal:14: kernel rowfloat32: @where: column 2 of " y[r, i]": "y" is no readable argument and no abbreviation`},
		{with("15: term x[r, i] = x[r, i]"), `f.metal:15: kernel rowfloat32: @term: "x" is no written argument`},
		{with("15: term y[r] = round({T}, 1)"), `f.metal:15: kernel rowfloat32: @term: y has 2 dimensions, not 1`},
		{with("15: term y[r, i] = x[r, i] + x[r, i]"), `f.metal:15: kernel rowfloat32: @term: what is stored to y needs round(f32, …) around it, unless it is a load of an element of the same type`},
		{with("15: term y[r, i] = round(bf16, x[r, i])"), `f.metal:15: kernel rowfloat32: @term: what is stored to y needs round(f32, …) around it, unless it is a load of an element of the same type`},
		{with("15: term y[r, i] = u32(i)"), `f.metal:15: kernel rowfloat32: @term: what is stored to y needs round(f32, …) around it, unless it is a load of an element of the same type`},
		{with("15: term y[r, i] = round({T}, q)"), `f.metal:15: kernel rowfloat32: @term: column 13 of " round(f32, q)": "q" is not defined`},
		{with("15:"), "f.metal:3: kernel rowfloat32: writes y but has no @term for it: say what each element becomes"},
		{with("10:"), "f.metal:3: kernel rowfloat32: has no @group line: say how many threads a threadgroup has, or @group _, _, _ if any number will do"},
		{with("14: where z[r, i] = sum(k < n, x[r, k])"), "f.metal:3: kernel rowfloat32: sum(k < n, x[r, k]) has no class: name the order in which the kernel adds, as in sum[rowfloat32](…) (docs/terms.md, \"Reductions\")"},
		{with("16: term y[r, i] = x[r, i]"), "f.metal:3: kernel rowfloat32: has two @term lines for y"},
	} {
		read, err := decl.Parse("f.metal", c.src)
		ds := read.Decls
		assert.EqualError(t, err, c.want, "%s", c.src)
		assert.Nil(t, ds)
	}
}

// FuzzParse: the parser does not crash, whatever the file, and every error
// says where.
func FuzzParse(f *testing.F) {
	f.Add(source(row()...))
	files, err := filepath.Glob("../*.metal")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, src string) {
		read, err := decl.Parse("f.metal", src)
		ds := read.Decls
		if err != nil {
			require.Regexp(t, `^f\.metal:\d+: `, err.Error())
			return
		}
		for _, d := range ds {
			d.Kernel("k")
		}
	})
}

func parse(t testing.TB, lines ...string) *decl.Decl {
	t.Helper()
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "group ") }) {
		lines = append(lines, "group _, _, _")
	}
	read, err := decl.Parse("f.metal", source(lines...))
	ds := read.Decls
	require.NoError(t, err)
	require.Len(t, ds, 1)
	return ds[0]
}
