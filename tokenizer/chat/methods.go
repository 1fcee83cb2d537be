package chat

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// methods holds the methods of values, as "type.name".
var methods map[string]func(r *run, self value, a args) value

// lacking names the methods of Python that this package lacks, by type, and those that change a value, which Jinja's
// sandbox refuses. Using one is an error; any other missing attribute is undefined.
var lacking = map[string]string{
	"str": "casefold center count encode expandtabs format format_map index isalnum isalpha isascii isdecimal isdigit " +
		"isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans partition rfind rindex rjust " +
		"rpartition swapcase translate zfill",
	"int":    "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes",
	"bool":   "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes",
	"float":  "as_integer_ratio conjugate fromhex hex imag is_integer real",
	"dict":   "clear copy fromkeys pop popitem setdefault update",
	"list":   "append clear copy count extend index insert pop remove reverse sort",
	"tuple":  "count index",
	"range":  "count index start step stop",
	"Macro":  "arguments name",
	"Markup": "capitalize endswith find join lower lstrip replace rstrip split splitlines startswith strip title upper",
}

func init() { // assigned here, because some methods call what looks methods up, and Go forbids such cycles between variables
	methods = map[string]func(*run, value, args) value{
		"str.strip":        func(r *run, s value, a args) value { return r.strip(s.(string), a, true, true) },
		"str.lstrip":       func(r *run, s value, a args) value { return r.strip(s.(string), a, true, false) },
		"str.rstrip":       func(r *run, s value, a args) value { return r.strip(s.(string), a, false, true) },
		"str.split":        split(false),
		"str.rsplit":       split(true),
		"str.startswith":   affix(strings.HasPrefix),
		"str.endswith":     affix(strings.HasSuffix),
		"str.removeprefix": remove(strings.TrimPrefix),
		"str.removesuffix": remove(strings.TrimSuffix),
		"str.upper":        textFilter("upper", upper),
		"str.lower":        textFilter("lower", lower),
		"str.capitalize":   textFilter("capitalize", capitalize),
		"str.title":        textFilter("title", titleMethod),
		"str.splitlines": func(r *run, s value, a args) value {
			r.noArguments("splitlines", a)
			return &list{aList, r.lines(s.(string))}
		},
		"str.replace": func(r *run, s value, a args) value {
			o := r.bind("replace", a, 2, 3, "old", "new", "count")
			return r.replace(s.(string), r.text("replace", o[0]), r.text("replace", o[1]), r.number("replace", o[2], -1))
		},
		"str.find": func(r *run, v value, a args) value {
			s := v.(string)
			r.step(len(s) / 16)
			at := strings.Index(s, r.text("find", r.bind("find", a, 1, 1, "sub")[0]))
			if at < 0 {
				return int64(-1)
			}
			return int64(utf8.RuneCountInString(s[:at]))
		},
		"str.join": func(r *run, s value, a args) value {
			return r.join(r.items(r.bind("join", a, 1, 1, "iterable")[0]), s.(string), func(i int, x value) string {
				part, ok := x.(string)
				if !ok {
					r.fail("sequence item %d: expected str instance, %s found", i, typeName(x))
				}
				return part
			})
		},
		"dict.get": func(r *run, d value, a args) value {
			o := r.bind("get", a, 1, 2, "key", "default")
			if i, ok := d.(*dict).index[r.dictKey(o[0])]; ok {
				return d.(*dict).values[i]
			}
			if o[1] == nil {
				return none{}
			}
			return o[1]
		},
		"dict.keys":   view("keys", func(_ *run, d *dict) []value { return d.keys }),
		"dict.values": view("values", func(_ *run, d *dict) []value { return d.values }),
		"dict.items":  view("items", func(r *run, d *dict) []value { return r.pairs("items", d) }),
	}
}

func view(name string, f func(*run, *dict) []value) func(*run, value, args) value {
	return func(r *run, self value, a args) value {
		r.noArguments(name, a)
		r.alloc(1, valueBytes)
		return &list{aView, f(r, self.(*dict))}
	}
}

// strip is Python's strip, for white space or for the characters given.
func (r *run) strip(s string, a args, left, right bool) string {
	r.step(len(s) / 8)
	drop := isSpace
	if chars := r.bind("strip", a, 0, 0, "chars")[0]; present(chars) {
		set := map[rune]bool{}
		c := r.text("strip", chars)
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

func split(fromRight bool) func(*run, value, args) value {
	return func(r *run, self value, a args) value {
		s := self.(string)
		o := r.bind("split", a, 0, 0, "sep", "maxsplit")
		most := r.number("split", o[1], -1)
		r.step(len(s) / 16)
		var parts []string
		if !present(o[0]) {
			if most >= 0 {
				r.fail("split at white space with a maximum is not supported")
			}
			r.alloc(sum(len(s), 1), itemBytes)
			parts = strings.FieldsFunc(s, isSpace)
		} else {
			separator := r.text("split", o[0])
			if separator == "" {
				r.fail("empty separator")
			}
			n := strings.Count(s, separator)
			if most < 0 || most > n {
				most = n
			}
			r.alloc(n+1, 2*itemBytes)
			parts = strings.Split(s, separator)
			if from := len(parts) - 1 - most; fromRight && from > 0 { // the first ones stay together
				parts = slices.Insert(parts[from+1:], 0, strings.Join(parts[:from+1], separator))
			} else if !fromRight {
				parts = strings.SplitN(s, separator, most+1)
			}
		}
		items := r.room(len(parts))
		for _, p := range parts {
			items = append(items, p)
		}
		return &list{aList, items}
	}
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

// lines is str.splitlines: an end of line at the end of s does not begin another line.
func (r *run) lines(s string) []value {
	r.step(len(s) / 16)
	var out []value
	for s != "" {
		r.alloc(1, 2*itemBytes)
		at, n := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"), 0
		if at < 0 {
			at = len(s)
		} else if _, n = utf8.DecodeRuneInString(s[at:]); strings.HasPrefix(s[at:], "\r\n") {
			n = 2
		}
		out = append(out, s[:at])
		s = s[at+n:]
	}
	return out
}

func affix(has func(s, part string) bool) func(*run, value, args) value {
	return func(r *run, self value, a args) value {
		v := r.bind("startswith or endswith", a, 1, 1, "part")[0]
		parts := []value{v}
		if l, ok := v.(*list); ok && l.kind == aTuple {
			parts = l.items
		}
		for _, p := range parts {
			part := r.text("startswith or endswith", p)
			r.step(1 + len(part)/64)
			if has(self.(string), part) {
				return true
			}
		}
		return false
	}
}

func remove(trim func(s, part string) string) func(*run, value, args) value {
	return func(r *run, self value, a args) value {
		v := r.bind("removeprefix or removesuffix", a, 1, 1, "part")[0]
		return trim(self.(string), r.text("removeprefix or removesuffix", v))
	}
}

func upper(r *run, s string) string {
	r.alloc(sum(len(s), 4), 3) // a character may become three times as long
	return cases.Upper(language.Und).String(s)
}

func lower(r *run, s string) string {
	r.alloc(sum(len(s), 4), 3)
	return cases.Lower(language.Und).String(s)
}

func capitalize(r *run, s string) string {
	return titled(r, s, cases.Title(language.Und), func(before rune) bool { return before < 0 })
}

// titleFilter is Jinja's filter title, in which a word begins only after white space, a hyphen or an opening bracket.
func titleFilter(r *run, s string) string {
	return titled(r, s, cases.Upper(language.Und), func(before rune) bool {
		return before < 0 || isSpace(before) || strings.ContainsRune("-({[<", before)
	})
}

// titleMethod is str.title, in which a word begins after any character without case.
func titleMethod(r *run, s string) string {
	return titled(r, s, cases.Title(language.Und), func(before rune) bool {
		return !unicode.IsUpper(before) && !unicode.IsLower(before) && !unicode.IsTitle(before)
	})
}

// titled lower-cases s, except for the characters before which a word begins.
func titled(r *run, s string, first cases.Caser, begins func(before rune) bool) string {
	r.alloc(sum(len(s), 4), 3)
	var b strings.Builder
	rest, before := cases.Lower(language.Und), rune(-1)
	for i, c := range s {
		at := s[i : i+max(utf8.RuneLen(c), 1)]
		switch {
		case begins(before):
			b.WriteString(first.String(at))
		case c == 'Σ':
			r.fail("a capital sigma within a word that gets a capital is not supported")
		default:
			b.WriteString(rest.String(at))
		}
		before = c
	}
	return b.String()
}
