package chat

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var stringMethods, dictMethods, listMethods map[string]method

// unsupported lists methods that Python has and this package lacks, as "type.name".
// Using one is an error; any other missing attribute is undefined.
var unsupported = map[string]bool{}

func init() { // assigned here, because some methods call what looks methods up, and Go forbids such cycles between variables
	for kind, names := range map[string]string{
		"str":   "encode expandtabs format_map isidentifier isprintable maketrans translate",
		"int":   "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes",
		"bool":  "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes",
		"float": "as_integer_ratio conjugate fromhex hex imag is_integer real",
		"dict":  "copy fromkeys",
		"list":  "copy",
		"range": "count index start step stop",
	} {
		for _, n := range strings.Fields(names) {
			unsupported[kind+"."+n] = true
		}
	}
	stringMethods = map[string]method{
		"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"split": split(false), "rsplit": split(true), "splitlines": splitLines,
		"partition": partition(strings.Index), "rpartition": partition(strings.LastIndex),
		"replace": replaceMethod, "join": joinMethod, "format": formatMethod,
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": remove(strings.TrimPrefix), "removesuffix": remove(strings.TrimSuffix),
		"find": find(strings.Index, false), "rfind": find(strings.LastIndex, false),
		"index": find(strings.Index, true), "rindex": find(strings.LastIndex, true), "count": countMethod,
		"ljust": justify(false, true), "rjust": justify(true, false), "center": justify(true, true), "zfill": zfill,
		"isdigit":   every(func(c rune) bool { return unicode.IsDigit(c) || superscript(c) }),
		"isdecimal": every(unicode.IsDigit), "isnumeric": every(unicode.IsNumber),
		"isalpha": every(unicode.IsLetter), "isspace": every(isSpace),
		"isalnum": every(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isascii": func(r *run, self value, a args) value {
			r.noArguments("isascii", a)
			s, _ := stringOf(self)
			r.step(len(s) / 64)
			return isASCII(s)
		},
	}
	for name, f := range map[string]func(*run, string) string{
		"lower": lower, "upper": upper, "capitalize": capitalize, "title": titleMethod, "swapcase": swapCase,
		"casefold": func(r *run, s string) string {
			if !isASCII(s) {
				r.fail("casefold of text that is not ASCII is not supported")
			}
			return lower(r, s)
		},
	} {
		stringMethods[name] = func(r *run, self value, a args) value {
			r.noArguments(name, a)
			s, _ := stringOf(self)
			return f(r, s)
		}
	}
	for name, f := range map[string]func(*run, string) bool{"islower": isLower, "isupper": isUpper, "istitle": isTitle} {
		stringMethods[name] = func(r *run, self value, a args) value {
			r.noArguments(name, a)
			s, _ := stringOf(self)
			return f(r, s)
		}
	}
	dictMethods = map[string]method{
		"get": func(r *run, self value, a args) value {
			o := r.bind("get", a, 1, 2, "key", "default")
			if v, ok := r.get(self.(*dict), o[0]); ok {
				return v
			}
			if o[1] == nil {
				return none{}
			}
			return o[1]
		},
		"keys":   viewMethod("dict_keys", func(_ *run, d *dict) []value { return d.keys }),
		"values": viewMethod("dict_values", func(_ *run, d *dict) []value { return d.values }),
		"items":  viewMethod("dict_items", (*run).pairs),
	}
	listMethods = map[string]method{
		"count": func(r *run, self value, a args) value {
			x, n := r.bind("count", a, 1, 1, "value")[0], int64(0)
			for _, y := range self.(*list).items {
				if r.equal(x, y) {
					n++
				}
			}
			return n
		},
		"index": func(r *run, self value, a args) value {
			o := r.bind("index", a, 1, 3, "value", "start", "stop")
			items := self.(*list).items
			from, to := r.window(o[1], o[2], len(items))
			for i := from; i < to; i++ {
				if r.equal(o[0], items[i]) {
					return int64(i)
				}
			}
			r.fail("%s is not in list", r.repr(o[0]))
			return nil
		},
	}
}

func viewMethod(name string, f func(*run, *dict) []value) method {
	return func(r *run, self value, a args) value {
		r.noArguments(name, a)
		r.alloc(1, valueBytes)
		return &view{name, list{items: f(r, self.(*dict))}}
	}
}

func superscript(c rune) bool {
	return c == '²' || c == '³' || c == '¹' || c == '⁰' || c >= '⁴' && c <= '⁹' || c >= '₀' && c <= '₉'
}

func strip(left, right bool) method {
	return func(r *run, self value, a args) value {
		s, _ := stringOf(self)
		s = r.strip(s, r.bind("strip", a, 0, 1, "chars")[0], left, right)
		if _, safe := self.(markup); safe {
			return markup(s)
		}
		return s
	}
}

func split(fromRight bool) method {
	return func(r *run, self value, a args) value {
		s, _ := stringOf(self)
		o := r.bind("split", a, 0, 0, "sep", "maxsplit")
		most := r.number("split", o[1], -1)
		if most < 0 {
			most = len(s) + 1
		}
		r.step(len(s) / 16)
		cut, separator := (*cutter).field, ""
		if present(o[0]) {
			if separator = r.text("split", o[0], ""); separator == "" {
				r.fail("empty separator")
			}
			cut = (*cutter).part
		}
		c := &cutter{s, separator, fromRight}
		var out []value
		for {
			part, ok := cut(c, most)
			if !ok {
				break
			}
			most--
			r.alloc(2, itemBytes)
			out = append(out, part)
		}
		if fromRight {
			for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
				out[i], out[j] = out[j], out[i]
			}
		}
		return &list{items: out}
	}
}

// cutter takes parts off a text, from one end.
type cutter struct {
	rest      string
	separator string
	fromRight bool
}

// part returns the next part, up to the separator. If most is 0, it returns everything
// that is left.
func (c *cutter) part(most int) (string, bool) {
	if most < 0 {
		return "", false
	}
	at := -1
	if c.fromRight && most > 0 {
		at = strings.LastIndex(c.rest, c.separator)
	} else if most > 0 {
		at = strings.Index(c.rest, c.separator)
	}
	whole := c.rest
	switch {
	case c.separator == "": // set when the last part was taken
		return "", false
	case at < 0:
		c.separator = ""
		return whole, true
	case c.fromRight:
		c.rest = whole[:at]
		return whole[at+len(c.separator):], true
	}
	c.rest = whole[at+len(c.separator):]
	return whole[:at], true
}

// field returns the next part between white space. Only the last part may contain white
// space.
func (c *cutter) field(most int) (string, bool) {
	trim, index := strings.TrimLeftFunc, strings.IndexFunc
	if c.fromRight {
		trim, index = strings.TrimRightFunc, lastIndexAfter
	}
	c.rest = trim(c.rest, isSpace)
	if c.rest == "" || most < 0 {
		return "", false
	}
	whole := c.rest
	at := -1
	if most > 0 {
		at = index(whole, isSpace)
	}
	switch {
	case at < 0:
		c.rest = ""
		if most == 0 { // the other end keeps its white space
			if c.fromRight {
				return strings.TrimRightFunc(whole, isSpace), true
			}
		}
		return whole, true
	case c.fromRight:
		c.rest = whole[:at]
		return whole[at:], true
	}
	c.rest = whole[at:]
	return whole[:at], true
}

// lastIndexAfter returns the index after the last character that satisfies f, or -1.
func lastIndexAfter(s string, f func(rune) bool) int {
	at := strings.LastIndexFunc(s, f)
	if at < 0 {
		return at
	}
	_, n := utf8.DecodeRuneInString(s[at:])
	return at + n
}

func splitLines(r *run, self value, a args) value {
	s, _ := stringOf(self)
	return &list{items: r.lines(s, flag(r.bind("splitlines", a, 0, 0, "keepends")[0]))}
}

func partition(index func(s, sep string) int) method {
	last := index("aa", "a") == 1
	return func(r *run, self value, a args) value {
		s, _ := stringOf(self)
		separator := r.text("partition", r.bind("partition", a, 1, 1, "sep")[0], "")
		if separator == "" {
			r.fail("empty separator")
		}
		r.step(len(s) / 64)
		r.alloc(4, itemBytes)
		items := []value{s, "", ""}
		if at := index(s, separator); at >= 0 {
			items = []value{s[:at], separator, s[at+len(separator):]}
		} else if last {
			items = []value{"", "", s}
		}
		return &list{items: items, tuple: true}
	}
}

func replaceMethod(r *run, self value, a args) value {
	s, _ := stringOf(self)
	o := r.bind("replace", a, 2, 3, "old", "new", "count")
	return r.replace(s, r.text("replace", o[0], ""), r.text("replace", o[1], ""), r.number("replace", o[2], -1))
}

func joinMethod(r *run, self value, a args) value {
	s, _ := stringOf(self)
	items := r.items(r.bind("join", a, 1, 1, "iterable")[0])
	r.alloc(len(items), itemBytes)
	parts, n := make([]string, 0, len(items)), itemBytes
	for i, x := range items {
		part, ok := stringOf(x)
		if !ok {
			r.fail("sequence item %d: expected str instance, %s found", i, typeName(x))
		}
		n = sum(n, len(part))
		parts = append(parts, part)
	}
	return r.joined(parts, s, n)
}

// window converts Python's start and stop to indices into n elements.
func (r *run) window(start, stop value, n int) (int, int) {
	for _, v := range []*value{&start, &stop} {
		if *v == nil {
			*v = none{}
		}
		if _, ok := whole(*v); !ok && *v != (none{}) {
			r.fail("slice indices must be integers or None")
		}
	}
	from, _, _, count := r.indices([3]value{start, stop, none{}}, n)
	return from, from + count
}

// part returns s[start:stop], and where it begins in characters and in bytes. ok is
// false if start is beyond the end.
func (r *run) part(s string, start, stop value) (part string, from, at int, ok bool) {
	if !present(start) && !present(stop) {
		return s, 0, 0, true
	}
	n := r.runes(s)
	if w, isInt := whole(start); isInt && w > int64(n) {
		return "", 0, 0, false
	}
	from, to := r.window(start, stop, n)
	at = r.offset(s, from)
	return s[at : at+r.offset(s[at:], to-from)], from, at, true
}

func affix(has func(s, part string) bool) method {
	return func(r *run, self value, a args) value {
		s, _ := stringOf(self)
		o := r.bind("startswith", a, 1, 3, "prefix", "start", "end")
		s, _, _, ok := r.part(s, o[1], o[2])
		parts := []value{o[0]}
		if l, isList := o[0].(*list); isList && l.tuple {
			parts = l.items
		}
		for _, p := range parts {
			part := r.text("startswith or endswith", p, "")
			r.step(1 + min(len(part), len(s))/64)
			if ok && has(s, part) {
				return true
			}
		}
		return false
	}
}

func remove(trim func(s, part string) string) method {
	return func(r *run, self value, a args) value {
		s, _ := stringOf(self)
		return trim(s, r.text("removeprefix or removesuffix", r.bind("removeprefix", a, 1, 1, "part")[0], ""))
	}
}

func find(index func(s, part string) int, must bool) method {
	return func(r *run, self value, a args) value {
		s, _ := stringOf(self)
		o := r.bind("find", a, 1, 3, "sub", "start", "end")
		part := r.text("find", o[0], "")
		r.step(len(s) / 16)
		inside, from, _, ok := r.part(s, o[1], o[2])
		at := -1
		if ok {
			at = index(inside, part)
		}
		if at < 0 {
			if must {
				r.fail("substring not found")
			}
			return int64(-1)
		}
		return int64(from + utf8.RuneCountInString(inside[:at]))
	}
}

func countMethod(r *run, self value, a args) value {
	s, _ := stringOf(self)
	o := r.bind("count", a, 1, 3, "sub", "start", "end")
	part := r.text("count", o[0], "")
	r.step(len(s) / 16)
	inside, _, _, ok := r.part(s, o[1], o[2])
	if !ok {
		return int64(0)
	}
	return int64(strings.Count(inside, part))
}

func justify(left, right bool) method {
	return func(r *run, self value, a args) value {
		s, _ := stringOf(self)
		o := r.bind("a justifying method", a, 1, 2, "width", "fillchar")
		fill := r.text("fillchar", o[1], " ")
		if utf8.RuneCountInString(fill) != 1 {
			r.fail("the fill character must be exactly one character long")
		}
		return r.pad(s, r.number("width", o[0], 0), fill, left, right)
	}
}

func zfill(r *run, self value, a args) value {
	s, _ := stringOf(self)
	width := r.number("zfill", r.bind("zfill", a, 1, 1, "width")[0], 0)
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = s[:1], s[1:]
	}
	return r.join2(sign, r.pad(s, width-len(sign), "0", true, false))
}

func every(f func(rune) bool) method {
	return func(r *run, self value, a args) value {
		r.noArguments("the method", a)
		s, _ := stringOf(self)
		r.step(len(s) / 64)
		for _, c := range s {
			if !f(c) {
				return false
			}
		}
		return s != ""
	}
}

func isTitle(r *run, s string) bool {
	r.step(len(s) / 64)
	some, inside := false, false
	for _, c := range s {
		switch {
		case unicode.IsUpper(c) || unicode.IsTitle(c):
			if inside {
				return false
			}
			some, inside = true, true
		case unicode.IsLower(c):
			if !inside {
				return false
			}
		default:
			inside = false
		}
	}
	return some
}

// formatMethod is str.format with {}, {0}, {name} and their attributes and items, but
// without conversions and format specifications.
func formatMethod(r *run, self value, a args) value {
	s, _ := stringOf(self)
	p := printer{run: r}
	auto := 0
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			p.write(s)
			break
		}
		p.write(s[:at])
		brace := s[at : at+1]
		if s = s[at+1:]; strings.HasPrefix(s, brace) {
			p.write(brace)
			s = s[1:]
			continue
		}
		end := strings.IndexAny(s, "{}:!")
		if brace == "}" || end < 0 {
			r.fail("single %q encountered in format string", brace)
		}
		if s[end] != '}' {
			r.fail("conversions, specifications and nested fields in str.format are not supported")
		}
		p.write(r.str(r.field(s[:end], a, &auto)))
		s = s[end+1:]
	}
	return p.String()
}

func (r *run) field(name string, a args, auto *int) value {
	n := strings.IndexAny(name, ".[")
	if n < 0 {
		n = len(name)
	}
	first, rest := name[:n], name[n:]
	var v value
	i, err := strconv.Atoi(first)
	switch {
	case first == "":
		i = *auto
		*auto++
		fallthrough
	case err == nil:
		if i < 0 || i >= len(a.positional) {
			r.fail("replacement index %d out of range for positional args tuple", i)
		}
		v = a.positional[i]
	default:
		for _, k := range a.keywords {
			if k.name == first {
				v = k.value
			}
		}
		if v == nil {
			r.fail("the format names %q, which is not given", first)
		}
	}
	for rest != "" {
		r.step(1)
		if rest[0] == '.' {
			rest = rest[1:]
			n := strings.IndexAny(rest, ".[")
			if n < 0 {
				n = len(rest)
			}
			v, rest = r.attribute(v, rest[:n]), rest[n:]
			continue
		}
		n := strings.IndexByte(rest, ']')
		if rest[0] != '[' || n < 0 {
			r.fail("malformed field in a format string")
		}
		var key value = rest[1:n]
		if i, err := strconv.ParseInt(rest[1:n], 10, 64); err == nil {
			key = i
		}
		v, rest = r.item(v, key), rest[n+1:]
	}
	return v
}
