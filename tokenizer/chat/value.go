package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// value is a value of the template's language. Python's None, bool, int, float and str
// are none, bool, int64, float64 and string; all others are pointers to the types
// below. As in Jinja's immutable sandbox, lists and dictionaries never change once they are
// made. Only a namespace can change, so a value can contain itself only by way of a
// namespace.
type value = any

type (
	none struct{}
	// undefined is the value of a name or attribute that does not exist. Its text is
	// empty; most other operations on it fail with why.
	undefined struct{ why string }
	// markup is text that the filter safe gave. It can only be printed.
	markup string
	list   struct {
		kind  listKind
		items []value
	}
	dict struct {
		keys, values []value
		index        map[any]int // by dictKey
	}
	namespace struct{ dict }
	// generator is what map, select and the like give. It can be iterated only once, which Jinja answers
	// with nothing the second time and this package with an error.
	generator struct {
		items []value
		used  bool
	}
	// function is a function of the template's environment, or a method.
	function struct {
		name string
		call func(r *run, a args) value
	}
)

// listKind is Python's type of a list.
type listKind uint8

const (
	aList listKind = iota
	aTuple
	aRange
	aView // what a dictionary's keys, values and items give; it cannot be indexed
)

// The number of bytes that values are assumed to take.
const (
	itemBytes  = 16
	pairBytes  = 96
	valueBytes = 48
)

// room returns an empty slice with room for n items, whose memory has been accounted
// for.
func (r *run) room(n int) []value {
	r.alloc(sum(n, 4), itemBytes)
	return make([]value, 0, n)
}

func (r *run) newDict() *dict {
	r.alloc(1, pairBytes)
	return &dict{index: map[any]int{}}
}

// put sets a key of a dictionary that is being made.
func (r *run) put(d *dict, k, v value) {
	key := r.dictKey(k)
	if i, ok := d.index[key]; ok {
		d.values[i] = v
		return
	}
	r.alloc(1, pairBytes)
	d.index[key] = len(d.keys)
	d.keys, d.values = append(d.keys, k), append(d.values, v)
}

func (r *run) get(d *dict, k value) (value, bool) {
	if i, ok := d.index[r.dictKey(k)]; ok {
		return d.values[i], true
	}
	return nil, false
}

func (d *dict) has(name string) (value, bool) {
	if i, ok := d.index[name]; ok {
		return d.values[i], true
	}
	return nil, false
}

// dictKey returns the same key for values that are equal as keys.
func (r *run) dictKey(v value) any {
	switch v := v.(type) {
	case string:
		r.step(len(v) / 64)
		return v
	case bool:
		return integer(v)
	case int64, none:
		return v
	}
	r.fail("a %q as a key is not supported", typeName(v))
	return nil
}

// nested calls f, and counts how deeply values are nested.
func (r *run) nested(f func()) {
	if r.valueDepth++; r.valueDepth > maxDepth {
		r.fail("values are nested deeper than %d", maxDepth)
	}
	f()
	r.valueDepth--
}

// typeName returns Python's name of a value's type.
func typeName(v value) string {
	switch v := v.(type) {
	case none:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *undefined:
		return "Undefined"
	case *list:
		return [...]string{"list", "tuple", "range", "dict view"}[v.kind]
	case *dict:
		return "dict"
	case *namespace:
		return "Namespace"
	case *generator:
		return "generator"
	case *function:
		return "function"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	}
	return fmt.Sprintf("%T", v)
}

// truth is Python's bool(v).
func truth(v value) bool {
	switch v := v.(type) {
	case none, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// integer returns a bool as the int that Python's arithmetic makes of it.
func integer(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// whole returns v as an int, where one is needed; bools count.
func whole(v value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		return integer(v), true
	}
	return 0, false
}

// runes returns the number of code points in s.
func (r *run) runes(s string) int {
	r.step(len(s) / 64)
	return utf8.RuneCountInString(s)
}

// length is len(v).
func (r *run) length(v value) (int, bool) {
	switch v := v.(type) {
	case string:
		return r.runes(v), true
	case *list:
		return len(v.items), true
	case *dict:
		return len(v.keys), true
	case *undefined:
		return 0, true
	}
	return 0, false
}

// iterable returns the elements of v, as Python's iter(v). The caller must not change the slice.
func (r *run) iterable(v value) ([]value, bool) {
	switch v := v.(type) {
	case *list:
		return v.items, true
	case *dict:
		return v.keys, true
	case *undefined:
		return nil, true
	case string:
		out := r.room(len(v))
		for i, c := range v {
			out = append(out, v[i:i+max(utf8.RuneLen(c), 1)])
		}
		return out, true
	case *generator:
		if v.used {
			r.fail("iterating a second time over what map, select or the like gave is not supported: use the filter list")
		}
		v.used = true
		return v.items, true
	}
	return nil, false
}

// items is Python's list(v). The caller must not change the slice.
func (r *run) items(v value) []value {
	items, ok := r.iterable(v)
	if !ok {
		r.fail("%q object is not iterable", typeName(v))
	}
	r.step(len(items))
	return items
}

// str is Python's str(v).
func (r *run) str(v value) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case *undefined:
		return ""
	}
	p := printer{run: r}
	p.repr(v)
	return p.String()
}

// repr is Python's repr(v).
func (r *run) repr(v value) string {
	p := printer{run: r}
	p.repr(v)
	return p.String()
}

// printer writes values as Python does.
type printer struct {
	*run
	strings.Builder
}

// write accounts for the memory, and then writes.
func (p *printer) write(s string) {
	p.alloc(1, len(s)+1)
	p.WriteString(s)
}

func (p *printer) repr(v value) {
	p.step(1)
	switch v := v.(type) {
	case none:
		p.write("None")
	case bool:
		if v {
			p.write("True")
		} else {
			p.write("False")
		}
	case int64:
		p.write(strconv.FormatInt(v, 10))
	case float64:
		p.write(floatText(v))
	case string:
		p.quote(v)
	case *undefined:
		p.write("Undefined")
	case *list:
		if v.kind > aTuple {
			p.fail("a %s cannot be printed", typeName(v))
		}
		p.list(v)
	case *dict:
		p.dict(v)
	default:
		p.fail("a %s cannot be printed", typeName(v))
	}
}

func (p *printer) list(l *list) {
	open, close := "[", "]"
	if l.kind == aTuple {
		open, close = "(", ")"
		if len(l.items) == 1 {
			close = ",)"
		}
	}
	p.write(open)
	p.nested(func() {
		for i, x := range l.items {
			if i > 0 {
				p.write(", ")
			}
			p.repr(x)
		}
	})
	p.write(close)
}

func (p *printer) dict(d *dict) {
	p.write("{")
	p.nested(func() {
		for i, k := range d.keys {
			if i > 0 {
				p.write(", ")
			}
			p.repr(k)
			p.write(": ")
			p.repr(d.values[i])
		}
	})
	p.write("}")
}

// quote writes a string as Python's repr does.
func (p *printer) quote(s string) {
	p.alloc(1, sum(len(s), 2))
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	p.WriteByte(q)
	for i, c := range s {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			p.write(fmt.Sprintf(`\x%02x`, s[i])) // not UTF-8, which a Python string cannot hold
		case c == rune(q) || c == '\\':
			p.WriteByte('\\')
			p.WriteRune(c)
		case c == '\n':
			p.WriteString(`\n`)
		case c == '\r':
			p.WriteString(`\r`)
		case c == '\t':
			p.WriteString(`\t`)
		case unicode.IsPrint(c):
			p.WriteRune(c)
		case c < 0x100:
			p.write(fmt.Sprintf(`\x%02x`, c))
		case c < 0x10000:
			p.write(fmt.Sprintf(`\u%04x`, c))
		default:
			p.write(fmt.Sprintf(`\U%08x`, c))
		}
	}
	p.WriteByte(q)
}

// floatText is Python's repr of a float, which is finite.
func floatText(f float64) string {
	s := strconv.FormatFloat(f, 'e', -1, 64)
	exponent, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if exponent < -4 || exponent >= 16 {
		return s // Python and Go both write at least two digits
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
