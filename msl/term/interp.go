package term

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Value is the result of a term: an integer (F is the same number), or an f32 with a bound on how
// far another evaluation may differ that the meaning allows, such as a reduction in another order
// or a function within its ulps.
type Value struct {
	I int64
	F float64
	// Err is the bound, as an absolute error. 0 means that results are equal to the
	// bit, except that any NaN is as good as another. Otherwise Err is at least [Tiny];
	// if F is infinite or NaN it says only that the value was not computed exactly. An
	// infinite Err means that nothing is known: an operand may have reached a pole.
	Err float64
}

// Allows reports whether an executor may yield the f32 x where the term yields v.
func (v Value) Allows(x float64) bool {
	switch {
	case v.Err == 0 && math.IsNaN(v.F):
		return math.IsNaN(x)
	case v.Err == 0:
		return x == v.F && math.Signbit(x) == math.Signbit(v.F)
	case math.IsInf(v.Err, 1):
		return true
	case math.IsNaN(v.F):
		return math.IsNaN(x) || math.IsInf(x, 0)
	case math.IsInf(v.F, 0):
		// Where the result is near overflow, one executor may overflow and another not.
		return math.IsNaN(x) || math.Copysign(1, v.F)*x >= math.MaxFloat32/2
	}
	return math.Abs(x-v.F) <= v.Err
}

// Interp evaluates terms for one set of arguments. It is slow and plain on
// purpose: it is what the executors are compared with.
type Interp struct {
	Symbols []Value
	Load    func(arg int, index []int64) (Value, error)
	Abbrevs []Abbrev

	// Flushes: the executor may take a subnormal result for zero, even where operands are exact. What follows from it
	// is bounded as for other errors: 1/(1/x) of a large x may be infinite.
	Flushes bool

	memo  []memo  // values of each abbreviation
	stack []int64 // indices of unfinished loads, and variables of unfinished calls and reductions
}

// Abbrev is a @where line: Body is its term, with Params index variables, at most
// [MaxParams].
type Abbrev struct {
	Params int
	Body   *Expr
}

// MaxParams is the number of indices that an abbreviation can have.
const MaxParams = 4

// Tiny is the min bound of an inexact value. It is the smallest normal f32, because an executor may
// flush subnormals once its result may differ at all.
const Tiny = 1.0 / (1 << 126)

// roundoff is half a unit in the last place of an f32, relative: the error of
// one rounded operation (u in the literature).
const roundoff = 1.0 / (1 << 24)

// functionUlps is how many ulps of f32 an executor's exp, sin, … may be off:
// what the Metal Shading Language Specification promises of its precise
// functions at most (chapter "Numerical Compliance").
const functionUlps = 4

// Eval computes e with the given values of its index variables.
func (in *Interp) Eval(e *Expr, vars []int64) (Value, error) {
	switch e.Op {
	case Number:
		return Value{I: e.Num, F: float64(e.Num)}, nil
	case Real:
		return Value{F: float64(float32(e.Val))}, nil
	case Symbol:
		return in.Symbols[e.Index], nil
	case Var:
		return Value{I: vars[e.Index], F: float64(vars[e.Index])}, nil
	case Load:
		return in.load(e, vars)
	case Call:
		return in.call(e, vars)
	case Sum, MaxOver, ArgMax:
		return in.reduce(e, vars)
	case Select:
		c, err := in.Eval(e.Args[0], vars)
		if err != nil {
			return c, err
		}
		branch := e.Args[2]
		if c.I != 0 {
			branch = e.Args[1]
		}
		return in.float(branch, vars)
	case And, Or:
		a, err := in.Eval(e.Args[0], vars)
		if err != nil || (a.I != 0) == (e.Op == Or) {
			return a, err
		}
		return in.Eval(e.Args[1], vars)
	}
	if e.Op.FromBits() {
		v, err := in.Eval(e.Args[0], vars)
		return Value{F: e.Op.OfBits(v.I)}, err
	}
	if e.Kind == Float {
		return in.floatOp(e, vars)
	}
	return in.intOp(e, vars)
}

// float evaluates e and converts an integer to f32.
func (in *Interp) float(e *Expr, vars []int64) (Value, error) {
	v, err := in.Eval(e, vars)
	if err == nil && e.Kind == Int {
		v = Value{I: v.I, F: float64(float32(v.I))}
	}
	return v, err
}

// integer evaluates an integer. Most of what a term computes is indices, so that the
// common operations on them are done here without the general case.
func (in *Interp) integer(e *Expr, vars []int64) (int64, error) {
	switch e.Op {
	case Number:
		return e.Num, nil
	case Symbol:
		return in.Symbols[e.Index].I, nil
	case Var:
		return vars[e.Index], nil
	case Add, Sub, Mul, Div, Mod:
		if e.Kind != Int {
			break
		}
		a, err := in.integer(e.Args[0], vars)
		if err != nil {
			return a, err
		}
		b, err := in.integer(e.Args[1], vars)
		if err != nil {
			return b, err
		}
		return IntOp(e.Op, a, b)
	}
	v, err := in.Eval(e, vars)
	return v.I, err
}

// push evaluates integers onto the stack, whose height was base, and returns
// them; they are the caller's until the stack is cut to base again.
func (in *Interp) push(args []*Expr, vars []int64) (ints []int64, base int, err error) {
	base = len(in.stack)
	for _, a := range args {
		v, err := in.integer(a, vars)
		if err != nil {
			in.stack = in.stack[:base]
			return nil, base, err
		}
		in.stack = append(in.stack, v)
	}
	return in.stack[base:], base, nil
}

func (in *Interp) load(e *Expr, vars []int64) (Value, error) {
	index, base, err := in.push(e.Args, vars)
	if err != nil {
		return Value{}, err
	}
	v, err := in.Load(e.Index, index)
	in.stack = in.stack[:base]
	return v, err
}

func (in *Interp) call(e *Expr, vars []int64) (Value, error) {
	args, base, err := in.push(e.Args, vars)
	if err != nil {
		return Value{}, err
	}
	var key [MaxParams]int64
	copy(key[:], args)
	if in.memo == nil {
		in.memo = make([]memo, len(in.Abbrevs))
	}
	m := &in.memo[e.Index]
	v, ok := m.get(key)
	if !ok {
		if v, err = in.Eval(in.Abbrevs[e.Index].Body, args); err == nil {
			m.put(key, v)
		}
	}
	in.stack = in.stack[:base]
	return v, err
}

// within pushes vars and one more variable, that of a reduction, onto the stack, whose
// height was base, and returns them.
func (in *Interp) within(e *Expr, vars []int64) (inner []int64, base int) {
	base = len(in.stack)
	in.stack = append(append(in.stack, vars[:e.Index]...), 0)
	return in.stack[base:], base
}

func (in *Interp) reduce(e *Expr, vars []int64) (Value, error) {
	n, err := in.Eval(e.Args[0], vars)
	if err != nil {
		return n, err
	}
	switch {
	case len(e.Args) == 3:
		return in.placed(e, n.I, vars)
	case e.Op == MaxOver && e.Class == "":
		return in.greatest(e, n.I, vars)
	}
	inner, base := in.within(e, vars)
	defer func() { in.stack = in.stack[:base] }()
	var sum, mag, errs float64
	best := Value{F: math.Inf(-1)}
	for i := int64(0); i < n.I; i++ {
		inner[e.Index] = i
		v, err := in.float(e.Args[1], inner)
		if err != nil {
			return v, err
		}
		sum += v.F
		mag += math.Abs(v.F)
		errs += v.Err
		if n.I > 1 && math.IsInf(v.F, 0) && in.overflows(e.Args[1], inner) {
			errs = math.Inf(1) // with fma it may be a number that others take back
		}
		if v.F > best.F { // never a NaN
			best.F, best.I = v.F, i
		}
		if best.Err = max(best.Err, v.Err); math.IsNaN(v.F) {
			best.Err = math.Inf(1) // an executor may ignore a NaN, or yield NaN
		}
	}
	switch {
	case e.Op == ArgMax:
		return Value{I: best.I, F: float64(best.I)}, nil
	case e.Op == MaxOver:
		return Value{F: best.F, Err: best.Err}, nil
	}
	return sumValue(n.I, sum, mag, errs), nil
}

// overflows reports whether an infinite e is the product of two numbers.
func (in *Interp) overflows(e *Expr, vars []int64) bool {
	if e.Op != Mul {
		return false
	}
	for _, x := range e.Args {
		if v, err := in.float(x, vars); err != nil || math.IsInf(v.F, 0) || math.IsNaN(v.F) {
			return false
		}
	}
	return true
}

// greatest computes max without a class: max(a, b) of all elements and -inf, which no order changes.
func (in *Interp) greatest(e *Expr, n int64, vars []int64) (Value, error) {
	inner, base := in.within(e, vars)
	defer func() { in.stack = in.stack[:base] }()
	best := Value{F: math.Inf(-1)}
	for i := range n {
		inner[e.Index] = i
		v, err := in.float(e.Args[1], inner)
		if err != nil {
			return v, err
		}
		if v.Err != 0 && (math.IsNaN(v.F) || math.IsInf(v.F, 0)) {
			v.Err = math.Inf(1) // an executor may have NaN in place of an infinity, which then does not count, or the reverse
		}
		best = greater(best, v)
	}
	return best, nil
}

// placed computes argmax with a place: the index that stands at this place when the
// values are put in order. Greater ones stand first, equal ones by index, and NaN
// behind all numbers.
func (in *Interp) placed(e *Expr, n int64, vars []int64) (Value, error) {
	place, err := in.Eval(e.Args[2], vars)
	if err != nil {
		return place, err
	}
	if place.I < 0 || place.I >= n {
		return Value{}, fmt.Errorf("%s: place %d of %d", e, place.I, n)
	}
	inner, base := in.within(e, vars)
	defer func() { in.stack = in.stack[:base] }()
	values, order := make([]float64, n), make([]int64, n)
	for i := range n {
		inner[e.Index] = i
		v, err := in.float(e.Args[1], inner)
		if err != nil {
			return v, err
		}
		values[i], order[i] = v.F, i
	}
	slices.SortStableFunc(order, func(i, j int64) int {
		return -cmp.Compare(values[i], values[j]) // cmp.Compare takes NaN for the min, and −0 for 0
	})
	i := order[place.I]
	return Value{I: i, F: float64(i)}, nil
}

// sumValue bounds a sum of n terms in any order, with or without fma, from its
// value, the sum of its terms' magnitudes and of their errors: n − 1 rounded
// additions, n products that fma does not round but the terms do, and our own
// rounding. Higham, Accuracy and Stability of Numerical Algorithms (2002),
// section 4.2, to first order; √n·λ replaces n in long sums, where roundings
// behave like a random walk (λ = 64 is far past certain).
func sumValue(n int64, sum, mag, errs float64) Value {
	r := float64(float32(sum))
	switch {
	case n <= 0:
		return Value{}
	case n == 1 && errs == 0 && r != 0:
		return Value{F: r}
	case n == 1:
		return inexact(r, errs) // an executor may begin with 0 + x or with x, which differ in the sign of a zero
	}
	if mag > math.MaxFloat32 && !math.IsInf(mag, 1) {
		errs = math.Inf(1) // in some orders it overflows before it is whole
	}
	if !math.IsInf(mag, 1) { // else the sum has an infinite term
		k := min(float64(n), 64*math.Sqrt(float64(n))) + 2
		errs += k * roundoff * mag
	}
	return inexact(r, errs)
}

// inexact returns v with the bound err, which is never 0.
func inexact(v, err float64) Value {
	switch {
	case math.IsInf(err, 1):
	case math.IsInf(v, 0) || math.IsNaN(v):
		err = 0
	case math.IsNaN(err):
		err = math.Inf(1)
	}
	return Value{F: v, Err: err + Tiny}
}

// rounded rounds the result v of an f32 operation. err is how far the errors of the
// operands may have moved v; it is 0 if they are exact.
func rounded(v, err float64, exact bool) Value {
	r := float64(float32(v))
	if exact {
		return Value{F: r}
	}
	// Two values err apart round to values at most err and one ulp apart.
	return inexact(r, err+ulps(1, r))
}

// near finishes an operation that executors compute to functionUlps only.
func near(v, err float64) Value {
	r := float64(float32(v))
	return inexact(r, err+ulps(functionUlps, r))
}

// ulps returns at least n units in the last place of the f32 r, if r is normal.
func ulps(n, r float64) float64 {
	if math.IsInf(r, 0) || math.IsNaN(r) {
		return 0
	}
	return n * 2 * roundoff * math.Abs(r)
}

// times returns the error of a product: err is that of one operand, k the other. It is
// 0 if err is 0 and infinite if err is infinite, whatever k is.
func times(err, k float64) float64 {
	if err == 0 || math.IsInf(err, 1) {
		return err
	}
	return err * k
}

func (in *Interp) floatOp(e *Expr, vars []int64) (Value, error) {
	a, err := in.float(e.Args[0], vars)
	if err != nil {
		return a, err
	}
	var b Value
	if len(e.Args) > 1 {
		if b, err = in.float(e.Args[1], vars); err != nil {
			return b, err
		}
	}
	v := a
	if f := table[e.Op].float; e.Op == Round {
		v = roundTo(e.Type, a)
	} else if f != nil {
		v = f(a, b)
	} else {
		return a, fmt.Errorf("term: %s is no operation on floats", e)
	}
	if math.IsInf(a.Err, 1) || math.IsInf(b.Err, 1) {
		v.Err = math.Inf(1) // a NaN here, whose bound says nothing, may be a number there
	}
	if in.Flushes && v.Err == 0 && v.F != 0 && math.Abs(v.F) < Tiny {
		v.Err = Tiny
	}
	return v, nil
}

// exact reports whether operands are exact.
func exact(a, b Value) bool { return a.Err == 0 && b.Err == 0 }

// quotient divides floats.
func quotient(a, b Value) Value {
	x, y := a.F, b.F
	// |x'/y' − x/y| ≤ (|x' − x| + |x/y|·|y' − y|) / |y'|
	bound := math.Inf(1)
	switch least := math.Abs(y) - b.Err; {
	case math.IsInf(y, 0) && least > 0:
		// The divisor overflowed here, and need not in an executor.
		bound = (a.Err + math.Abs(x)) / math.MaxFloat32
	case least > 0:
		bound = (a.Err + times(b.Err, math.Abs(x/y))) / least
	}
	return rounded(x/y, bound, exact(a, b))
}

// falling returns the error of a function whose slope falls as its operand a > 0 grows,
// such as log: bound, applied to the fraction of a by which a may be off. The error is
// unbounded where the operand may be 0 or negative, unless it is exact.
func falling(a Value, bound func(fraction float64) float64) float64 {
	switch {
	case a.Err == 0:
		return 0
	case a.Err < a.F:
		return bound(a.Err / a.F)
	}
	return math.Inf(1)
}

// lesser returns the minimum: the number if one operand is NaN, and −0 rather than +0.
func lesser(a, b Value) Value {
	err := max(a.Err, b.Err)
	switch {
	case a.F == 0 && b.F == 0:
		if math.Signbit(b.F) {
			a.F = b.F
		}
		return Value{F: a.F, Err: err}
	case math.IsNaN(a.F):
		return Value{F: b.F, Err: err}
	case math.IsNaN(b.F), a.F <= b.F:
		return Value{F: a.F, Err: err}
	}
	return Value{F: b.F, Err: err}
}

// greater returns the maximum: the number if one operand is NaN, and +0 rather than −0.
func greater(a, b Value) Value {
	v := lesser(Value{F: -a.F, Err: a.Err}, Value{F: -b.F, Err: b.Err})
	return Value{F: -v.F, Err: v.Err}
}

// roundTo rounds to nearest, ties to even. Values are f32 already.
func roundTo(t ir.DType, a Value) Value {
	switch t {
	case ir.F32:
		return a
	case ir.F16:
		return narrowed(a, F16Round)
	}
	return narrowed(a, BF16Round)
}

// narrowed is a rounding of an operand that may be inexact. Rounding is
// monotone, so the result lies between those of the ends of what is allowed; it
// is exact again where they are one number.
func narrowed(a Value, round func(float64) float64) Value {
	v := round(a.F)
	if a.Err == 0 {
		return Value{F: v}
	}
	if math.IsInf(a.F, 0) || math.IsNaN(a.F) || math.IsInf(a.Err, 1) {
		return inexact(v, a.Err)
	}
	lo := round(math.Nextafter(a.F-a.Err, math.Inf(-1)))
	hi := round(math.Nextafter(a.F+a.Err, math.Inf(1)))
	if lo == hi && math.Abs(v) >= Tiny && !math.IsInf(v, 0) {
		return Value{F: v}
	}
	if math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		return inexact(v, math.Inf(1)) // one executor may overflow here, and another not
	}
	return inexact(v, max(v-lo, hi-v))
}

func (in *Interp) intOp(e *Expr, vars []int64) (Value, error) {
	a, err := in.Eval(e.Args[0], vars)
	if err != nil {
		return a, err
	}
	var b Value
	if len(e.Args) > 1 {
		if b, err = in.Eval(e.Args[1], vars); err != nil {
			return b, err
		}
	}
	if e.Args[0].Kind == Float || len(e.Args) > 1 && e.Args[1].Kind == Float {
		fa, fb := a.F, b.F
		if e.Args[0].Kind == Int {
			fa = float64(float32(a.I))
		}
		if e.Args[1].Kind == Int {
			fb = float64(float32(b.I))
		}
		return truth(table[e.Op].compares(fa < fb, fa == fb, fa > fb)), nil
	}
	v, err := IntOp(e.Op, a.I, b.I)
	if err == nil && e.Op == ToInt && e.Type.Bits() < 64 {
		v = wrap(e.Type, v)
	}
	return Value{I: v, F: float64(v)}, err
}

// wrap keeps the low bits of v, as a store to an integer type does; a bool is
// whether v is not 0.
func wrap(t ir.DType, v int64) int64 {
	if t == ir.Bool {
		return truth(v != 0).I
	}
	shift := 64 - t.Bits()
	if t.Signed() {
		return v << shift >> shift
	}
	return int64(uint64(v) << shift >> shift)
}

func truth(b bool) Value {
	if b {
		return Value{I: 1, F: 1}
	}
	return Value{}
}

// IntOp computes an integer or boolean operation; conditions are 0 and 1.
func IntOp(op Op, a, b int64) (int64, error) {
	if int(op) < len(table) {
		switch o := &table[op]; {
		case o.divides && b == 0:
			return 0, fmt.Errorf("division by zero")
		case o.integer != nil:
			return o.integer(a, b), nil
		case o.compares != nil:
			return truth(o.compares(a < b, a == b, a > b)).I, nil
		}
	}
	return 0, fmt.Errorf("term: operation %d is none on integers", op)
}

// floorDiv returns ⌊a/b⌋.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// ceilDiv returns ⌈a/b⌉.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) == (b < 0) {
		q++
	}
	return q
}
