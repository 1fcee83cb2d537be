package chat

import (
	"math"
	"strings"
)

// attribute returns v.name as Jinja's sandbox evaluates it: Python's attribute of that name or, if there is none,
// v[name], or else undefined.
func (r *run) attribute(v value, name string) value {
	if !dunder(name) {
		r.refuse(v)
	}
	if f, known := r.member(v, name); known {
		return f
	}
	if d, ok := v.(*dict); ok {
		if x, ok := d.has(name); ok {
			return x
		}
	}
	return r.missing(v, name)
}

func (r *run) missing(v value, name string) value {
	return r.undefined("'%s' has no attribute %q", objectName(v), name)
}

// dunder reports whether a name is one of those that Python reserves on all values, such as __class__.
func dunder(name string) bool {
	return strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

// member returns Python's attribute v.name.
func (r *run) member(v value, name string) (value, bool) {
	if dunder(name) {
		return r.unsafe(v, name), true
	}
	var methods map[string]method
	switch v := v.(type) {
	case string, markup:
		methods = stringMethods
	case *dict:
		methods = dictMethods
		if strings.Contains(" clear pop popitem setdefault update ", " "+name+" ") {
			return r.unsafe(v, name), true
		}
	case *list:
		methods = listMethods
		if v.group && name == "grouper" {
			return v.items[0], true
		}
		if v.group && name == "list" {
			return v.items[1], true
		}
		if !v.tuple && strings.Contains(" append clear extend insert pop remove reverse sort ", " "+name+" ") {
			return r.unsafe(v, name), true
		}
	case *namespace:
		return v.has(name)
	case *loop:
		x := r.loopAttribute(v, name)
		return x, x != nil
	case *macro:
		switch name {
		case "name":
			return v.name, true
		case "arguments":
			items := r.room(len(v.names))
			for _, n := range v.names {
				items = append(items, n)
			}
			return &list{items: items}, true
		}
	case *cycler:
		switch name {
		case "current":
			return v.items[v.pos], true
		case "next":
			return &function{name, func(r *run, a args) value {
				r.noArguments(name, a)
				x := v.items[v.pos]
				v.pos = (v.pos + 1) % len(v.items)
				return x
			}}, true
		case "reset":
			return &function{name, func(r *run, a args) value {
				r.noArguments(name, a)
				v.pos = 0
				return none{}
			}}, true
		}
	}
	m, ok := methods[name]
	if !ok {
		if unsupported[typeName(v)+"."+name] {
			r.fail("%s of a %s is not supported", name, typeName(v))
		}
		return nil, false
	}
	if _, safe := v.(markup); safe && !strings.Contains(" strip lstrip rstrip startswith endswith find index count ", " "+name+" ") {
		r.fail("the method %s of escaped text is not supported", name)
	}
	r.alloc(1, valueBytes)
	return &function{name, func(r *run, a args) value { return m(r, v, a) }}, true
}

func (r *run) unsafe(v value, name string) value {
	return r.undefined("access to attribute %q of %q object is unsafe", name, typeName(v))
}

// item returns v[key].
func (r *run) item(v, key value) value {
	r.refuse(v)
	if d, ok := v.(*dict); ok {
		// A value that cannot be a key is not in the mapping.
		switch k := key.(type) {
		case *dict, *view:
		case *list:
			if k.tuple {
				if x, ok := r.get(d, key); ok {
					return x
				}
			}
		default:
			if x, ok := r.get(d, key); ok {
				return x
			}
		}
	} else if i, ok := whole(key); ok {
		if x, ok := r.at(v, i); ok {
			return x
		}
	}
	if name, ok := stringOf(key); ok {
		if x, known := r.member(v, name); known {
			return x
		}
		return r.missing(v, name)
	}
	return r.undefined("%s has no element %s", objectName(v), r.repr(key))
}

// at returns v[i] for a sequence.
func (r *run) at(v value, i int64) (value, bool) {
	n, ok := r.length(v)
	if !ok {
		return nil, false
	}
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return nil, false
	}
	switch v := v.(type) {
	case string:
		return r.character(v, n, int(i)), true
	case markup:
		return markup(r.character(string(v), n, int(i))), true
	case *list:
		return v.items[i], true
	case *numbers:
		return v.at(int(i)), true
	}
	return nil, false
}

// character returns the i-th of n code points.
func (r *run) character(s string, n, i int) string {
	r.alloc(1, itemBytes)
	if n == len(s) {
		return s[i : i+1]
	}
	from := r.offset(s, i)
	return s[from : from+r.offset(s[from:], 1)]
}

// offset returns the byte at which the i-th code point begins.
func (r *run) offset(s string, i int) int {
	r.step(i / 16)
	for at := range s {
		if i == 0 {
			return at
		}
		i--
	}
	return len(s)
}

// slice is v[start:stop:step]. In Jinja, unlike a missing item, an impossible slice is
// an error.
func (r *run) slice(v value, parts [3]value) value {
	r.refuse(v)
	switch v.(type) {
	case string, markup, *list, *numbers:
	default:
		r.fail("%q object cannot be sliced", typeName(v))
	}
	n, _ := r.length(v)
	for _, p := range parts {
		if _, ok := whole(p); !ok {
			if _, ok := p.(none); !ok {
				r.refuse(p)
				r.fail("slice indices must be integers or None, not %q", typeName(p))
			}
		}
	}
	start, stop, step, count := r.indices(parts, n)
	switch v := v.(type) {
	case string:
		return r.substring(v, n, start, step, count)
	case markup:
		return markup(r.substring(string(v), n, start, step, count))
	case *numbers:
		// indices limits the step to n+1, but the printed range must have the original one.
		by, ok := whole(parts[2])
		if !ok {
			by = 1
		}
		return &numbers{v.at(start), v.at(stop), r.multiply(v.step, by), count}
	case *list:
		if step == 1 {
			r.alloc(1, valueBytes)
			return &list{items: v.items[start : start+count : start+count], tuple: v.tuple}
		}
		items := r.room(count)
		for i := range count {
			items = append(items, v.items[start+i*step])
		}
		return &list{items: items, tuple: v.tuple}
	}
	return nil
}

// indices is Python's slice.indices: where to start and to stop within n elements, the
// step, and the number of elements selected.
func (r *run) indices(parts [3]value, n int) (start, stop, step, count int) {
	step = 1
	if s, ok := whole(parts[2]); ok {
		if s == 0 {
			r.fail("slice step cannot be zero")
		}
		step = int(max(min(s, int64(n)+1), -int64(n)-1)) // a greater step makes no difference
	}
	bound := func(v value, absent int) int {
		i, ok := whole(v)
		if !ok {
			return absent
		}
		if i < 0 {
			if i += int64(n); i < 0 {
				if step < 0 {
					return -1
				}
				return 0
			}
		}
		if i >= int64(n) {
			if step < 0 {
				return n - 1
			}
			return n
		}
		return int(i)
	}
	if step > 0 {
		start, stop = bound(parts[0], 0), bound(parts[1], n)
		if start < stop {
			return start, stop, step, (stop-start-1)/step + 1
		}
	} else {
		start, stop = bound(parts[0], n-1), bound(parts[1], -1)
		if stop < start {
			return start, stop, step, (start-stop-1)/-step + 1
		}
	}
	return start, stop, step, 0
}

func (r *run) substring(s string, n, start, step, count int) string {
	if count == 0 {
		return ""
	}
	if n == len(s) && step == 1 {
		r.alloc(1, itemBytes)
		return s[start : start+count]
	}
	if step == 1 {
		from := r.offset(s, start)
		r.alloc(1, itemBytes)
		return s[from : from+r.offset(s[from:], count)]
	}
	r.alloc(n, 4)
	runes := []rune(s)
	r.alloc(count, 8)
	out := make([]rune, count)
	for i := range out {
		out[i] = runes[start+i*step]
	}
	return string(out)
}

// rangeOf is Python's range, with at most maxRange elements.
func (r *run) rangeOf(start, stop, step int64) value {
	if step == 0 {
		r.fail("range() arg 3 must not be zero")
	}
	n := uint64(0)
	switch {
	case step > 0 && start < stop:
		n = (uint64(stop)-uint64(start)-1)/uint64(step) + 1
	case step < 0 && start > stop:
		n = (uint64(start)-uint64(stop)-1)/magnitude(step) + 1
	}
	if n > maxRange {
		r.fail("range of more than %d elements", maxRange)
	}
	if n > 1 && (magnitude(step) > math.MaxInt64/(2*maxRange)) {
		r.overflow()
	}
	r.alloc(1, valueBytes)
	return &numbers{start, stop, step, int(n)}
}
