package chat

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// filterTable holds the filters by Jinja's names.
var filterTable map[string]func(r *run, v value, a args) value

func init() { // assigned here, because the filter map looks filters up, and Go forbids such cycles between variables
	filterTable = map[string]func(*run, value, args) value{
		"default": defaultFilter, "d": defaultFilter, "length": lengthFilter, "count": lengthFilter,
		"float": floatFilter, "int": intFilter, "first": firstFilter, "last": lastFilter,
		"list": listFilter, "sort": sortFilter, "reverse": reverseFilter,
		"items": itemsFilter, "dictsort": dictSort, "join": joinFilter, "map": mapFilter,
		"select": selecting(true, false), "reject": selecting(false, false),
		"selectattr": selecting(true, true), "rejectattr": selecting(false, true),
		"string": stringFilter, "safe": safeFilter, "tojson": toJSON, "indent": indentFilter, "replace": replaceFilter,
		"trim":  func(r *run, v value, a args) value { return r.strip(r.str(v), a, true, true) },
		"lower": textFilter("lower", lower), "upper": textFilter("upper", upper),
		"capitalize": textFilter("capitalize", capitalize), "title": textFilter("title", titleFilter),
	}
}

// filter applies a filter. A name is looked up when the filter is reached, so that a template may use others for tools.
func (r *run) filter(name string, v value, a args) value {
	f := filterTable[name]
	if f == nil {
		r.fail("the filter %.40q is not supported", name)
	}
	if _, safe := v.(markup); safe && name != "string" && name != "safe" {
		r.fail("the filter %s on text that is marked as safe is not supported", name)
	}
	r.enter() // because map, select and similar filters call filters
	defer r.leave()
	return f(r, v, a)
}

func textFilter(name string, f func(*run, string) string) func(*run, value, args) value {
	return func(r *run, v value, a args) value {
		r.noArguments(name, a)
		return f(r, r.str(v))
	}
}

func defaultFilter(r *run, v value, a args) value {
	o := r.bind("default", a, 0, 0, "default_value", "boolean")
	_, absent := v.(*undefined)
	if absent || flag(o[1]) && !truth(v) {
		if o[0] == nil {
			return ""
		}
		return o[0]
	}
	return v
}

// number returns an argument that must be a whole number, or the value of absent if
// there is none.
func (r *run) number(what string, v value, absent int) int {
	if v == nil {
		return absent
	}
	r.refuse(v)
	n, ok := whole(v)
	if !ok {
		r.fail("%s wants a whole number, not a %q", what, typeName(v))
	}
	return int(max(min(n, math.MaxInt32), -math.MaxInt32)) // larger numbers mean the same
}

// text returns an argument that must be a string.
func (r *run) text(what string, v value) string {
	r.refuse(v)
	s, ok := v.(string)
	if !ok {
		r.fail("%s wants a string, not a %q", what, typeName(v))
	}
	return s
}

func flag(v value) bool { return v != nil && truth(v) }

func present(v value) bool { return v != nil && v != (none{}) }

// getter returns a function that follows a path of attributes such as "a.0.b". For a nil path it
// returns the value itself.
func (r *run) getter(path value) func(value) value {
	if !present(path) {
		return func(v value) value { return v }
	}
	parts := []value{path}
	if s, ok := path.(string); ok {
		r.alloc(sum(strings.Count(s, "."), 1), 2*itemBytes)
		parts = nil
		for part := range strings.SplitSeq(s, ".") {
			if n, err := strconv.ParseUint(part, 10, 31); err == nil {
				parts = append(parts, int64(n))
			} else {
				parts = append(parts, part)
			}
		}
	}
	return func(v value) value {
		for _, p := range parts {
			v = r.item(v, p)
		}
		return v
	}
}

// folded returns v as a key for sorting: text is lower-cased, unless case matters.
func (r *run) folded(v value, caseSensitive value) value {
	if s, ok := v.(string); ok && !flag(caseSensitive) {
		return lower(r, s)
	}
	return v
}

// sorted sorts items by key; the sort is stable.
func (r *run) sorted(items []value, key func(value) value, reverse bool) value {
	type pair struct{ key, item value }
	r.alloc(len(items), 3*itemBytes)
	pairs := make([]pair, len(items))
	for i, x := range items {
		pairs[i] = pair{key(x), x}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if reverse {
			a, b = b, a
		}
		return r.compare(a.key, b.key, "<")
	})
	out := make([]value, len(items))
	for i, p := range pairs {
		out[i] = p.item
	}
	return &list{aList, out}
}

func sortFilter(r *run, v value, a args) value {
	o := r.bind("sort", a, 0, 0, "reverse", "case_sensitive", "attribute")
	if s, ok := o[2].(string); ok && strings.Contains(s, ",") {
		r.fail("sort by several attributes is not supported")
	}
	get := r.getter(o[2])
	return r.sorted(r.items(v), func(x value) value { return r.folded(get(x), o[1]) }, flag(o[0]))
}

func dictSort(r *run, v value, a args) value {
	o := r.bind("dictsort", a, 0, 0, "case_sensitive")
	return r.sorted(r.pairs("dictsort", v), func(p value) value { return r.folded(p.(*list).items[0], o[0]) }, false)
}

// pairs is dict.items().
func (r *run) pairs(what string, v value) []value {
	r.refuse(v)
	d, ok := v.(*dict)
	if !ok {
		r.fail("%s wants a mapping, not a %q", what, typeName(v))
	}
	r.alloc(len(d.keys), pairBytes)
	out := make([]value, len(d.keys))
	for i, k := range d.keys {
		out[i] = &list{aTuple, []value{k, d.values[i]}}
	}
	return out
}

func itemsFilter(r *run, v value, a args) value {
	r.noArguments("items", a)
	if _, absent := v.(*undefined); absent {
		return &generator{}
	}
	return &generator{items: r.pairs("items", v)}
}

func stringFilter(r *run, v value, a args) value {
	r.noArguments("string", a)
	if m, ok := v.(markup); ok {
		return m
	}
	return r.str(v)
}

func safeFilter(r *run, v value, a args) value {
	r.noArguments("safe", a)
	return markup(r.str(v))
}

func firstFilter(r *run, v value, a args) value {
	r.noArguments("first", a)
	if items := r.items(v); len(items) > 0 {
		return items[0]
	}
	return r.undefined("no first item, sequence was empty")
}

func lastFilter(r *run, v value, a args) value {
	r.noArguments("last", a)
	if _, once := v.(*generator); once {
		r.fail("%q object is not reversible", typeName(v))
	}
	if items := r.items(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return r.undefined("no last item, sequence was empty")
}

func lengthFilter(r *run, v value, a args) value {
	r.noArguments("length", a)
	n, ok := r.length(v)
	if !ok {
		r.fail("object of type %q has no len()", typeName(v))
	}
	return int64(n)
}

func floatFilter(r *run, v value, a args) value {
	otherwise := r.bind("float", a, 0, 0, "default")[0]
	r.refuse(v)
	if f, ok := r.toFloat(v); ok {
		return f
	}
	if otherwise == nil {
		return 0.0
	}
	return otherwise
}

// toFloat is Python's float(v).
func (r *run) toFloat(v value) (float64, bool) {
	if _, f, k := numberOf(v); k > 0 {
		return f, true
	}
	s, ok := v.(string)
	if !ok {
		return 0, false
	}
	r.step(len(s) / 64)
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsFunc(s, func(c rune) bool { return c == '_' || unicode.IsDigit(c) && c > '9' }) {
		r.fail("the number %.40q is not supported", s)
	}
	if strings.ContainsAny(s, "xXpP") {
		return 0, false // only Go accepts hexadecimal floats
	}
	f, err := strconv.ParseFloat(s, 64)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		r.fail("the number %.40q is not supported", s)
	}
	return f, err == nil
}

func intFilter(r *run, v value, a args) value {
	otherwise := r.bind("int", a, 0, 0, "default")[0]
	r.refuse(v)
	if n, ok := whole(v); ok {
		return n
	}
	if s, ok := v.(string); ok {
		if n, err := strconv.ParseInt(strings.TrimFunc(s, isSpace), 10, 64); err == nil {
			return n
		}
	}
	if f, ok := r.toFloat(v); ok {
		if math.Abs(f) >= 1<<63 {
			r.overflow()
		}
		return int64(f)
	}
	if otherwise == nil {
		return int64(0)
	}
	return otherwise
}

func joinFilter(r *run, v value, a args) value {
	o := r.bind("join", a, 0, 0, "d", "attribute")
	separator := ""
	if o[0] != nil {
		separator = r.str(o[0])
	}
	get := r.getter(o[1])
	return r.join(r.items(v), separator, func(_ int, x value) string { return r.str(get(x)) })
}

// join is strings.Join of the items as texts.
func (r *run) join(items []value, separator string, text func(i int, x value) string) string {
	parts := make([]string, 0, len(items))
	r.alloc(len(items), itemBytes)
	for i, x := range items {
		s := text(i, x)
		r.alloc(1, len(s))
		parts = append(parts, s)
	}
	r.alloc(len(parts), len(separator))
	return strings.Join(parts, separator)
}

func listFilter(r *run, v value, a args) value {
	r.noArguments("list", a)
	return &list{aList, r.items(v)}
}

// itemsIfAny returns the items of v, or nothing if v counts as false, like none and 0.
func (r *run) itemsIfAny(v value) []value {
	if !truth(v) {
		return nil
	}
	return r.items(v)
}

func mapFilter(r *run, v value, a args) value {
	var apply func(value) value
	if len(a.positional) == 0 {
		apply = r.getter(r.bind("map", a, 1, 0, "attribute")[0])
	} else {
		name := r.text("map", a.positional[0])
		rest := args{a.positional[1:], a.keywords}
		apply = func(x value) value { return r.filter(name, x, rest) }
	}
	items := r.itemsIfAny(v)
	out := r.room(len(items))
	for _, x := range items {
		r.step(1)
		out = append(out, apply(x))
	}
	return &generator{items: out}
}

// selecting returns the filter select, reject, selectattr or rejectattr.
func selecting(want, byAttribute bool) func(*run, value, args) value {
	return func(r *run, v value, a args) value {
		get := func(v value) value { return v }
		rest := a.positional
		if byAttribute {
			if len(rest) == 0 {
				r.fail("missing parameter for attribute name")
			}
			get, rest = r.getter(rest[0]), rest[1:]
		}
		pass := truth
		if len(rest) > 0 {
			name := r.text("the name of a test", rest[0])
			arguments := args{rest[1:], a.keywords}
			pass = func(v value) bool { return r.test(name, v, arguments) }
		}
		items := r.itemsIfAny(v)
		out := r.room(len(items))
		for _, x := range items {
			r.step(1)
			if pass(get(x)) == want {
				out = append(out, x)
			}
		}
		return &generator{items: out}
	}
}

func reverseFilter(r *run, v value, a args) value {
	r.noArguments("reverse", a)
	items := r.items(v)
	out := append(r.room(len(items)), items...)
	slices.Reverse(out)
	switch v.(type) {
	case string:
		return r.join(out, "", func(_ int, x value) string { return x.(string) })
	case *generator:
		return &list{aList, out}
	}
	return &generator{items: out}
}

func replaceFilter(r *run, v value, a args) value {
	o := r.bind("replace", a, 2, 0, "old", "new", "count")
	count := -1
	if present(o[2]) {
		count = r.number("replace", o[2], -1)
	}
	return r.replace(r.str(v), r.str(o[0]), r.str(o[1]), count)
}

func indentFilter(r *run, v value, a args) value {
	o := r.bind("indent", a, 0, 0, "width", "first")
	n := max(r.number("indent", o[0], 4), 0)
	r.alloc(1, n)
	indention := strings.Repeat(" ", n)
	s := r.text("indent", v)
	lines := r.lines(s + "\n")
	r.alloc(1, len(s))
	r.alloc(len(lines)+1, len(indention)+1)
	var b strings.Builder
	for i, l := range lines {
		line := l.(string)
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && flag(o[1]) || i > 0 && line != "" {
			b.WriteString(indention)
		}
		b.WriteString(line)
	}
	return b.String()
}
