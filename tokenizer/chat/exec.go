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
		r.loop(s, r.eval(s.over))
	case *setStmt:
		r.line = s.line
		r.store(&s.target, r.eval(s.value))
	case *setBlock:
		var o outcome
		v := r.capture(func() {
			r.within(r.scope, func() { o = r.body(s.body) })
		})
		if o != ran {
			return o
		}
		r.line = s.line
		r.store(&s.target, v)
	case *macroStmt:
		r.line = s.line
		r.alloc(1, 2*valueBytes)
		r.assign(s.name, &macro{s.signature, r.scope})
	case *callBlock:
		r.line = s.line
		r.fail("a call block is not supported")
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
	case t.tuple != nil:
		items := r.items(v)
		if len(items) != len(t.tuple) {
			r.fail("%d values cannot be assigned to %d names", len(items), len(t.tuple))
		}
		for i, n := range t.tuple {
			r.assign(n, items[i])
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
	stmt    *forStmt
	scope   *scope  // the scope around the loop
	rest    []value // not looked at yet
	peeked  []value // that passed the condition before their turn
	length  int     // −1 if it is not known yet
	index0  int
	current value
	before  value
}

// take returns the next element, if any.
func (r *run) take(l *loop) (value, bool) {
	if len(l.peeked) > 0 {
		v := l.peeked[0]
		l.peeked = l.peeked[1:]
		return v, true
	}
	return r.pull(l)
}

// pull returns the next element that passes the loop's condition. As in Jinja, an element is looked
// at when it is needed, because the loop's body may change what the condition depends on.
func (r *run) pull(l *loop) (value, bool) {
	for len(l.rest) > 0 {
		v := l.rest[0]
		l.rest = l.rest[1:]
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

// count is loop.length, for which all elements must be looked at.
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

func (r *run) loop(s *forStmt, over value) {
	r.alloc(1, 4*valueBytes)
	l := &loop{stmt: s, scope: r.scope, rest: r.items(over), length: -1, index0: -1}
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
	case "depth", "depth0", "cycle", "changed":
		r.fail("loop.%s is not supported", name)
	}
	return nil
}

// macro is a macro together with the scope in which it was defined.
type macro struct {
	*signature
	scope *scope
}

func (r *run) callMacro(m *macro, a args) value {
	if r.macros++; r.macros > maxDepth {
		r.fail("macro %q calls itself more than %d deep", m.name, maxDepth)
	}
	line := r.line
	defer func() {
		r.macros--
		r.line = line
	}()
	r.alloc(len(m.names), itemBytes)
	values := r.bind(fmt.Sprintf("macro %q", m.name), a, 0, 0, m.names...)
	return r.capture(func() {
		r.within(m.scope, func() {
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
