package chat

import "fmt"

func (r *run) body(body []stmt) outcome {
	for _, s := range body {
		if o := r.exec(s); o != ran {
			return o
		}
	}
	return ran
}

func (r *run) exec(s stmt) outcome {
	r.enter()
	defer r.leave()
	switch s := s.(type) {
	case *text:
		r.write(s.text)
	case *output:
		r.line = s.line
		r.write(r.str(r.eval(s.x)))
	case *ifStmt:
		for i := range s.branches {
			b := &s.branches[i]
			r.line = b.line
			if truth(r.eval(b.cond)) {
				return r.body(b.body)
			}
		}
		return r.body(s.otherwise)
	case *forStmt:
		r.line = s.line
		r.loop(s, r.eval(s.over), nil)
	case *setStmt:
		r.line = s.line
		r.store(&s.target, r.eval(s.value))
	case *setBlock:
		var o outcome
		v := r.captured(s.line, s.filters, func() {
			r.within(r.scope, func() { o = r.body(s.body) })
		})
		if o != ran {
			return o
		}
		r.store(&s.target, v)
	case *withStmt:
		r.line = s.line
		var o outcome
		values := make([]value, len(s.values))
		for i, x := range s.values {
			values[i] = r.eval(x)
		}
		r.within(r.scope, func() {
			for i := range s.targets {
				r.store(&s.targets[i], values[i])
			}
			o = r.body(s.body)
		})
		return o
	case *filterBlock:
		var o outcome
		v := r.captured(s.line, s.filters, func() {
			r.within(r.scope, func() { o = r.body(s.body) })
		})
		if o != ran {
			return o
		}
		r.write(r.str(v))
	case *macroStmt:
		r.line = s.line
		r.alloc(1, 2*valueBytes)
		r.assign(s.name, &macro{s.signature, r.scope})
	case *callBlock:
		r.line = s.line
		r.alloc(1, 2*valueBytes)
		v := r.eval(s.call.base)
		last := len(s.call.ops) - 1
		for i := range s.call.ops[:last] {
			v = r.postfix(v, &s.call.ops[i], nil)
		}
		v = r.postfix(v, &s.call.ops[last], &keywordValue{"caller", &macro{s.caller, r.scope}})
		r.write(r.str(v))
	case *scopedBlock:
		var o outcome
		r.within(r.scope, func() { o = r.body(s.body) })
		return o
	case *jump:
		return s.outcome
	default:
		panic(fmt.Sprintf("chat: statement %T", s))
	}
	return ran
}

// write appends to the output, or to the text that is being captured.
func (r *run) write(s string) {
	if len(r.out)+len(s) > maxOutput {
		r.exceeded(fmt.Sprintf("the output is larger than %d MiB", maxOutput>>20))
	}
	r.alloc(1, len(s))
	r.out = append(r.out, s...)
}

// captured returns what f writes, after the filters.
func (r *run) captured(line int, filters []postfixOp, f func()) value {
	s := r.capture(f)
	r.line = line
	var v value = s
	for i := range filters {
		v = r.postfix(v, &filters[i], nil)
	}
	return v
}

func (r *run) capture(f func()) string {
	outer := r.out
	r.out = nil
	f()
	r.alloc(1, len(r.out)+itemBytes)
	s := string(r.out)
	r.out = outer
	return s
}

// store assigns to a name, to an attribute of a namespace, or to several targets.
func (r *run) store(t *target, v value) {
	switch {
	case t.isTuple:
		items := r.items(v)
		if len(items) != len(t.tuple) {
			r.fail("%d values cannot be assigned to %d names", len(items), len(t.tuple))
		}
		for i := range t.tuple {
			r.store(&t.tuple[i], items[i])
		}
	case t.attribute != "":
		ns, _ := r.scope.get(t.name)
		n, ok := ns.(*namespace)
		if !ok {
			r.fail("cannot assign attribute on non-namespace object")
		}
		r.put(&n.dict, t.attribute, v)
	default:
		r.assign(t.name, v)
	}
}

// loop is the variable named loop in a for.
type loop struct {
	stmt   *forStmt
	scope  *scope // the scope around the loop
	next   iterator
	peeked []value // already taken from next
	length int     // −1 if it is not known yet
	index0 int
	depth0 int

	current, before value
	changed         []value
}

// take returns the next element for which the loop's condition holds.
func (r *run) take(l *loop) (value, bool) {
	if len(l.peeked) > 0 {
		v := l.peeked[0]
		l.peeked = l.peeked[1:]
		return v, true
	}
	return r.pull(l)
}

func (r *run) pull(l *loop) (value, bool) {
	for v, ok := l.next(); ok; v, ok = l.next() {
		r.step(1)
		if l.stmt.cond == nil {
			return v, true
		}
		pass := false
		r.within(l.scope, func() {
			r.store(&l.stmt.target, v)
			pass = truth(r.eval(l.stmt.cond))
		})
		if pass {
			return v, true
		}
	}
	return nil, false
}

// peek returns the element after the current one.
func (r *run) peek(l *loop) (value, bool) {
	if len(l.peeked) == 0 {
		v, ok := r.pull(l)
		if !ok {
			return nil, false
		}
		l.peeked = append(l.peeked, v)
	}
	return l.peeked[0], true
}

// count is loop.length, for which all elements must be taken.
func (r *run) count(l *loop) int {
	if l.length < 0 {
		for v, ok := r.pull(l); ok; v, ok = r.pull(l) {
			r.alloc(1, itemBytes)
			l.peeked = append(l.peeked, v)
		}
		l.length = l.index0 + 1 + len(l.peeked)
	}
	return l.length
}

func (r *run) loop(s *forStmt, over value, outer *loop) {
	next := r.iterate(over)
	if next == nil {
		r.fail("%q object is not iterable", typeName(over))
	}
	r.alloc(1, 4*valueBytes)
	l := &loop{stmt: s, scope: r.scope, next: next, length: -1, index0: -1}
	if outer != nil {
		l.scope, l.depth0 = outer.scope, outer.depth0+1
	}
	if n, ok := r.length(over); ok && s.cond == nil {
		l.length = n
	}
	// In Jinja, the else of a loop runs unless some iteration was completed.
	ended := false
	for v, ok := r.take(l); ok; v, ok = r.take(l) {
		l.index0++
		l.before, l.current = l.current, v
		var o outcome
		r.within(l.scope, func() {
			r.assign("loop", l)
			r.store(&s.target, v)
			o = r.body(s.body)
		})
		if o == broke {
			break
		}
		ended = ended || o == ran
	}
	if !ended {
		r.within(l.scope, func() { r.body(s.otherwise) })
	}
}

// recurse is loop(items) in a loop marked as recursive.
func (r *run) recurse(l *loop, a args) value {
	if !l.stmt.recursive {
		r.fail("the loop must have the 'recursive' marker to be called")
	}
	over := r.bind("loop", a, 1, 0, "iterable")[0]
	r.deeper("a recursive loop")
	defer func() { r.macros-- }()
	return r.capture(func() { r.loop(l.stmt, over, l) })
}

// deeper counts nested macro calls and recursive loops.
func (r *run) deeper(what string) {
	if r.macros++; r.macros > maxDepth {
		r.fail("%s calls itself more than %d deep", what, maxDepth)
	}
}

// loopAttribute returns loop.name, or nil if there is none.
func (r *run) loopAttribute(l *loop, name string) value {
	switch name {
	case "index":
		return int64(l.index0 + 1)
	case "index0":
		return int64(l.index0)
	case "revindex":
		return int64(r.count(l) - l.index0)
	case "revindex0":
		return int64(r.count(l) - l.index0 - 1)
	case "first":
		return l.index0 == 0
	case "last":
		_, more := r.peek(l)
		return !more
	case "length":
		return int64(r.count(l))
	case "depth":
		return int64(l.depth0 + 1)
	case "depth0":
		return int64(l.depth0)
	case "previtem":
		if l.index0 == 0 {
			return r.undefined("there is no previous item")
		}
		return l.before
	case "nextitem":
		if v, ok := r.peek(l); ok {
			return v
		}
		return r.undefined("there is no next item")
	case "cycle":
		return &function{name, func(r *run, a args) value {
			if len(a.positional) == 0 || len(a.keywords) > 0 {
				r.fail("no items for cycling given")
			}
			return a.positional[l.index0%len(a.positional)]
		}}
	case "changed":
		return &function{name, func(r *run, a args) value {
			if l.changed != nil && len(l.changed) == len(a.positional) && r.equalItems(l.changed, a.positional) {
				return false
			}
			l.changed = append([]value{}, a.positional...)
			return true
		}}
	}
	return nil
}

// macro is a macro together with the scope in which it was defined.
type macro struct {
	*signature
	scope *scope
}

func (r *run) callMacro(m *macro, a args) value {
	r.deeper(fmt.Sprintf("macro %q", m.name))
	defer func() { r.macros-- }()
	line := r.line
	defer func() { r.line = line }()
	values := make([]value, len(m.names))
	r.alloc(len(values), itemBytes)
	rest := a.positional[copy(values, a.positional):]
	var kwargs []keywordValue
	for _, k := range a.keywords {
		at := -1
		for i := len(a.positional); i < len(m.names); i++ {
			if m.names[i] == k.name {
				at = i
			}
		}
		if at >= 0 {
			values[at] = k.value
		} else {
			kwargs = append(kwargs, k)
		}
	}
	return r.capture(func() {
		r.within(m.scope, func() {
			if m.caller && !m.has("caller") {
				caller := r.undefined("no caller defined")
				for i, k := range kwargs {
					if k.name == "caller" {
						caller = k.value
						kwargs = append(kwargs[:i:i], kwargs[i+1:]...)
						break
					}
				}
				r.assign("caller", caller)
			}
			if m.kwargs {
				d := r.newDict()
				for _, k := range kwargs {
					r.put(d, k.name, k.value)
				}
				r.assign("kwargs", d)
			} else if len(kwargs) > 0 {
				r.fail("macro %q takes no keyword argument %q", m.name, kwargs[0].name)
			}
			if m.varargs {
				r.assign("varargs", &list{items: rest, tuple: true})
			} else if len(rest) > 0 {
				r.fail("macro %q takes not more than %d argument(s)", m.name, len(m.names))
			}
			for i, n := range m.names {
				v := values[i]
				if v == nil {
					if d := i - (len(m.names) - len(m.defaults)); d >= 0 {
						v = r.eval(m.defaults[d])
					} else {
						v = r.undefined("parameter %q was not provided", n)
					}
				}
				r.assign(n, v)
			}
			r.body(m.body)
		})
	})
}

func (s *signature) has(name string) bool {
	for _, n := range s.names {
		if n == name {
			return true
		}
	}
	return false
}
