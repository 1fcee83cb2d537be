package chat

// testTable holds the tests that "is" knows, by Jinja's names.
var testTable map[string]func(r *run, v value, a args) bool

func init() { // assigned here, because the filter select looks tests up, and Go forbids such cycles between variables
	is := func(f func(r *run, v value) bool) func(*run, value, args) bool {
		return func(r *run, v value, a args) bool {
			r.noArguments("the test", a)
			return f(r, v)
		}
	}
	with := func(f func(r *run, v, other value) bool) func(*run, value, args) bool {
		return func(r *run, v value, a args) bool {
			return f(r, v, r.bind("the test", a, 1, 1, "other")[0])
		}
	}
	type test = func(r *run, v value) bool
	type test2 = func(r *run, v, other value) bool
	testTable = map[string]func(*run, value, args) bool{}
	for name, f := range map[string]test{
		"defined":   func(_ *run, v value) bool { _, u := v.(*undefined); return !u },
		"undefined": func(_ *run, v value) bool { _, u := v.(*undefined); return u },
		"none":      func(_ *run, v value) bool { return v == none{} },
		"true":      func(_ *run, v value) bool { return v == true },
		"false":     func(_ *run, v value) bool { return v == false },
		"boolean":   func(_ *run, v value) bool { _, ok := v.(bool); return ok },
		"integer":   func(_ *run, v value) bool { _, ok := v.(int64); return ok },
		"float":     func(_ *run, v value) bool { _, ok := v.(float64); return ok },
		"number":    func(_ *run, v value) bool { _, _, k := numberOf(v); return k > 0 },
		"string": func(_ *run, v value) bool {
			k := typeName(v)
			return k == "str" || k == "Markup"
		},
		"mapping": func(_ *run, v value) bool { _, ok := v.(*dict); return ok },
		"iterable": func(r *run, v value) bool {
			return in(typeName(v), "str Markup list tuple range dict generator Undefined LoopContext") || typeName(v) == "dict view"
		},
		// Python asks whether the value has __getitem__, and Jinja's undefined value has.
		"sequence": func(_ *run, v value) bool {
			return in(typeName(v), "str Markup list tuple range dict Undefined")
		},
		"odd":  func(r *run, v value) bool { return r.equal(r.binary("%", v, int64(2)), int64(1)) },
		"even": func(r *run, v value) bool { return r.equal(r.binary("%", v, int64(2)), int64(0)) },
	} {
		testTable[name] = is(f)
	}
	compare := func(op string) test2 {
		return func(r *run, v, other value) bool { return r.compares(op, v, other) }
	}
	for name, f := range map[string]test2{
		"divisibleby": func(r *run, v, other value) bool {
			return r.equal(r.binary("%", v, other), int64(0))
		},
		"in": compare("in"), "==": compare("=="), "eq": compare("=="), "equalto": compare("=="), "!=": compare("!="), "ne": compare("!="),
		">": compare(">"), "gt": compare(">"), "greaterthan": compare(">"), ">=": compare(">="), "ge": compare(">="),
		"<": compare("<"), "lt": compare("<"), "lessthan": compare("<"), "<=": compare("<="), "le": compare("<="),
	} {
		testTable[name] = with(f)
	}
}

func (r *run) test(name string, v value, a args) bool {
	t := testTable[name]
	if t == nil {
		r.fail("the test %.40q is not supported", name)
	}
	return t(r, v, a)
}
