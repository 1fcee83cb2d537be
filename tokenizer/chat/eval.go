package chat

import "fmt"

// run is one rendering.
type run struct {
	*budget
	options    Options
	line       int // the line of the statement or call that is being evaluated
	frames     int // nesting of eval, exec and calls
	macros     int // nesting of macro calls
	valueDepth int // nesting of the values that are being walked
	scope      *scope
	out        []byte
}

// fail ends the rendering.
func (r *run) fail(format string, args ...any) {
	panic(&Error{Line: r.line, Reason: fmt.Sprintf(format, args...)})
}

// enter is called before, and leave after, every recursion of the evaluator.
func (r *run) enter() {
	r.step(1)
	if r.frames++; r.frames > maxFrames {
		r.fail("it is nested deeper than %d while it runs", maxFrames)
	}
}

func (r *run) leave() { r.frames-- }

// scope is where names are looked up: a loop's body, a macro's, the template.
type scope struct {
	names  []string
	values []value
	index  map[string]int // used in place of a search if there are many names
	parent *scope
}

const scopeSearch = 8 // up to so many names, searching is faster than hashing

func (s *scope) find(name string) int {
	if s.index != nil {
		if i, ok := s.index[name]; ok {
			return i
		}
		return -1
	}
	for i, n := range s.names {
		if n == name {
			return i
		}
	}
	return -1
}

func (s *scope) get(name string) (value, bool) {
	for ; s != nil; s = s.parent {
		if i := s.find(name); i >= 0 {
			return s.values[i], true
		}
	}
	return nil, false
}

func (r *run) assign(name string, v value) {
	s := r.scope
	if i := s.find(name); i >= 0 {
		s.values[i] = v
		return
	}
	r.alloc(1, pairBytes)
	s.names, s.values = append(s.names, name), append(s.values, v)
	switch {
	case s.index != nil:
		s.index[name] = len(s.names) - 1
	case len(s.names) > scopeSearch:
		s.index = map[string]int{}
		for i, n := range s.names {
			s.index[n] = i
		}
	}
}

// within runs f in a new scope inside parent.
func (r *run) within(parent *scope, f func()) {
	r.alloc(1, valueBytes)
	outer := r.scope
	r.scope = &scope{parent: parent}
	f()
	r.scope = outer
}

func (r *run) eval(x expr) value {
	switch x := x.(type) { // the expressions that contain no other ones
	case *literal:
		r.step(1)
		return x.value
	case *name:
		r.step(1)
		if v, ok := r.scope.get(x.name); ok {
			return v
		}
		if v, ok := globals[x.name]; ok {
			return v
		}
		return r.undefined("%q is undefined", x.name)
	}
	r.enter()
	defer r.leave()
	switch x := x.(type) {
	case *listExpr:
		items := r.room(len(x.items))
		for _, i := range x.items {
			items = append(items, r.eval(i))
		}
		return &list{items: items, tuple: x.tuple}
	case *dictExpr:
		d := r.newDict()
		for i, k := range x.keys {
			key := r.eval(k)
			r.put(d, key, r.eval(x.values[i]))
		}
		return d
	case *arithmetic:
		v := r.eval(x.first)
		for _, o := range x.rest {
			v = r.binary(o.op, v, r.eval(o.right))
		}
		return v
	case *concatenation:
		parts := make([]string, len(x.parts))
		n := itemBytes
		for i, p := range x.parts {
			parts[i] = r.str(r.eval(p))
			n = sum(n, len(parts[i]))
		}
		return r.concat(parts, n)
	case *comparison:
		v := r.eval(x.first)
		for _, o := range x.rest {
			right := r.eval(o.right)
			if !r.compares(o.op, v, right) {
				return false
			}
			v = right
		}
		return true
	case *logic:
		var v value
		for _, p := range x.parts {
			if v = r.eval(p); truth(v) != x.and {
				break
			}
		}
		return v
	case *negation:
		return !truth(r.eval(x.x))
	case *signed:
		return r.sign(x.minus, r.eval(x.x))
	case *conditional:
		switch {
		case truth(r.eval(x.cond)):
			return r.eval(x.then)
		case x.otherwise != nil:
			return r.eval(x.otherwise)
		}
		return r.undefined("the inline if-expression evaluated to false and no else section was defined")
	case *postfix:
		v := r.eval(x.base)
		for i := range x.ops {
			v = r.postfix(v, &x.ops[i], nil)
		}
		return v
	}
	panic(fmt.Sprintf("chat: expression %T", x))
}

func (r *run) undefined(format string, args ...any) value {
	r.alloc(1, 2*valueBytes)
	return &undefined{fmt.Sprintf(format, args...)}
}

func (r *run) concat(parts []string, n int) string {
	r.alloc(1, n)
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = append(b, p...)
	}
	return string(b)
}

// postfix applies one subscript, call, filter or test to v. extra is passed as one more
// keyword argument: the caller of a call block.
func (r *run) postfix(v value, op *postfixOp, extra *keywordValue) value {
	line := r.line
	r.line = op.line
	defer func() { r.line = line }()
	r.step(1)
	switch op.kind {
	case attributeOp:
		return r.attribute(v, op.name)
	case itemOp:
		return r.item(v, r.eval(op.index))
	case sliceOp:
		var parts [3]value
		for i, p := range op.slice {
			parts[i] = none{}
			if p != nil {
				parts[i] = r.eval(p)
			}
		}
		return r.slice(v, parts)
	}
	a := r.arguments(&op.args)
	switch op.kind {
	case callOp:
		if extra != nil {
			a.keywords = append(a.keywords, *extra)
		}
		return r.call(v, a)
	case filterOp:
		return r.filter(op.name, v, a)
	}
	return r.test(op.name, v, a) != op.negated
}

// args are evaluated arguments.
type args struct {
	positional []value
	keywords   []keywordValue
}

type keywordValue struct {
	name  string
	value value
}

func (r *run) arguments(x *arguments) (a args) {
	if len(x.positional) > 0 {
		a.positional = r.room(len(x.positional))
	}
	for _, p := range x.positional {
		a.positional = append(a.positional, r.eval(p))
	}
	if x.star != nil {
		more := r.items(r.eval(x.star))
		all := r.room(len(a.positional) + len(more))
		a.positional = append(append(all, a.positional...), more...)
	}
	for _, k := range x.keywords {
		r.alloc(1, valueBytes)
		a.keywords = append(a.keywords, keywordValue{k.name, r.eval(k.value)})
	}
	if x.starStar != nil {
		d, ok := r.eval(x.starStar).(*dict)
		if !ok || len(d.keys) > maxDepth {
			r.fail("what follows ** must be a mapping of at most %d names", maxDepth)
		}
		for i, k := range d.keys {
			n, ok := stringOf(k)
			if !ok {
				r.fail("keywords must be strings")
			}
			for _, have := range a.keywords {
				if have.name == n {
					r.fail("got multiple values for keyword argument %q", n)
				}
			}
			a.keywords = append(a.keywords, keywordValue{n, d.values[i]})
		}
	}
	return a
}

// bind assigns arguments to the parameters named, with nil for absent ones. The first
// `required` ones must be given; the first `unnamed` ones cannot be given by name.
func (r *run) bind(what string, a args, required, unnamed int, names ...string) []value {
	out := make([]value, len(names))
	if len(a.positional) > len(names) {
		r.fail("%s got %d arguments, it takes at most %d", what, len(a.positional), len(names))
	}
	copy(out, a.positional)
	for _, k := range a.keywords {
		at := -1
		for i, n := range names {
			if n == k.name && i >= unnamed {
				at = i
			}
		}
		if at < 0 || out[at] != nil {
			r.fail("%s: the argument %q is unknown, or given twice", what, k.name)
		}
		out[at] = k.value
	}
	for i := range required {
		if out[i] == nil {
			r.fail("%s wants the argument %q", what, names[i])
		}
	}
	return out
}

// noArguments fails if there are any arguments.
func (r *run) noArguments(what string, a args) { r.bind(what, a, 0, 0) }

func (r *run) call(f value, a args) value {
	r.enter()
	defer r.leave()
	switch f := f.(type) {
	case *function:
		return f.call(r, a)
	case *macro:
		return r.callMacro(f, a)
	case *loop:
		return r.recurse(f, a)
	case *joiner:
		r.noArguments("a joiner", a)
		if f.used {
			return f.separator
		}
		f.used = true
		return ""
	}
	r.refuse(f)
	r.fail("%q object is not callable", typeName(f))
	return nil
}
