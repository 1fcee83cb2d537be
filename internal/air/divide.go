package air

import (
	"fmt"
	"regexp"
	"strings"
)

// division is an integer division; the divisor stands behind the last comma.
var division = regexp.MustCompile(`^  (%\S+) = ([su])(?:div|rem) (?:exact )?(i[0-9]+|<[0-9]+ x i[0-9]+>) (.*)$`)

// divide makes integer divisions that have no result divide by 1. In Metal such a division has
// some value; in LLVM anything may happen, and a CPU stops the program.
func (f *function) divide() {
	out := make([]string, 0, len(f.lines))
	for _, l := range f.lines {
		m := division.FindStringSubmatch(l)
		if m == nil {
			out = append(out, l)
			continue
		}
		rest, dbg := m[4], ""
		if i := strings.Index(rest, ", !dbg "); i >= 0 {
			rest, dbg = rest[:i], rest[i:]
		}
		operands := splitTop(rest)
		if len(operands) != 2 {
			out = append(out, l)
			continue
		}
		name, typ := "%mlxc."+strings.Trim(m[1][1:], `"`), m[3]
		a, b := strings.TrimSpace(operands[0]), strings.TrimSpace(operands[1])
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
		if m[2] == "s" {
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
		head := l[:strings.Index(l, m[4])]
		out = append(out, strings.Replace(head, " exact ", " ", 1)+a+", "+by+dbg)
	}
	f.lines = out
}
