package chat

import (
	"fmt"
	"math"
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
	// markup is text marked as safe. Text that is added to it is escaped.
	markup string
	list   struct {
		items []value
		tuple bool
		group bool // a pair that groupby made, which has the attributes grouper and list
	}
	dict struct {
		keys, values []value
		index        map[any]int // by dictKey
	}
	namespace struct{ dict }
	// numbers is range(start, stop, step) with n elements.
	numbers struct {
		start, stop, step int64
		n                 int
	}
	// view is what a dictionary's keys, values and items give.
	view struct {
		name string // dict_keys, …
		list
	}
	// generator can be iterated only once.
	generator struct{ items []value }
	// function is a function of the template's environment, or a method.
	function struct {
		name string
		call func(r *run, a args) value
	}
	cycler struct {
		items []value
		pos   int
	}
	joiner struct {
		separator string
		used      bool
	}
)

// The number of bytes that values are assumed to take.
const (
	itemBytes  = 16
	pairBytes  = 96
	valueBytes = 48
)

func (r *run) newList(items []value) *list { return &list{items: items} }

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

type tupleKey string

// dictKey returns the same key for values that are equal as keys.
func (r *run) dictKey(v value) any {
	switch v := v.(type) {
	case string:
		r.step(len(v) / 64)
		return v
	case markup:
		r.step(len(v) / 64)
		return string(v)
	case bool:
		return integer(v)
	case float64:
		if i := int64(v); float64(i) == v && math.Abs(v) < 1<<53 {
			return i
		}
		return v
	case *undefined:
		return undefined{}
	case *list:
		if !v.tuple {
			break
		}
		var b strings.Builder
		for _, x := range v.items {
			r.nested(func() {
				switch k := r.dictKey(x).(type) {
				case string:
					r.alloc(1, len(k))
					fmt.Fprintf(&b, "%q,", k)
				case tupleKey:
					r.alloc(1, len(k))
					b.WriteString("(" + string(k) + "),")
				case int64, float64:
					fmt.Fprintf(&b, "%v,", k)
				case none, undefined:
					fmt.Fprintf(&b, "%T,", k)
				default:
					fmt.Fprintf(&b, "%p,", k)
				}
			})
		}
		return tupleKey(b.String())
	case *dict:
	case *view:
	case *numbers:
		r.fail("a range as a key is not supported")
	default:
		return v // numbers and none; every other value is its own key
	}
	r.fail("unhashable type: %q", typeName(v))
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
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *dict:
		return "dict"
	case *namespace:
		return "Namespace"
	case *numbers:
		return "range"
	case *view:
		return v.name
	case *generator:
		return "generator"
	case *function:
		return "function"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	case *joiner:
		return "Joiner"
	}
	return fmt.Sprintf("%T", v)
}

// objectName returns what Jinja calls a value in messages.
func objectName(v value) string {
	switch v.(type) {
	case none:
		return "None"
	case *undefined:
		return "Undefined"
	case *namespace, *macro, *loop, *cycler, *joiner:
		return "jinja2 object"
	}
	return typeName(v) + " object"
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
	case *view:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	case *numbers:
		return v.n > 0
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

// stringOf returns v as a string. ok is false if it is none.
func stringOf(v value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
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
	case markup:
		return r.runes(string(v)), true
	case *list:
		return len(v.items), true
	case *view:
		return len(v.items), true
	case *dict:
		return len(v.keys), true
	case *numbers:
		return v.n, true
	case *undefined:
		return 0, true
	}
	return 0, false
}

// iterator returns one element after the other.
type iterator func() (value, bool)

func overItems(items []value) iterator {
	return func() (value, bool) {
		if len(items) == 0 {
			return nil, false
		}
		v := items[0]
		items = items[1:]
		return v, true
	}
}

// iterate is Python's iter(v). It returns nil if v cannot be iterated.
func (r *run) iterate(v value) iterator {
	switch v := v.(type) {
	case *list:
		return overItems(v.items)
	case *view:
		return overItems(v.items)
	case *dict:
		return overItems(v.keys)
	case *undefined:
		return overItems(nil)
	case string:
		return r.overString(v)
	case markup:
		return r.overString(string(v))
	case *numbers:
		i := 0
		return func() (value, bool) {
			if i == v.n {
				return nil, false
			}
			i++
			return v.at(i - 1), true
		}
	case *generator:
		return func() (value, bool) {
			if len(v.items) == 0 {
				return nil, false
			}
			x := v.items[0]
			v.items = v.items[1:]
			return x, true
		}
	}
	return nil
}

func (r *run) overString(s string) iterator {
	return func() (value, bool) {
		if s == "" {
			return nil, false
		}
		_, n := utf8.DecodeRuneInString(s)
		c := s[:n]
		s = s[n:]
		return c, true
	}
}

func (n *numbers) at(i int) int64 { return n.start + int64(i)*n.step }

// items is Python's list(v). The caller must not change the slice.
func (r *run) items(v value) []value {
	switch v := v.(type) {
	case *list:
		return v.items
	case *view:
		return v.items
	case *dict:
		return v.keys
	}
	next := r.iterate(v)
	if next == nil {
		r.fail("%q object is not iterable", typeName(v))
	}
	n, _ := r.length(v)
	if g, ok := v.(*generator); ok {
		n = len(g.items)
	}
	out := r.room(n)
	for x, ok := next(); ok; x, ok = next() {
		r.step(1)
		out = append(out, x)
	}
	return out
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
	case markup:
		p.write("Markup(")
		p.quote(string(v))
		p.write(")")
	case *undefined:
		p.write("Undefined")
	case *list:
		p.list(v)
	case *view:
		p.write(v.name + "(")
		p.list(&v.list)
		p.write(")")
	case *dict:
		p.dict(v)
	case *namespace:
		p.write("<Namespace ")
		p.dict(&v.dict)
		p.write(">")
	case *numbers:
		p.write(fmt.Sprintf("range(%d, %d", v.start, v.stop))
		if v.step != 1 {
			p.write(fmt.Sprintf(", %d", v.step))
		}
		p.write(")")
	case *macro:
		p.write("<Macro ")
		p.quote(v.name)
		p.write(">")
	default:
		// Python would print an address here.
		p.fail("a %s cannot be printed", typeName(v))
	}
}

func (p *printer) list(l *list) {
	open, close := "[", "]"
	if l.tuple {
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

// floatText is Python's repr of a float.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
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
