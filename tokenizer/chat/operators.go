package chat

import (
	"cmp"
	"math"
	"math/bits"
	"strings"
)

// equal is Python's ==.
func (r *run) equal(a, b value) bool {
	r.step(1)
	if s, ok := stringOf(a); ok {
		t, ok := stringOf(b)
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
		if !ok || a.tuple != b.tuple || len(a.items) != len(b.items) {
			return false
		}
		return r.equalItems(a.items, b.items)
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		same := true
		r.nested(func() {
			for i, k := range a.keys {
				v, ok := r.get(b, k)
				if same = ok && r.equal(a.values[i], v); !same {
					return
				}
			}
		})
		return same
	case *numbers:
		b, ok := b.(*numbers)
		return ok && a.n == b.n && (a.n == 0 || a.start == b.start && (a.n == 1 || a.step == b.step))
	case *view:
		if _, ok := b.(*view); ok {
			r.fail("comparing views of dictionaries is not supported")
		}
		return false
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

// compareNumbers returns -1, 0 or 1, or 2 if one of them is a NaN. ok is false if a
// value is not a number.
func compareNumbers(a, b value) (int, bool) {
	x, xf, xk := numberOf(a)
	y, yf, yk := numberOf(b)
	switch {
	case xk == 0 || yk == 0:
		return 0, false
	case xk == 1 && yk == 1:
		return cmp.Compare(x, y), true
	case xk == 2 && yk == 2:
		return compareFloats(xf, yf), true
	case xk == 1:
		return compareIntFloat(x, yf), true
	}
	c := compareIntFloat(y, xf)
	if c != 2 {
		c = -c
	}
	return c, true
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

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return 2
}

// compareIntFloat compares exactly, without rounding.
func compareIntFloat(i int64, f float64) int {
	switch {
	case math.IsNaN(f):
		return 2
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	t := math.Trunc(f)
	if c := cmp.Compare(i, int64(t)); c != 0 {
		return c
	}
	return compareFloats(0, f-t)
}

// compare returns -1, 0 or 1, or 2 if there is no order (a NaN), for Python's < and the
// like. op is for the message.
func (r *run) compare(a, b value, op string) int {
	r.step(1)
	if c, ok := compareNumbers(a, b); ok {
		return c
	}
	if s, ok := stringOf(a); ok {
		if t, ok := stringOf(b); ok {
			r.step(min(len(s), len(t)) / 64)
			return strings.Compare(s, t) // UTF-8 keeps the order of code points
		}
	}
	if a, ok := a.(*list); ok {
		if b, ok := b.(*list); ok && a.tuple == b.tuple {
			out := cmp.Compare(len(a.items), len(b.items))
			r.nested(func() {
				for i := range min(len(a.items), len(b.items)) {
					if !r.equal(a.items[i], b.items[i]) {
						out = r.compare(a.items[i], b.items[i], op)
						return
					}
				}
			})
			return out
		}
	}
	r.refuse(a)
	r.refuse(b)
	r.fail("%q is not supported between instances of %q and %q", op, typeName(a), typeName(b))
	return 0
}

// refuse fails if v is undefined.
func (r *run) refuse(v value) {
	if u, ok := v.(*undefined); ok {
		r.fail("%s", u.why)
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
		return c == -1
	case "<=":
		return c == -1 || c == 0
	case ">":
		return c == 1
	}
	return c == 1 || c == 0
}

// contains is Python's x in v.
func (r *run) contains(v, x value) bool {
	switch v := v.(type) {
	case string, markup:
		s, _ := stringOf(v)
		part, ok := stringOf(x)
		if !ok {
			r.fail("'in <string>' requires string as left operand, not %s", typeName(x))
		}
		r.step(len(s) / 64)
		return strings.Contains(s, part)
	case *dict:
		_, ok := r.get(v, x)
		return ok
	}
	next := r.iterate(v)
	if next == nil {
		r.fail("argument of type %q is not iterable", typeName(v))
	}
	for y, ok := next(); ok; y, ok = next() {
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
		if s, ok := a.(string); ok {
			return r.percent(s, b)
		}
		r.refuse(b)
	}
	r.fail("unsupported operand type(s) for %s: %q and %q", op, typeName(a), typeName(b))
	return nil
}

func (r *run) add(a, b value) (value, bool) {
	switch x := a.(type) {
	case string:
		switch y := b.(type) {
		case string:
			return r.join2(x, y), true
		case markup:
			return markup(r.join2(r.escape(x), string(y))), true
		}
	case markup:
		if y, ok := stringOf(b); ok {
			if _, safe := b.(markup); !safe {
				y = r.escape(y)
			}
			return markup(r.join2(string(x), y)), true
		}
	case *list:
		if y, ok := b.(*list); ok && x.tuple == y.tuple {
			out := r.room(len(x.items) + len(y.items))
			return &list{items: append(append(out, x.items...), y.items...), tuple: x.tuple}, true
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
	case string, markup:
		s, _ := stringOf(v)
		if s == "" {
			return v, true
		}
		r.alloc(count, len(s))
		s = strings.Repeat(s, count)
		if _, safe := v.(markup); safe {
			return markup(s), true
		}
		return s, true
	case *list:
		if len(v.items) == 0 {
			return v, true
		}
		r.alloc(count, len(v.items)*itemBytes)
		out := make([]value, 0, count*len(v.items))
		for range count {
			out = append(out, v.items...)
		}
		return &list{items: out, tuple: v.tuple}, true
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
		return r.multiply(x, y)
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
	// **
	if y < 0 {
		return r.floats(op, float64(x), float64(y))
	}
	switch {
	case y == 0 || x == 1:
		return int64(1)
	case x == 0:
		return x
	case x == -1:
		return 1 - 2*(y&1)
	case y > 63:
		r.overflow()
	}
	out := int64(1)
	for range y {
		out = r.multiply(out, x)
	}
	return out
}

func (r *run) multiply(x, y int64) int64 {
	negative := (x < 0) != (y < 0)
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	if hi != 0 || lo > limit {
		r.overflow()
	}
	if negative {
		return -int64(lo) // -(1<<63) is itself
	}
	return int64(lo)
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func (r *run) floats(op string, x, y float64) value {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		if x == 0 && y < 0 {
			r.fail("0.0 cannot be raised to a negative power")
		}
		if x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) {
			r.fail("complex numbers are not supported")
		}
		v := math.Pow(x, y)
		if math.IsInf(v, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			r.fail("the result of ** is too large")
		}
		return v
	}
	if y == 0 {
		r.fail("float division by zero")
	}
	if op == "/" {
		return x / y
	}
	// As CPython's float_divmod.
	mod := math.Mod(x, y)
	div := (x - mod) / y
	if mod != 0 {
		if (y < 0) != (mod < 0) {
			mod += y
			div--
		}
	} else {
		mod = math.Copysign(0, y)
	}
	if op == "%" {
		return mod
	}
	if div == 0 {
		return math.Copysign(0, x/y)
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor
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
