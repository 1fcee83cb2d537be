package chat

import "strings"

// attribute returns v.name as Jinja's sandbox evaluates it: Python's attribute of that name or, if there is none,
// v[name], or else undefined.
func (r *run) attribute(v value, name string) value {
	r.refuse(v)
	if f, known := r.member(v, name); known {
		return f
	}
	if d, ok := v.(*dict); ok {
		if i, ok := d.index[name]; ok {
			return d.values[i]
		}
	}
	return r.missing(v, name)
}

func (r *run) missing(v value, name string) value {
	return r.undefined("'%s object' has no attribute %q", typeName(v), name)
}

// member returns Python's attribute v.name.
func (r *run) member(v value, name string) (value, bool) {
	kind := typeName(v)
	switch v := v.(type) {
	case *namespace:
		x, ok := v.index[name]
		if !ok {
			return nil, false
		}
		return v.values[x], true
	case *loop:
		x := r.loopAttribute(v, name)
		return x, x != nil
	}
	if m, ok := methods[kind+"."+name]; ok {
		r.alloc(1, valueBytes)
		return &function{name, func(r *run, a args) value { return m(r, v, a) }}, true
	}
	if in(name, lacking[kind]) || strings.HasPrefix(name, "__") {
		r.fail("%s of a %s is not supported", name, kind)
	}
	return nil, false
}

// in reports whether a word is one of those in a list with spaces between them.
func in(word, list string) bool { return strings.Contains(" "+list+" ", " "+word+" ") }

// item returns v[key].
func (r *run) item(v, key value) value {
	r.refuse(v)
	if d, ok := v.(*dict); ok {
		if x, ok := d.index[r.dictKey(key)]; ok {
			return d.values[x]
		}
	} else if i, ok := whole(key); ok {
		if x, ok := r.at(v, i); ok {
			return x
		}
	}
	if name, ok := key.(string); ok {
		if x, known := r.member(v, name); known {
			return x
		}
		return r.missing(v, name)
	}
	return r.undefined("%s object has no element %s", typeName(v), r.repr(key))
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
	case *list:
		return v.items[i], v.kind != aView
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
	l, isList := v.(*list)
	s, isText := v.(string)
	if !isText && (!isList || l.kind > aTuple) {
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
	start, step, count := r.indices(parts, n)
	if isText {
		return r.substring(s, n, start, step, count)
	}
	if step == 1 {
		r.alloc(1, valueBytes)
		return &list{l.kind, l.items[start : start+count : start+count]}
	}
	items := r.room(count)
	for i := range count {
		items = append(items, l.items[start+i*step])
	}
	return &list{l.kind, items}
}

// indices is Python's slice.indices: where to start within n elements, the step, and the number of
// elements selected.
func (r *run) indices(parts [3]value, n int) (start, step, count int) {
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
	stop := 0
	if step > 0 {
		start, stop = bound(parts[0], 0), bound(parts[1], n)
		if start < stop {
			return start, step, (stop-start-1)/step + 1
		}
	} else {
		start, stop = bound(parts[0], n-1), bound(parts[1], -1)
		if stop < start {
			return start, step, (start-stop-1)/-step + 1
		}
	}
	return start, step, 0
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
