package chat

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// equal is Python's ==.
func (r *run) equal(a, b value) bool {
	r.step(1)
	if s, ok := a.(string); ok {
		t, ok := b.(string)
		r.step(min(len(s), len(t)) / 64)
		return ok && s == t
	}
	if c, ok := compareNumbers(a, b); ok {
		return c == 0
	}
	switch a := a.(type) {
	case none:
		_, ok := b.(none)
		return ok
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *list:
		b, ok := b.(*list)
		if !ok {
			return false
		}
		if a.kind > aTuple || b.kind > aTuple {
			r.fail("comparing a range or a view of a dictionary is not supported")
		}
		return a.kind == b.kind && len(a.items) == len(b.items) && r.equalItems(a.items, b.items)
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		same := true
		r.nested(func() {
			for i, k := range a.keys {
				j, ok := b.index[r.dictKey(k)]
				if same = ok && r.equal(a.values[i], b.values[j]); !same {
					return
				}
			}
		})
		return same
	case markup:
		r.fail("comparing text that is marked as safe is not supported")
	}
	return a == b // the same pointer
}

func (r *run) equalItems(a, b []value) bool {
	same := true
	r.nested(func() {
		for i := range a {
			if same = r.equal(a[i], b[i]); !same {
				return
			}
		}
	})
	return same
}

// compareNumbers returns -1, 0 or 1. ok is false if a value is not a number.
func compareNumbers(a, b value) (c int, ok bool) {
	x, xf, xk := numberOf(a)
	y, yf, yk := numberOf(b)
	if xk == 1 && yk == 1 {
		return cmp.Compare(x, y), true
	}
	return cmp.Compare(xf, yf), xk > 0 && yk > 0
}

// numberOf returns an int (kind 1) or a float (kind 2). Kind 0 is anything else.
func numberOf(v value) (int64, float64, int) {
	switch v := v.(type) {
	case int64:
		return v, float64(v), 1
	case bool:
		return integer(v), float64(integer(v)), 1
	case float64:
		return 0, v, 2
	}
	return 0, 0, 0
}

// compare returns -1, 0 or 1, for Python's < and the like. op is for the message.
func (r *run) compare(a, b value, op string) int {
	r.step(1)
	if c, ok := compareNumbers(a, b); ok {
		return c
	}
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			r.step(min(len(s), len(t)) / 64)
			return strings.Compare(s, t) // UTF-8 keeps the order of code points
		}
	}
	r.refuse(a)
	r.refuse(b)
	r.fail("%q is not supported between instances of %q and %q", op, typeName(a), typeName(b))
	return 0
}

// refuse fails if v is undefined, or text that is marked as safe.
func (r *run) refuse(v value) {
	switch v := v.(type) {
	case *undefined:
		r.fail("%s", v.why)
	case markup:
		r.fail("an operation on text that is marked as safe is not supported")
	}
}

// compares evaluates one comparison.
func (r *run) compares(op string, a, b value) bool {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	}
	c := r.compare(a, b, op)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// contains is Python's x in v.
func (r *run) contains(v, x value) bool {
	switch v := v.(type) {
	case string:
		part, ok := x.(string)
		if !ok {
			r.fail("'in <string>' requires string as left operand, not %s", typeName(x))
		}
		r.step(len(v) / 64)
		return strings.Contains(v, part)
	case *dict:
		_, ok := v.index[r.dictKey(x)]
		return ok
	}
	for _, y := range r.items(v) {
		if r.equal(x, y) {
			return true
		}
	}
	return false
}

// binary evaluates one arithmetic operator.
func (r *run) binary(op string, a, b value) value {
	r.step(1)
	x, xf, xk := numberOf(a)
	y, yf, yk := numberOf(b)
	switch {
	case xk == 1 && yk == 1:
		return r.integers(op, x, y)
	case xk > 0 && yk > 0:
		return r.floats(op, xf, yf)
	}
	r.refuse(a)
	if op != "%" {
		r.refuse(b)
	}
	switch op {
	case "+":
		if v, ok := r.add(a, b); ok {
			return v
		}
	case "*":
		if xk == 1 {
			a, b, y, yk = b, a, x, xk
		}
		if yk == 1 {
			if v, ok := r.repeat(a, y); ok {
				return v
			}
		}
	case "%":
		if _, ok := a.(string); ok {
			r.fail("the operator %% on text is not supported")
		}
		r.refuse(b)
	}
	r.fail("unsupported operand type(s) for %s: %q and %q", op, typeName(a), typeName(b))
	return nil
}

func (r *run) add(a, b value) (value, bool) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return r.join2(x, y), true
		}
	case *list:
		if y, ok := b.(*list); ok && x.kind == y.kind && x.kind <= aTuple {
			out := r.room(len(x.items) + len(y.items))
			return &list{x.kind, append(append(out, x.items...), y.items...)}, true
		}
	}
	return nil, false
}

func (r *run) join2(a, b string) string {
	r.alloc(1, sum(len(a), len(b)+itemBytes))
	return a + b
}

func (r *run) repeat(v value, n int64) (value, bool) {
	n = max(n, 0)
	count := int(min(n, math.MaxInt32)) // a greater count is refused anyway, or makes an empty result
	switch v := v.(type) {
	case string:
		if v == "" {
			return v, true
		}
		r.alloc(count, len(v))
		return strings.Repeat(v, count), true
	case *list:
		if v.kind > aTuple {
			return nil, false
		}
		r.alloc(count, len(v.items)*itemBytes)
		return &list{v.kind, slices.Repeat(v.items, count)}, true
	}
	return nil, false
}

func (r *run) overflow() {
	r.fail("whole numbers beyond 64 bits are not supported")
}

func (r *run) integers(op string, x, y int64) value {
	switch op {
	case "+":
		s := x + y
		if (s > x) != (y > 0) && y != 0 {
			r.overflow()
		}
		return s
	case "-":
		s := x - y
		if (s < x) != (y > 0) && y != 0 {
			r.overflow()
		}
		return s
	case "*":
		p := x * y
		if x != 0 && (p/x != y || x == -1 && y == math.MinInt64) {
			r.overflow()
		}
		return p
	case "/":
		if y == 0 {
			r.fail("division by zero")
		}
		return float64(x) / float64(y)
	case "//", "%":
		if y == 0 {
			r.fail("integer division or modulo by zero")
		}
		if y == -1 {
			if op == "%" {
				return int64(0)
			}
			if x == math.MinInt64 {
				r.overflow()
			}
			return -x
		}
		q, m := x/y, x%y
		if m != 0 && (m < 0) != (y < 0) { // Python rounds down
			q, m = q-1, m+y
		}
		if op == "//" {
			return q
		}
		return m
	}
	return nil
}

func (r *run) floats(op string, x, y float64) value {
	z := 0.0
	switch op {
	case "+":
		z = x + y
	case "-":
		z = x - y
	case "*":
		z = x * y
	case "/":
		if y == 0 {
			r.fail("float division by zero")
		}
		z = x / y
	default:
		r.fail("the operator %s on floats is not supported", op)
	}
	if math.IsInf(z, 0) {
		r.fail("floats beyond 64 bits are not supported")
	}
	return z
}

// sign is −v if minus is set, else +v.
func (r *run) sign(minus bool, v value) value {
	r.refuse(v)
	switch x := v.(type) {
	case bool, int64:
		n, _ := whole(x)
		if minus {
			return r.integers("-", 0, n)
		}
		return n
	case float64:
		if minus {
			return -x
		}
		return x
	}
	r.fail("bad operand type for unary sign: %q", typeName(v))
	return nil
}
