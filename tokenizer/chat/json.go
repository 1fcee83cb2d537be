package chat

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// toJSON is the filter tojson as transformers define it: Python's json.dumps
// with ensure_ascii=False, so nothing is escaped for HTML, ", " and ": "
// separate, and keys stay in order.
func toJSON(r *run, v value, a args) value {
	if len(a.positional) > 0 {
		// Jinja takes indent first, transformers ensure_ascii.
		r.fail("tojson takes its arguments by name")
	}
	o := r.bind("tojson", a, 0, 0, "indent", "ensure_ascii")
	j := jsonWriter{printer: printer{run: r}, indent: -1, comma: ", "}
	if present(o[0]) {
		n, ok := whole(o[0])
		if !ok || n > 16 {
			r.fail("tojson: indent must be a whole number of at most 16")
		}
		j.indent, j.comma = int(max(n, 0)), ","
	}
	if flag(o[1]) {
		r.fail("tojson with ensure_ascii=true is not supported")
	}
	j.value(v, 0)
	return j.String()
}

type jsonWriter struct {
	printer
	indent int // columns per level; negative: all in one line
	comma  string
}

func (j *jsonWriter) value(v value, depth int) {
	j.step(1)
	switch v := v.(type) {
	case none:
		j.write("null")
	case bool:
		j.write(fmt.Sprint(v))
	case int64, float64:
		j.repr(v)
	case string:
		j.text(v)
	case *list:
		if v.kind > aTuple {
			j.fail("tojson: object of type %s is not JSON serializable", typeName(v))
		}
		j.items("[", "]", len(v.items), depth, func(i int) { j.value(v.items[i], depth+1) })
	case *dict:
		j.items("{", "}", len(v.keys), depth, func(i int) {
			j.key(v.keys[i])
			j.write(": ")
			j.value(v.values[i], depth+1)
		})
	default:
		j.fail("tojson: object of type %s is not JSON serializable", typeName(v))
	}
}

func (j *jsonWriter) key(k value) {
	switch k := k.(type) {
	case string:
		j.text(k)
	case int64:
		j.write(fmt.Sprintf(`"%d"`, k))
	case bool:
		j.write(fmt.Sprintf(`"%v"`, k))
	case none:
		j.write(`"null"`)
	default:
		j.fail("tojson: keys must be str, int, float, bool or None, not %s", typeName(k))
	}
}

func (j *jsonWriter) items(open, close string, n, depth int, each func(i int)) {
	line := func(depth int) {
		if j.indent >= 0 {
			j.write("\n" + strings.Repeat(" ", depth*j.indent))
		}
	}
	j.write(open)
	j.nested(func() {
		for i := range n {
			if i > 0 {
				j.write(j.comma)
			}
			line(depth + 1)
			each(i)
		}
	})
	if n > 0 {
		line(depth)
	}
	j.write(close)
}

func (j *jsonWriter) text(s string) {
	j.alloc(1, sum(len(s), 2))
	j.WriteByte('"')
	from := 0
	for i, c := range s {
		n := utf8.RuneLen(c)
		if c == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			n = 1 // not UTF-8: U+FFFD takes the place of the byte
		} else if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		j.WriteString(s[from:i])
		from = i + n
		if at := strings.IndexRune("\b\f\n\r\t\"\\", c); at >= 0 {
			j.write(`\` + `bfnrt"\`[at:at+1])
		} else if c == utf8.RuneError {
			j.write("\uFFFD")
		} else {
			j.write(fmt.Sprintf(`\u%04x`, c))
		}
	}
	j.WriteString(s[from:])
	j.WriteByte('"')
}
