package air

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// A bfloat is rounded by arithmetic of integers: for fptrunc to bfloat, and for arithmetic of
// bfloats, which ends in one, LLVM calls a function on most machines (runtime.go of package host), which is
// not inlined, and which no loop is vectorised around.

// bfloats rounds the bfloats of all functions by functions of the module's own.
func (m *Module) bfloats() {
	round := map[string]bool{} // the types that are rounded to
	values := 0
	for _, f := range m.Funcs {
		out := make([]string, 0, len(f.Lines))
		for _, l := range f.Lines {
			if !strings.Contains(l, "bfloat") {
				out = append(out, l)
				continue
			}
			in := llvm.Read(l)
			if in == nil || len(in.Operands) == 0 || !isBfloat(in.Type) {
				out = append(out, l)
				continue
			}
			typ, from, dbg := in.Type, in.Operands[0], in.Place
			switch in.Op {
			case "fptrunc":
				round[typ] = true
				out = append(out, fmt.Sprintf("  %s = call %s @%s(%s %s)%s", in.Result, typ, rounder(typ), from.Type, from.Value, dbg))
			case "fadd", "fsub", "fmul", "fdiv", "frem":
				wide := strings.Replace(typ, "bfloat", "float", 1)
				round[typ] = true
				v := fmt.Sprint("%mlxc.bf", values)
				values++
				out = append(out,
					fmt.Sprintf("  %s.a = fpext %s %s to %s%s", v, typ, from.Value, wide, dbg),
					fmt.Sprintf("  %s.b = fpext %s %s to %s%s", v, typ, in.Operands[1].Value, wide, dbg),
					fmt.Sprintf("  %s.c = %s %s%s %s.a, %s.b%s", v, in.Op, in.Flags, wide, v, v, dbg),
					fmt.Sprintf("  %s = call %s @%s(%s %s.c)%s", in.Result, typ, rounder(typ), wide, v, dbg))
			default:
				out = append(out, l)
			}
		}
		f.Lines = out
	}
	for _, typ := range slices.Sorted(maps.Keys(round)) {
		m.Bodies = append(m.Bodies, roundBfloat(typ))
	}
}

// isBfloat reports whether a type is that of bfloats. Vectors too long for that clang refuses, or makes calls of.
func isBfloat(typ string) bool {
	_, elem := llvm.Elements(typ)
	return elem == "bfloat"
}

// rounder is the name of the function that rounds to a type.
func rounder(typ string) string {
	n, _ := llvm.Elements(typ)
	if typ[0] != '<' {
		return "mlxc.bfloat"
	}
	return fmt.Sprint("mlxc.bfloat.v", n)
}

// roundBfloat is that function: to the nearest, of two to the even one; of a NaN the upper
// half, quiet.
func roundBfloat(typ string) string {
	var t Text
	n, _ := llvm.Elements(typ)
	of := func(elem string) string { return strings.Replace(typ, "bfloat", elem, 1) }
	all := func(value int) string { // that value in each element
		if typ[0] != '<' {
			return fmt.Sprint(value)
		}
		return "<" + strings.TrimSuffix(strings.Repeat(fmt.Sprintf("i32 %d, ", value), n), ", ") + ">"
	}
	i32 := of("i32")
	t.Line("define internal %s @%s(%s %%x) alwaysinline nounwind {", typ, rounder(typ), of("float"))
	t.Line("  %%i = bitcast %s %%x to %s", of("float"), i32)
	t.Line("  %%upper = lshr %s %%i, %s", i32, all(16))
	t.Line("  %%odd = and %s %%upper, %s", i32, all(1))
	t.Line("  %%half = add %s %%odd, %s", i32, all(0x7fff))
	t.Line("  %%rounded = add %s %%i, %s", i32, "%half")
	t.Line("  %%quiet = or %s %%i, %s", i32, all(0x400000))
	t.Line("  %%nan = fcmp uno %s %%x, %%x", of("float"))
	t.Line("  %%chosen = select %s %%nan, %s %%quiet, %s %%rounded", of("i1"), i32, i32)
	t.Line("  %%high = lshr %s %%chosen, %s", i32, all(16))
	t.Line("  %%short = trunc %s %%high to %s", i32, of("i16"))
	t.Line("  %%result = bitcast %s %%short to %s", of("i16"), typ)
	t.Line("  ret %s %%result", typ)
	t.Line("}")
	return t.String()
}
