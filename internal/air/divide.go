package air

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// divide makes integer divisions that have no result divide by 1. In Metal such a division has
// some value; in LLVM anything may happen, and a CPU stops the program.
func divide(f *llvm.Function) {
	out := make([]string, 0, len(f.Lines))
	for _, l := range f.Lines {
		if !strings.Contains(l, "div ") && !strings.Contains(l, "rem ") {
			out = append(out, l)
			continue
		}
		in := llvm.Read(l)
		if in == nil || !slices.Contains([]string{"udiv", "sdiv", "urem", "srem"}, in.Op) || len(in.Operands) != 2 {
			out = append(out, l)
			continue
		}
		name, typ, dbg := "%mlxc."+strings.Trim(in.Result[1:], `"`), in.Type, in.Place
		a, b := in.Operands[0].Value, in.Operands[1].Value
		if b[0] != '%' {
			if n := strings.TrimLeft(b, "-"); typ[0] == 'i' && n[0] >= '1' && n[0] <= '9' && b != "-1" {
				out = append(out, l) // divides by a number
				continue
			}
		}
		bits := strings.TrimSuffix(typ[strings.LastIndexByte(typ, 'i')+1:], ">")
		emit := func(suffix, format string, args ...any) string {
			out = append(out, fmt.Sprintf("  %s.%s = %s%s", name, suffix, fmt.Sprintf(format, args...), dbg))
			return name + "." + suffix
		}
		all := func(v string) string { // as the type writes it
			if typ[0] == 'i' {
				return v
			}
			return fmt.Sprintf("splat (i%s %s)", bits, v)
		}
		flag := "i1"
		if typ[0] == '<' {
			flag = typ[:strings.IndexByte(typ, 'i')] + "i1>"
		}
		none := emit("zero", "icmp eq %s %s, %s", typ, b, all("0"))
		if in.Op[0] == 's' {
			width := 0
			_, _ = fmt.Sscan(bits, &width)
			if width < 1 || width > 64 {
				width = 64
			}
			minus := emit("minus", "icmp eq %s %s, %s", typ, b, all("-1"))
			least := emit("least", "icmp eq %s %s, %s", typ, a, all(fmt.Sprint(int64(-1)<<(width-1))))
			over := emit("over", "and %s %s, %s", flag, minus, least)
			none = emit("none", "or %s %s, %s", flag, none, over)
		}
		by := emit("by", "select %s %s, %s %s, %s %s", flag, none, typ, all("1"), typ, b)
		out = append(out, strings.Replace(in.With(llvm.Change{At: in.Operands[1].ValueAt, End: in.Operands[1].End(), Text: by}), " exact ", " ", 1))
	}
	f.Lines = out
}
