package chat

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// filterTable holds the filters by Jinja's names. Using one that it lacks (pprint,
// random, striptags, urlize, urlencode, xmlattr, filesizeformat, wordwrap, forceescape)
// is an error when a template is parsed.
var filterTable map[string]func(r *run, v value, a args) value

func init() { // assigned here, because the filter map looks filters up, and Go forbids such cycles between variables
	filterTable = map[string]func(*run, value, args) value{
		"abs": absFilter, "attr": attrFilter, "batch": batchFilter, "default": defaultFilter, "d": defaultFilter,
		"dictsort": dictSort, "e": escapeFilter, "escape": escapeFilter, "safe": safeFilter, "string": stringFilter,
		"first": firstFilter, "last": lastFilter, "length": lengthFilter, "count": lengthFilter,
		"float": floatFilter, "int": intFilter, "round": roundFilter, "sum": sumFilter,
		"groupby": groupBy, "items": itemsFilter, "join": joinFilter, "list": listFilter,
		"map": mapFilter, "select": selecting(true, false), "reject": selecting(false, false),
		"selectattr": selecting(true, true), "rejectattr": selecting(false, true),
		"max": extreme("max", 1), "min": extreme("min", -1), "sort": sortFilter, "unique": uniqueFilter,
		"reverse": reverseFilter, "slice": sliceFilter, "tojson": toJSON,
		"capitalize": textFilter("capitalize", capitalize), "lower": textFilter("lower", lower), "upper": textFilter("upper", upper),
		"title": textFilter("title", titleFilter), "trim": trimFilter, "center": centerFilter, "replace": replaceFilter,
		"indent": indentFilter, "truncate": truncateFilter, "wordcount": wordCount, "format": formatFilter,
	}
}

func (r *run) filter(name string, v value, a args) value {
	f := filterTable[name]
	if f == nil {
		r.fail("the filter %.40q is not supported", name)
	}
	if _, safe := v.(markup); safe && !strings.Contains(" default d e escape safe string length count trim join first last list tojson ", " "+name+" ") {
		r.fail("the filter %s on escaped text is not supported", name)
	}
	r.enter() // because map, select and similar filters call filters
	defer r.leave()
	return f(r, v, a)
}

func absFilter(r *run, v value, a args) value {
	r.noArguments("abs", a)
	r.refuse(v)
	n, f, k := numberOf(v)
	switch {
	case k == 1 && n < 0:
		return r.sign(true, n)
	case k == 1:
		return n
	case k == 2:
		return math.Abs(f)
	}
	r.fail("bad operand type for abs(): %q", typeName(v))
	return nil
}

func attrFilter(r *run, v value, a args) value {
	name, ok := stringOf(r.bind("attr", a, 1, 0, "name")[0])
	if !ok {
		r.fail("attr wants a name")
	}
	r.refuse(v)
	if x, known := r.member(v, name); known {
		return x
	}
	return r.missing(v, name)
}

func defaultFilter(r *run, v value, a args) value {
	o := r.bind("default", a, 0, 0, "default_value", "boolean")
	_, absent := v.(*undefined)
	if absent || o[1] != nil && truth(o[1]) && !truth(v) {
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

// text returns an argument that must be a string, or the value of absent if there is
// none.
func (r *run) text(what string, v value, absent string) string {
	if v == nil {
		return absent
	}
	r.refuse(v)
	s, ok := stringOf(v)
	if !ok {
		r.fail("%s wants a string, not a %q", what, typeName(v))
	}
	return s
}

func flag(v value) bool { return v != nil && truth(v) }

func present(v value) bool { return v != nil && v != (none{}) }

// attributeParts splits the path "a.0.b" that some filters take.
func (r *run) attributeParts(v value) []value {
	s, ok := stringOf(v)
	if !ok {
		return []value{v}
	}
	r.alloc(sum(strings.Count(s, "."), 1), 2*itemBytes)
	var out []value
	for part := range strings.SplitSeq(s, ".") {
		if n, err := strconv.ParseInt(part, 10, 64); err == nil && part[0] != '-' && part[0] != '+' {
			out = append(out, n)
		} else {
			out = append(out, part)
		}
	}
	return out
}

// getter returns a function that follows a path of attributes. For a nil path it
// returns the value itself.
func (r *run) getter(path, otherwise value) func(value) value {
	if !present(path) {
		return func(v value) value { return v }
	}
	parts := r.attributeParts(path)
	return func(v value) value {
		for _, p := range parts {
			v = r.item(v, p)
			if _, absent := v.(*undefined); absent && present(otherwise) {
				v = otherwise
			}
		}
		return v
	}
}

// folded returns v as a key for sorting: text is lower-cased, unless case matters.
func (r *run) folded(v value, caseSensitive value) value {
	if s, ok := stringOf(v); ok && !flag(caseSensitive) {
		return lower(r, s)
	}
	return v
}

// sorted sorts items by key; the sort is stable.
func (r *run) sorted(items []value, key func(value) value, reverse bool) []value {
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
		c := r.compare(a.key, b.key, "<")
		if c == 2 {
			return 0
		}
		return c
	})
	out := make([]value, len(items))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out
}

func dictSort(r *run, v value, a args) value {
	o := r.bind("dictsort", a, 0, 0, "case_sensitive", "by", "reverse")
	by := 0
	if s := r.text("by", o[1], "key"); s == "value" {
		by = 1
	} else if s != "key" {
		r.fail("you can only sort by either %q or %q", "key", "value")
	}
	r.refuse(v)
	d, ok := v.(*dict)
	if !ok {
		r.fail("dictsort wants a mapping, not a %q", typeName(v))
	}
	return r.newList(r.sorted(r.pairs(d), func(p value) value {
		return r.folded(p.(*list).items[by], o[0])
	}, flag(o[2])))
}

// pairs is dict.items().
func (r *run) pairs(d *dict) []value {
	r.alloc(len(d.keys), pairBytes)
	out := make([]value, len(d.keys))
	for i, k := range d.keys {
		out[i] = &list{items: []value{k, d.values[i]}, tuple: true}
	}
	return out
}

func itemsFilter(r *run, v value, a args) value {
	r.noArguments("items", a)
	switch v := v.(type) {
	case *undefined:
		return &generator{}
	case *dict:
		return &generator{r.pairs(v)}
	}
	r.fail("items wants a mapping, not a %q", typeName(v))
	return nil
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func (r *run) escape(s string) string {
	r.alloc(sum(len(s), 1), 5)
	return htmlEscapes.Replace(s)
}

func escapeFilter(r *run, v value, a args) value {
	r.noArguments("escape", a)
	if m, ok := v.(markup); ok {
		return m
	}
	return markup(r.escape(r.str(v)))
}

func safeFilter(r *run, v value, a args) value {
	r.noArguments("safe", a)
	return markup(r.str(v))
}

func stringFilter(r *run, v value, a args) value {
	r.noArguments("string", a)
	if m, ok := v.(markup); ok {
		return m
	}
	return r.str(v)
}

func firstFilter(r *run, v value, a args) value {
	r.noArguments("first", a)
	next := r.iterate(v)
	if next == nil {
		r.fail("%q object is not iterable", typeName(v))
	}
	if x, ok := next(); ok {
		return x
	}
	return r.undefined("no first item, sequence was empty")
}

func lastFilter(r *run, v value, a args) value {
	r.noArguments("last", a)
	if _, once := v.(*generator); once {
		r.fail("%q object is not reversible", typeName(v))
	}
	if x, ok := r.at(v, -1); ok {
		return x
	}
	if items := r.items(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return r.undefined("no last item, sequence was empty")
}

func lengthFilter(r *run, v value, a args) value {
	r.noArguments("length", a)
	if l, ok := v.(*loop); ok {
		return int64(r.count(l))
	}
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
	s, ok := stringOf(v)
	if !ok {
		return 0, false
	}
	r.step(len(s) / 64)
	s = strings.TrimFunc(s, isSpace)
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i+1 == len(s) || !decimal(s[i-1]) || !decimal(s[i+1])) {
			return 0, false
		}
		if s[i] == 'x' || s[i] == 'X' || s[i] == 'p' || s[i] == 'P' {
			return 0, false // only Go accepts hexadecimal floats
		}
	}
	r.alloc(1, len(s))
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}

func intFilter(r *run, v value, a args) value {
	o := r.bind("int", a, 0, 0, "default", "base")
	base := r.number("base", o[1], 10)
	r.refuse(v)
	if n, ok := whole(v); ok {
		return n
	}
	f, isFloat := v.(float64)
	if s, ok := stringOf(v); ok {
		if n, ok := r.toInt(s, base); ok {
			return n
		}
		f, isFloat = r.toFloat(v)
		isFloat = isFloat && !math.IsInf(f, 0)
	}
	if isFloat && !math.IsNaN(f) {
		if math.Abs(f) >= 1<<63 {
			r.overflow()
		}
		return int64(f)
	}
	if o[0] == nil {
		return int64(0)
	}
	return o[0]
}

// toInt is Python's int(s, base).
func (r *run) toInt(s string, base int) (int64, bool) {
	if base != 0 && (base < 2 || base > 36) {
		return 0, false
	}
	r.alloc(1, len(s))
	s = strings.TrimFunc(s, isSpace)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	if prefix := map[int]string{16: "0x", 8: "0o", 2: "0b"}[base]; prefix != "" && len(s) > 2 && strings.EqualFold(s[:2], prefix) {
		s = strings.TrimPrefix(s[2:], "_")
	}
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") || s[0] == '-' || s[0] == '+' {
		return 0, false
	}
	if base != 0 {
		s = strings.ReplaceAll(s, "_", "")
	} else if len(s) > 1 && s[0] == '0' && decimal(s[1]) && strings.Trim(s, "0_") != "" {
		return 0, false // Go would take it for octal
	}
	n, err := strconv.ParseInt(sign+s, base, 64)
	if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
		r.overflow()
	}
	return n, err == nil
}

func roundFilter(r *run, v value, a args) value {
	o := r.bind("round", a, 0, 0, "precision", "method")
	precision := r.number("round", o[0], 0)
	method := r.text("round", o[1], "common")
	r.refuse(v)
	n, f, k := numberOf(v)
	if k == 0 {
		r.fail("type %s doesn't define __round__ method", typeName(v))
	}
	if precision < 0 || precision > 300 {
		r.fail("round to %d digits is not supported", precision)
	}
	switch method {
	case "common":
		if k == 1 {
			return n
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return f
		}
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64) // rounds halves to even, exactly
		return f
	case "ceil", "floor":
		scale := math.Pow(10, float64(precision))
		f *= scale
		if method == "ceil" {
			f = math.Ceil(f)
		} else {
			f = math.Floor(f)
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			r.fail("cannot convert float %s to integer", floatText(f))
		}
		return f / scale
	}
	r.fail("method must be common, ceil or floor")
	return nil
}

func sumFilter(r *run, v value, a args) value {
	o := r.bind("sum", a, 0, 0, "attribute", "start")
	get := r.getter(o[0], nil)
	var total value = int64(0)
	if o[1] != nil {
		total = o[1]
	}
	if _, ok := stringOf(total); ok {
		r.fail("sum() can't sum strings")
	}
	for _, x := range r.items(v) {
		total = r.binary("+", total, get(x))
	}
	return total
}

func groupBy(r *run, v value, a args) value {
	o := r.bind("groupby", a, 1, 0, "attribute", "default", "case_sensitive")
	get := r.getter(o[0], o[1])
	key := func(x value) value { return r.folded(get(x), o[2]) }
	items := r.sorted(r.items(v), key, false)
	var out []value
	for from := 0; from < len(items); {
		to, k := from+1, key(items[from])
		for to < len(items) && r.equal(key(items[to]), k) {
			to++
		}
		r.alloc(4, valueBytes)
		members := &list{items: items[from:to:to]}
		out = append(out, &list{items: []value{get(items[from]), members}, tuple: true, group: true})
		from = to
	}
	return &list{items: out}
}

func joinFilter(r *run, v value, a args) value {
	o := r.bind("join", a, 0, 0, "d", "attribute")
	separator := ""
	if o[0] != nil {
		separator = r.str(o[0])
	}
	get := r.getter(o[1], nil)
	items := r.items(v)
	parts := make([]string, 0, len(items))
	r.alloc(len(items), itemBytes)
	n := itemBytes
	for _, x := range items {
		s := r.str(get(x))
		n = sum(n, len(s))
		parts = append(parts, s)
	}
	return r.joined(parts, separator, n)
}

// joined is strings.Join; n is the total length of the parts.
func (r *run) joined(parts []string, separator string, n int) string {
	r.alloc(1, n)
	r.alloc(len(parts), len(separator))
	return strings.Join(parts, separator)
}

func listFilter(r *run, v value, a args) value {
	r.noArguments("list", a)
	return r.newList(r.items(v))
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
		o := r.bind("map", a, 1, 0, "attribute", "default")
		apply = r.getter(o[0], o[1])
	} else {
		name := r.text("map", a.positional[0], "")
		rest := args{a.positional[1:], a.keywords}
		apply = func(x value) value { return r.filter(name, x, rest) }
	}
	items := r.itemsIfAny(v)
	out := r.room(len(items))
	for _, x := range items {
		r.step(1)
		out = append(out, apply(x))
	}
	return &generator{out}
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
			get, rest = r.getter(rest[0], nil), rest[1:]
		}
		pass := truth
		if len(rest) > 0 {
			name := r.text("the name of a test", rest[0], "")
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
		return &generator{out}
	}
}

func extreme(name string, sign int) func(*run, value, args) value {
	return func(r *run, v value, a args) value {
		o := r.bind(name, a, 0, 0, "case_sensitive", "attribute")
		get := r.getter(o[1], nil)
		items := r.items(v)
		if len(items) == 0 {
			return r.undefined("no aggregated item, sequence was empty")
		}
		best, key := items[0], r.folded(get(items[0]), o[0])
		for _, x := range items[1:] {
			if k := r.folded(get(x), o[0]); r.compare(k, key, "<") == sign {
				best, key = x, k
			}
		}
		return best
	}
}

func sortFilter(r *run, v value, a args) value {
	o := r.bind("sort", a, 0, 0, "reverse", "case_sensitive", "attribute")
	key := func(x value) value { return r.folded(x, o[1]) }
	if s, ok := stringOf(o[2]); ok && strings.Contains(s, ",") {
		r.alloc(strings.Count(s, ","), valueBytes)
		var gets []func(value) value
		for part := range strings.SplitSeq(s, ",") {
			gets = append(gets, r.getter(part, nil))
		}
		key = func(x value) value {
			k := r.room(len(gets))
			for _, get := range gets {
				k = append(k, r.folded(get(x), o[1]))
			}
			return &list{items: k}
		}
	} else if present(o[2]) {
		get := r.getter(o[2], nil)
		key = func(x value) value { return r.folded(get(x), o[1]) }
	}
	return r.newList(r.sorted(r.items(v), key, flag(o[0])))
}

func uniqueFilter(r *run, v value, a args) value {
	o := r.bind("unique", a, 0, 0, "case_sensitive", "attribute")
	get := r.getter(o[1], nil)
	items := r.items(v)
	out := r.room(len(items))
	seen := map[any]bool{}
	for _, x := range items {
		k := r.dictKey(r.folded(get(x), o[0]))
		if !seen[k] {
			r.alloc(1, pairBytes)
			seen[k] = true
			out = append(out, x)
		}
	}
	return &generator{out}
}

func reverseFilter(r *run, v value, a args) value {
	r.noArguments("reverse", a)
	if s, ok := v.(string); ok {
		return r.reversed(s)
	}
	items := r.items(v)
	out := slices.Clone(items)
	r.alloc(len(items), itemBytes)
	slices.Reverse(out)
	if _, once := v.(*generator); once {
		return &list{items: out}
	}
	return &generator{out}
}

func (r *run) reversed(s string) string {
	r.alloc(len(s), 8)
	runes := []rune(s)
	slices.Reverse(runes)
	return string(runes)
}

func sliceFilter(r *run, v value, a args) value {
	o := r.bind("slice", a, 1, 0, "slices", "fill_with")
	n := r.number("slice", o[0], 0)
	items := r.items(v)
	if n == 0 {
		r.fail("integer division or modulo by zero")
	}
	r.alloc(max(n, 0), 3*valueBytes)
	var out []value
	from := 0
	for i := range max(n, 0) {
		r.step(1)
		to := from + len(items)/n
		if i < len(items)%n {
			to++
		}
		part := items[from:to:to]
		if present(o[1]) && i >= len(items)%n {
			part = append(slices.Clone(part), o[1])
			r.alloc(len(part), itemBytes)
		}
		out = append(out, &list{items: part})
		from = to
	}
	return &generator{out}
}

func batchFilter(r *run, v value, a args) value {
	o := r.bind("batch", a, 1, 0, "linecount", "fill_with")
	n := r.number("batch", o[0], 0)
	items := r.items(v)
	if n < 1 {
		r.fail("batch wants a count of at least 1")
	}
	var out []value
	for len(items) > 0 {
		part := items[:min(n, len(items)):min(n, len(items))]
		items = items[len(part):]
		r.alloc(2, valueBytes)
		if present(o[1]) && len(part) < n {
			r.alloc(n, itemBytes)
			part = slices.Grow(slices.Clone(part), n-len(part))
			for len(part) < n {
				part = append(part, o[1])
			}
		}
		out = append(out, &list{items: part})
	}
	return &generator{out}
}
