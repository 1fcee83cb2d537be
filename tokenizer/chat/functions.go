package chat

import "time"

// method is a method of a value.
type method func(r *run, self value, a args) value

// globals are the functions that every template can call.
var globals map[string]value

func init() { // assigned here, because they call what looks them up, and Go forbids such cycles between variables
	globals = map[string]value{}
	for name, call := range map[string]func(*run, args) value{
		"range":           rangeFunction,
		"dict":            dictFunction,
		"namespace":       namespaceFunction,
		"cycler":          cyclerFunction,
		"joiner":          joinerFunction,
		"raise_exception": raiseException,
		"strftime_now":    strftimeNow,
	} {
		globals[name] = &function{name, call}
	}
}

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
		n[i] = w
	}
	if len(a.positional) == 1 {
		n[0], n[1] = 0, n[0]
	}
	return r.rangeOf(n[0], n[1], n[2])
}

// fill adds a mapping or a list of pairs, and then keyword arguments, to d, as Python's
// dict() does.
func (r *run) fill(d *dict, a args) {
	if len(a.positional) > 1 {
		r.fail("at most one mapping is taken")
	}
	for _, v := range a.positional {
		r.refuse(v)
		if from, ok := v.(*dict); ok {
			for i, k := range from.keys {
				r.step(1)
				r.put(d, k, from.values[i])
			}
			continue
		}
		for _, pair := range r.items(v) {
			p := r.items(pair)
			if len(p) != 2 {
				r.fail("a pair of a key and a value is wanted, got %d elements", len(p))
			}
			r.put(d, p[0], p[1])
		}
	}
	for _, k := range a.keywords {
		r.put(d, k.name, k.value)
	}
}

func dictFunction(r *run, a args) value {
	d := r.newDict()
	r.fill(d, a)
	return d
}

func namespaceFunction(r *run, a args) value {
	n := &namespace{*r.newDict()}
	r.fill(&n.dict, a)
	return n
}

func cyclerFunction(r *run, a args) value {
	if len(a.positional) == 0 || len(a.keywords) > 0 {
		r.fail("at least one item has to be provided")
	}
	r.alloc(1, valueBytes)
	return &cycler{items: a.positional}
}

func joinerFunction(r *run, a args) value {
	v := r.bind("joiner", a, 0, 0, "sep")[0]
	if v == nil {
		v = ", "
	}
	r.alloc(1, valueBytes)
	return &joiner{separator: r.str(v)}
}

func raiseException(r *run, a args) value {
	v := r.bind("raise_exception", a, 1, 0, "message")[0]
	r.fail("%s", r.str(v))
	return nil
}

func strftimeNow(r *run, a args) value {
	format, ok := stringOf(r.bind("strftime_now", a, 1, 0, "format")[0])
	if !ok {
		r.fail("strftime_now wants one format")
	}
	now := r.options.Now
	if now.IsZero() {
		now = time.Now()
	}
	r.alloc(len(format)+1, 16) // no directive makes more: %c makes 24 bytes of two
	s, err := strftime(now, format)
	if err != nil {
		r.fail("%v", err)
	}
	return s
}
