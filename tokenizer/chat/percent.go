package chat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// percent is Python's s % v for the conversions s, r, d, i, u, f, F, e, E, g, G,
// x, X, o, c and %.
func (r *run) percent(s string, v value) value {
	var p printer
	p.run = r
	items := []value{v}
	if l, ok := v.(*list); ok && l.tuple {
		items = l.items
	}
	used, byName := 0, false
	for s != "" {
		at := strings.IndexByte(s, '%')
		if at < 0 {
			p.write(s)
			break
		}
		p.write(s[:at])
		s = s[at+1:]
		var arg value
		if strings.HasPrefix(s, "(") {
			end := strings.IndexByte(s, ')')
			d, ok := v.(*dict)
			if end < 0 || !ok {
				r.fail("format requires a mapping")
			}
			if arg, ok = r.get(d, s[1:end]); !ok {
				r.fail("the format names %q, which the mapping does not have", s[1:end])
			}
			s, byName = s[end+1:], true
		}
		flags := s[:len(s)-len(strings.TrimLeft(s, "-+ 0#"))]
		s = s[len(flags):]
		width, precision := 0, -1
		width, s = r.formatNumber(s)
		if strings.HasPrefix(s, ".") {
			precision, s = r.formatNumber(s[1:])
		}
		s = strings.TrimLeft(s, "hlL")
		if s == "" {
			r.fail("incomplete format")
		}
		verb, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		if verb == '%' {
			p.write("%")
			continue
		}
		if arg == nil {
			if used >= len(items) {
				r.fail("not enough arguments for format string")
			}
			arg = items[used]
			used++
		}
		p.conversion(verb, flags, width, precision, arg)
	}
	if used < len(items) && !byName && !subscripted(v) {
		r.fail("not all arguments converted during string formatting")
	}
	return p.String()
}

// subscripted reports whether Python takes v for a mapping here, of which not all items
// need be used.
func subscripted(v value) bool {
	switch v := v.(type) {
	case *list:
		return !v.tuple
	case *dict, *numbers, *undefined:
		return true
	}
	return false
}

func (r *run) formatNumber(s string) (int, string) {
	n := digits(s, decimal)
	if strings.HasPrefix(s, "*") {
		r.fail("a width of * in a format is not supported")
	}
	if n == 0 {
		return 0, s
	}
	v, err := strconv.Atoi(s[:n])
	if err != nil || v > maxOutput {
		r.exceeded(fmt.Sprintf("a format asks for a width of %.20s", s[:n]))
	}
	return v, s[n:]
}

func (p *printer) conversion(verb rune, flags string, width, precision int, v value) {
	has := func(flag string) bool { return strings.Contains(flags, flag) }
	sign, text := "", ""
	numeric := true
	switch verb {
	case 's', 'r', 'c':
		numeric = false
		switch verb {
		case 's':
			text = p.run.str(v)
		case 'r':
			text = p.run.repr(v)
		default:
			if n, ok := whole(v); ok && n >= 0 && n <= utf8.MaxRune {
				text = string(rune(n))
			} else if s, ok := stringOf(v); ok && p.runes(s) == 1 {
				text = s
			} else {
				p.fail("%%c requires int or char")
			}
		}
		if precision >= 0 && precision < p.runes(text) {
			text = text[:p.offset(text, precision)]
		}
	case 'd', 'i', 'u', 'x', 'X', 'o':
		p.refuse(v)
		n, ok := whole(v)
		if f, isFloat := v.(float64); isFloat && verb != 'x' && verb != 'X' && verb != 'o' && math.Abs(f) < 1<<63 {
			n, ok = int64(f), true
		}
		if !ok {
			p.fail("%%%c format: a number is required, not %s", verb, typeName(v))
		}
		if n < 0 {
			sign = "-"
		}
		base, prefix := 10, ""
		switch verb {
		case 'x', 'X':
			base, prefix = 16, "0x"
		case 'o':
			base, prefix = 8, "0o"
		}
		text = strconv.FormatUint(magnitude(n), base)
		if precision > len(text) {
			p.alloc(1, precision)
			text = strings.Repeat("0", precision-len(text)) + text
		}
		if has("#") {
			sign += prefix
		}
		if verb == 'X' {
			sign, text = strings.ToUpper(sign), strings.ToUpper(text)
		}
	default:
		if !strings.ContainsRune("fFeEgG", verb) {
			p.fail("unsupported format character %q", verb)
		}
		p.refuse(v)
		_, f, k := numberOf(v)
		if k == 0 {
			p.fail("must be real number, not %s", typeName(v))
		}
		if has("#") {
			p.fail("the flag # of a format is not supported for floats")
		}
		if math.Signbit(f) && !math.IsNaN(f) {
			sign = "-"
		}
		text = p.float(math.Abs(f), verb, precision)
	}
	if numeric && sign != "-" && !strings.HasPrefix(sign, "-") {
		if has("+") {
			sign = "+" + sign
		} else if has(" ") {
			sign = " " + sign
		}
	}
	pad := width - len(sign) - p.runes(text)
	p.alloc(1, max(pad, 0))
	switch {
	case pad <= 0:
		p.write(sign + text)
	case has("-"):
		p.write(sign + text + strings.Repeat(" ", pad))
	case has("0") && numeric:
		p.write(sign + strings.Repeat("0", pad) + text)
	default:
		p.write(strings.Repeat(" ", pad) + sign + text)
	}
}

// float formats as C's printf does.
func (p *printer) float(f float64, verb rune, precision int) string {
	if precision < 0 {
		precision = 6
	}
	if precision > 1000 {
		p.fail("a format asks for %d digits, at most 1000 are supported", precision)
	}
	lower := byte(verb) | 0x20
	var text string
	switch {
	case math.IsInf(f, 0):
		text = "inf"
	case math.IsNaN(f):
		text = "nan"
	case lower == 'g':
		text = gFormat(f, max(precision, 1))
	default:
		text = strconv.FormatFloat(f, lower, precision, 64)
	}
	if verb >= 'A' && verb <= 'Z' {
		return strings.ToUpper(text)
	}
	return text
}

// gFormat is C's %g. Go's has another limit for the exponent.
func gFormat(f float64, precision int) string {
	s := strconv.FormatFloat(f, 'e', precision-1, 64)
	at := strings.IndexByte(s, 'e')
	exponent, _ := strconv.Atoi(s[at+1:])
	trim := func(s string) string {
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if exponent < -4 || exponent >= precision {
		return trim(s[:at]) + s[at:]
	}
	return trim(strconv.FormatFloat(f, 'f', precision-1-exponent, 64))
}
