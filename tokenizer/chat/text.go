package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// These are the operations of Python's str, and the filters that do the same.

func textFilter(name string, f func(*run, string) string) func(*run, value, args) value {
	return func(r *run, v value, a args) value {
		r.noArguments(name, a)
		return f(r, r.str(v))
	}
}

// mapped returns s with each character replaced. A character may become at most three
// times as long.
func (r *run) mapped(s string, f func(b *strings.Builder, i int, c rune)) string {
	r.alloc(sum(len(s), 4), 3)
	var b strings.Builder
	b.Grow(len(s))
	for i, c := range s {
		f(&b, i, c)
	}
	return b.String()
}

func upper(r *run, s string) string {
	return r.mapped(s, func(b *strings.Builder, _ int, c rune) {
		if more, ok := upperSpecial[c]; ok {
			b.WriteString(more)
		} else {
			b.WriteRune(unicode.ToUpper(c))
		}
	})
}

func title(b *strings.Builder, c rune) {
	if more, ok := titleSpecial[c]; ok {
		b.WriteString(more)
	} else {
		b.WriteRune(unicode.ToTitle(c))
	}
}

func lower(r *run, s string) string {
	return r.mapped(s, func(b *strings.Builder, i int, c rune) { lowerRune(r, b, s, i, c) })
}

func lowerRune(r *run, b *strings.Builder, s string, i int, c rune) {
	switch c {
	case 'İ':
		b.WriteString("i̇")
	case 'Σ':
		if finalSigma(r, s, i) {
			b.WriteRune('ς')
		} else {
			b.WriteRune('σ')
		}
	default:
		b.WriteRune(unicode.ToLower(c))
	}
}

// finalSigma reports whether the sigma at s[i] ends a word in the sense of Unicode's
// Final_Sigma.
func finalSigma(r *run, s string, i int) bool {
	before, after := s[:i], s[i+len("Σ"):]
	for before != "" {
		c, n := utf8.DecodeLastRuneInString(before)
		r.step(1)
		if before = before[:len(before)-n]; !ignorable(c) {
			if !cased(c) {
				return false
			}
			for _, c := range after {
				r.step(1)
				if !ignorable(c) {
					return !cased(c)
				}
			}
			return true
		}
	}
	return false
}

func cased(c rune) bool { return unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c) }

func ignorable(c rune) bool {
	return unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || strings.ContainsRune("'.:·’‘․", c)
}

func capitalize(r *run, s string) string {
	return r.mapped(s, func(b *strings.Builder, i int, c rune) {
		if i == 0 {
			title(b, c)
		} else {
			lowerRune(r, b, s, i, c)
		}
	})
}

// titleFilter is Jinja's filter title, which differs from str.title: a word begins only
// after white space, a hyphen or an opening bracket.
func titleFilter(r *run, s string) string {
	var out strings.Builder
	for s != "" {
		n := strings.IndexFunc(s, wordSeparator)
		if n < 0 {
			n = len(s)
		}
		if n > 0 {
			_, first := utf8.DecodeRuneInString(s)
			out.WriteString(upper(r, s[:first]))
			out.WriteString(lower(r, s[first:n]))
		}
		s = s[n:]
		n = strings.IndexFunc(s, func(c rune) bool { return !wordSeparator(c) })
		if n < 0 {
			n = len(s)
		}
		r.alloc(1, n)
		out.WriteString(s[:n])
		s = s[n:]
	}
	return out.String()
}

func wordSeparator(c rune) bool { return isSpace(c) || strings.ContainsRune("-({[<", c) }

// titleMethod is str.title: a word begins after any character without case.
func titleMethod(r *run, s string) string {
	inside := false
	return r.mapped(s, func(b *strings.Builder, i int, c rune) {
		if inside {
			lowerRune(r, b, s, i, c)
		} else {
			title(b, c)
		}
		inside = cased(c)
	})
}

func swapCase(r *run, s string) string {
	return r.mapped(s, func(b *strings.Builder, i int, c rune) {
		switch {
		case unicode.IsUpper(c):
			lowerRune(r, b, s, i, c)
		case unicode.IsLower(c):
			if more, ok := upperSpecial[c]; ok {
				b.WriteString(more)
			} else {
				b.WriteRune(unicode.ToUpper(c))
			}
		default:
			b.WriteRune(c)
		}
	})
}

func isLower(r *run, s string) bool {
	r.step(len(s) / 64)
	some := false
	for _, c := range s {
		if unicode.IsUpper(c) || unicode.IsTitle(c) {
			return false
		}
		some = some || unicode.IsLower(c)
	}
	return some
}

func isUpper(r *run, s string) bool {
	r.step(len(s) / 64)
	some := false
	for _, c := range s {
		if unicode.IsLower(c) || unicode.IsTitle(c) {
			return false
		}
		some = some || unicode.IsUpper(c)
	}
	return some
}

// strip is Python's strip, for white space or for the given characters.
func (r *run) strip(s string, chars value, left, right bool) string {
	r.step(len(s) / 8)
	drop := isSpace
	if present(chars) {
		set := map[rune]bool{}
		c := r.text("strip", chars, "")
		r.alloc(sum(len(c), 1), itemBytes)
		for _, x := range c {
			set[x] = true
		}
		drop = func(c rune) bool { return set[c] }
	}
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return s
}

func trimFilter(r *run, v value, a args) value {
	s := r.strip(r.str(v), r.bind("trim", a, 0, 0, "chars")[0], true, true)
	if _, safe := v.(markup); safe {
		return markup(s)
	}
	return s
}

// pad puts n copies of fill around s, up to width characters, as str.center, ljust and
// rjust do.
func (r *run) pad(s string, width int, fill string, left, right bool) string {
	n := width - r.runes(s)
	if n <= 0 {
		return s
	}
	r.alloc(n, len(fill))
	r.alloc(1, len(s))
	before := 0
	switch {
	case left && right:
		before = n/2 + n&width&1
	case left:
		before = n
	}
	return strings.Repeat(fill, before) + s + strings.Repeat(fill, n-before)
}

func centerFilter(r *run, v value, a args) value {
	width := r.number("center", r.bind("center", a, 0, 0, "width")[0], 80)
	return r.pad(r.str(v), width, " ", true, true)
}

// replace is str.replace.
func (r *run) replace(s, old, new string, count int) string {
	r.step(len(s) / 16)
	n := strings.Count(s, old) // for an empty old: before each character and at the end
	if count >= 0 {
		n = min(n, count)
	}
	r.alloc(1, len(s))
	r.alloc(n, len(new))
	return strings.Replace(s, old, new, n)
}

func replaceFilter(r *run, v value, a args) value {
	o := r.bind("replace", a, 2, 0, "old", "new", "count")
	count := -1
	if present(o[2]) {
		count = r.number("replace", o[2], -1)
	}
	return r.replace(r.str(v), r.str(o[0]), r.str(o[1]), count)
}

// lineEnd returns where the first end of a line in s is, as str.splitlines sees it, and
// how many bytes it has.
func lineEnd(s string) (at, n int) {
	at = strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
	if at < 0 {
		return len(s), 0
	}
	if strings.HasPrefix(s[at:], "\r\n") {
		return at, 2
	}
	_, n = utf8.DecodeRuneInString(s[at:])
	return at, n
}

// lines is str.splitlines: an end of line at the end of s does not begin another line.
func (r *run) lines(s string, keep bool) []value {
	r.step(len(s) / 16)
	var out []value
	for s != "" {
		r.alloc(1, 2*itemBytes)
		at, n := lineEnd(s)
		if keep {
			out = append(out, s[:at+n])
		} else {
			out = append(out, s[:at])
		}
		s = s[at+n:]
	}
	return out
}

func indentFilter(r *run, v value, a args) value {
	o := r.bind("indent", a, 0, 0, "width", "first", "blank")
	r.refuse(v)
	s, ok := v.(string)
	if !ok {
		r.fail("indent wants a string, not a %q", typeName(v))
	}
	indention, ok := stringOf(o[0])
	if !ok {
		n := max(r.number("indent", o[0], 4), 0)
		r.alloc(1, n)
		indention = strings.Repeat(" ", n)
	}
	lines := r.lines(s+"\n", false)
	r.alloc(1, len(s))
	r.alloc(len(lines)+1, len(indention)+1)
	var b strings.Builder
	for i, l := range lines {
		line := l.(string)
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && flag(o[1]) || i > 0 && (line != "" || flag(o[2])) {
			b.WriteString(indention)
		}
		b.WriteString(line)
	}
	return b.String()
}

func truncateFilter(r *run, v value, a args) value {
	o := r.bind("truncate", a, 0, 0, "length", "killwords", "end", "leeway")
	length := r.number("truncate", o[0], 255)
	end := r.text("truncate", o[2], "...")
	leeway := 5
	if present(o[3]) {
		leeway = r.number("truncate", o[3], 5)
	}
	keep := length - r.runes(end)
	if keep < 0 || leeway < 0 {
		r.fail("expected length >= %d, got %d, and leeway >= 0, got %d", r.runes(end), length, leeway)
	}
	n, ok := r.length(v)
	if ok && n <= length+leeway {
		return v
	}
	s, ok := v.(string)
	if !ok {
		r.fail("truncate wants a string, not a %q", typeName(v))
	}
	s = s[:r.offset(s, keep)]
	if !flag(o[1]) {
		if at := strings.LastIndexByte(s, ' '); at >= 0 {
			s = s[:at]
		}
	}
	return r.join2(s, end)
}

func wordCount(r *run, v value, a args) value {
	r.noArguments("wordcount", a)
	s := r.str(v)
	r.step(len(s) / 16)
	n, inside := int64(0), false
	for _, c := range s {
		word := c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c)
		if word && !inside {
			n++
		}
		inside = word
	}
	return n
}

func formatFilter(r *run, v value, a args) value {
	if len(a.keywords) > 0 {
		if len(a.positional) > 0 {
			r.fail("can't handle positional and keyword arguments at the same time")
		}
		d := r.newDict()
		for _, k := range a.keywords {
			r.put(d, k.name, k.value)
		}
		return r.percent(r.str(v), d)
	}
	return r.percent(r.str(v), &list{items: a.positional, tuple: true})
}
