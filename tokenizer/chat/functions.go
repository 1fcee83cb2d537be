package chat

import (
	"strings"
	"time"
)

// globals are the functions that every template can call.
var globals map[string]value

func init() { // assigned here, because they call what looks them up, and Go forbids such cycles between variables
	globals = map[string]value{}
	for name, call := range map[string]func(*run, args) value{
		"range":     rangeFunction,
		"dict":      func(r *run, a args) value { return r.named("dict", a) },
		"namespace": func(r *run, a args) value { return &namespace{*r.named("namespace", a)} },
		"raise_exception": func(r *run, a args) value {
			r.fail("%s", r.str(r.bind("raise_exception", a, 1, 0, "message")[0]))
			return nil
		},
		"strftime_now": strftimeNow,
	} {
		globals[name] = &function{name, call}
	}
}

// rangeFunction is Python's range, with at most maxRange elements.
func rangeFunction(r *run, a args) value {
	n := [3]int64{0, 0, 1}
	for i, v := range r.bind("range", a, 1, 3, "start", "stop", "step") {
		if v == nil {
			break
		}
		r.refuse(v)
		w, ok := whole(v)
		if !ok {
			r.fail("%q object cannot be interpreted as an integer", typeName(v))
		}
		if w > 1<<62 || w < -1<<62 {
			r.fail("range with numbers beyond 62 bits is not supported")
		}
		n[i] = w
	}
	if len(a.positional) == 1 {
		n[0], n[1] = 0, n[0]
	}
	start, stop, step := n[0], n[1], n[2]
	if step == 0 {
		r.fail("range() arg 3 must not be zero")
	}
	count := int64(0)
	if step > 0 && start < stop {
		count = (stop-start-1)/step + 1
	} else if step < 0 && start > stop {
		count = (start-stop-1)/-step + 1
	}
	if count > maxRange {
		r.fail("range of more than %d elements", maxRange)
	}
	items := r.room(int(count))
	for i := range count {
		items = append(items, start+i*step)
	}
	return &list{aRange, items}
}

// named returns a dictionary of the arguments, which are given by name.
func (r *run) named(what string, a args) *dict {
	if len(a.positional) > 0 {
		r.fail("%s with arguments that have no names is not supported", what)
	}
	d := r.newDict()
	for _, k := range a.keywords {
		r.put(d, k.name, k.value)
	}
	return d
}

// layouts translates directives of strftime to Go's layouts, for the C locale. %-d is %d without padding.
var layouts = map[string]string{
	"a": "Mon", "A": "Monday", "b": "Jan", "B": "January", "d": "02", "-d": "2", "m": "01", "-m": "1", "y": "06", "Y": "2006",
	"H": "15", "I": "03", "-I": "3", "M": "04", "S": "05", "p": "PM",
}

func strftimeNow(r *run, a args) value {
	format := r.text("strftime_now", r.bind("strftime_now", a, 1, 0, "format")[0])
	now := r.options.Now
	if now.IsZero() {
		now = time.Now()
	}
	r.alloc(len(format)+1, 8) // %B makes up to 9 bytes of two
	var b strings.Builder
	for format != "" {
		text, directive, ok := strings.Cut(format, "%")
		b.WriteString(text)
		if !ok {
			break
		}
		name := directive[:min(1, len(directive))]
		if name == "-" {
			name = directive[:min(2, len(directive))]
		}
		if layout, known := layouts[name]; known {
			b.WriteString(now.Format(layout))
		} else if name == "%" {
			b.WriteByte('%')
		} else {
			r.fail("strftime_now: the directive %q is not supported", "%"+name)
		}
		format = directive[len(name):]
	}
	return b.String()
}
