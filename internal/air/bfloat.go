package air

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A bfloat is rounded by arithmetic of integers: for fptrunc to bfloat, and for arithmetic of
// bfloats, which ends in one, LLVM calls a function on most machines (runtime.go), which is
// not inlined, and which no loop is vectorised around.
var (
	bfloatArithmetic = regexp.MustCompile(`^  (%\S+) = (fadd|fsub|fmul|fdiv|frem) ((?:[a-z]+ )*)(bfloat|<[0-9]+ x bfloat>) (.*)$`)
	bfloatRounding   = regexp.MustCompile(`^  (%\S+) = fptrunc (?:[a-z]+ )*(float|<[0-9]+ x float>) (.*) to (bfloat|<[0-9]+ x bfloat>)(.*)$`)
)

// bfloats rounds the bfloats of all functions by functions of the module's own.
func (m *module) bfloats() {
	round := map[string]bool{} // the types that are rounded to
	values := 0
	for _, f := range m.funcs {
		out := make([]string, 0, len(f.lines))
		for _, l := range f.lines {
			if !strings.Contains(l, "bfloat") {
				out = append(out, l)
				continue
			}
			if r := bfloatRounding.FindStringSubmatch(l); r != nil {
				round[r[4]] = true
				out = append(out, fmt.Sprintf("  %s = call %s @%s(%s %s)%s", r[1], r[4], rounder(r[4]), r[2], r[3], r[5]))
				continue
			}
			// Longer vectors clang refuses, or makes calls of.
			a := bfloatArithmetic.FindStringSubmatch(l)
			if a == nil {
				out = append(out, l)
				continue
			}
			// The operands, and behind them metadata.
			operands := splitTop(a[5])
			if len(operands) < 2 {
				out = append(out, l)
				continue
			}
			typ, behind := a[4], ""
			if len(operands) > 2 {
				behind = ", " + strings.Join(operands[2:], ", ")
			}
			wide := strings.Replace(typ, "bfloat", "float", 1)
			round[typ] = true
			v := fmt.Sprint("%mlxc.bf", values)
			values++
			out = append(out,
				fmt.Sprintf("  %s.a = fpext %s %s to %s%s", v, typ, operands[0], wide, behind),
				fmt.Sprintf("  %s.b = fpext %s %s to %s%s", v, typ, operands[1], wide, behind),
				fmt.Sprintf("  %s.c = %s %s%s %s.a, %s.b%s", v, a[2], a[3], wide, v, v, behind),
				fmt.Sprintf("  %s = call %s @%s(%s %s.c)%s", a[1], typ, rounder(typ), wide, v, behind))
		}
		f.lines = out
	}
	for _, typ := range slices.Sorted(maps.Keys(round)) {
		m.bodies = append(m.bodies, roundBfloat(typ))
	}
}

// rounder is the name of the function that rounds to a type.
func rounder(typ string) string {
	n, _ := elements(typ)
	if typ[0] != '<' {
		return "mlxc.bfloat"
	}
	return fmt.Sprint("mlxc.bfloat.v", n)
}

// roundBfloat is that function: to the nearest, of two to the even one; of a NaN the upper
// half, quiet.
func roundBfloat(typ string) string {
	var t text
	n, _ := elements(typ)
	of := func(elem string) string { return strings.Replace(typ, "bfloat", elem, 1) }
	all := func(value int) string { // that value in each element
		if typ[0] != '<' {
			return fmt.Sprint(value)
		}
		return "<" + strings.TrimSuffix(strings.Repeat(fmt.Sprintf("i32 %d, ", value), n), ", ") + ">"
	}
	i32 := of("i32")
	t.line("define internal %s @%s(%s %%x) alwaysinline nounwind {", typ, rounder(typ), of("float"))
	t.line("  %%i = bitcast %s %%x to %s", of("float"), i32)
	t.line("  %%upper = lshr %s %%i, %s", i32, all(16))
	t.line("  %%odd = and %s %%upper, %s", i32, all(1))
	t.line("  %%half = add %s %%odd, %s", i32, all(0x7fff))
	t.line("  %%rounded = add %s %%i, %s", i32, "%half")
	t.line("  %%quiet = or %s %%i, %s", i32, all(0x400000))
	t.line("  %%nan = fcmp uno %s %%x, %%x", of("float"))
	t.line("  %%chosen = select %s %%nan, %s %%quiet, %s %%rounded", of("i1"), i32, i32)
	t.line("  %%high = lshr %s %%chosen, %s", i32, all(16))
	t.line("  %%short = trunc %s %%high to %s", i32, of("i16"))
	t.line("  %%result = bitcast %s %%short to %s", of("i16"), typ)
	t.line("  ret %s %%result", typ)
	t.line("}")
	return t.String()
}
