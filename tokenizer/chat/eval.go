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
	values map[string]value
	parent *scope
}

func (s *scope) get(name string) (value, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.values[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (r *run) assign(name string, v value) {
	if r.scope.values == nil {
		r.scope.values = map[string]value{}
	}
	r.alloc(1, pairBytes)
	r.scope.values[name] = v
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
		if in(x.name, "caller varargs kwargs self cycler joiner lipsum") { // Jinja has them
			r.fail("the name %q is not supported", x.name)
		}
		return r.undefined("%q is undefined", x.name)
	case *spread:
		r.fail("an argument with * is not supported")
	}
	r.enter()
	defer r.leave()
	switch x := x.(type) {
	case *listExpr:
		items := r.room(len(x.items))
		for _, i := range x.items {
			items = append(items, r.eval(i))
		}
		if x.tuple {
			return &list{aTuple, items}
		}
		return &list{aList, items}
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
			v = r.postfix(v, &x.ops[i])
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

// postfix applies one subscript, call, filter or test to v.
func (r *run) postfix(v value, op *postfixOp) value {
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
	for _, k := range x.keywords {
		r.alloc(1, valueBytes)
		a.keywords = append(a.keywords, keywordValue{k.name, r.eval(k.value)})
	}
	return a
}

// bind assigns arguments to the parameters named, with nil for absent ones. The first
// `required` ones must be given; the first `unnamed` ones cannot be given by name.
func (r *run) bind(what string, a args, required, unnamed int, names ...string) []value {
	out := make([]value, len(names))
	if len(a.positional) > len(names) {
		r.fail("%s with %d arguments is not supported, %d at most", what, len(a.positional), len(names))
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
			r.fail("%s: the argument %q is not supported, or given twice", what, k.name)
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
	}
	r.refuse(f)
	r.fail("%q object is not callable", typeName(f))
	return nil
}
