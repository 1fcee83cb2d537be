package term

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/mlxc/mlxc/ir"
)

// Value is the result of a term: an integer, or an f32 with a bound on how far
// another evaluation that the meaning allows (a reduction in another order, a
// function within its ulps) may lie from it.
type Value struct {
	I   int64
	F   float64
	Err float64 // absolute, ≥ 0; 0 means: equal to the bit
}

// Interp evaluates terms for one set of arguments. It is slow and plain on
// purpose: it is what the executors are compared with.
type Interp struct {
	Symbols []Value
	Load    func(arg int, index []int64) (Value, error)
	Abbrevs []Abbrev

	memo map[memoKey]Value
}

// Abbrev is a @where definition: Body over Params index variables.
type Abbrev struct {
	Params int
	Body   *Expr
}

type memoKey struct {
	abbrev int
	args   [4]int64
}

// ulp is half a unit in the last place of an f32, relative: the error of one
// rounded operation.
const ulp = 1.0 / (1 << 24)

// functionUlps is how many ulps of f32 an executor's exp, sin, … may be off.
// Metal's own precise functions promise 4 (Metal Shading Language
// Specification, "Relative error as ULP"), sin and cos too.
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
		idx := make([]int64, len(e.Args))
		for i, a := range e.Args {
			v, err := in.Eval(a, vars)
			if err != nil {
				return v, err
			}
			idx[i] = v.I
		}
		return in.Load(e.Index, idx)
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
	if e.Kind == Float {
		return in.floatOp(e, vars)
	}
	return in.intOp(e, vars)
}

// float evaluates e and converts an integer to f32.
func (in *Interp) float(e *Expr, vars []int64) (Value, error) {
	v, err := in.Eval(e, vars)
	if err == nil && e.Kind == Int {
		v.F = float64(float32(v.I))
	}
	return v, err
}

func (in *Interp) call(e *Expr, vars []int64) (Value, error) {
	key := memoKey{abbrev: e.Index}
	args := make([]int64, len(e.Args))
	for i, a := range e.Args {
		v, err := in.Eval(a, vars)
		if err != nil {
			return v, err
		}
		args[i] = v.I
		if i < len(key.args) {
			key.args[i] = v.I
		}
	}
	if len(args) > len(key.args) {
		return in.Eval(in.Abbrevs[e.Index].Body, args)
	}
	if v, ok := in.memo[key]; ok {
		return v, nil
	}
	v, err := in.Eval(in.Abbrevs[e.Index].Body, args)
	if err == nil {
		if in.memo == nil {
			in.memo = map[memoKey]Value{}
		}
		in.memo[key] = v
	}
	return v, err
}

func (in *Interp) reduce(e *Expr, vars []int64) (Value, error) {
	n, err := in.Eval(e.Args[0], vars)
	if err != nil {
		return n, err
	}
	inner := append(append(make([]int64, 0, e.Index+1), vars[:min(e.Index, len(vars))]...), 0)
	var sum, mag, errs float64
	best := Value{F: math.Inf(-1)}
	for i := int64(0); i < n.I; i++ {
		inner[e.Index] = i
		v, err := in.float(e.Args[1], inner)
		if err != nil {
			return v, err
		}
		switch {
		case e.Op == Sum:
			sum += v.F
			mag += math.Abs(v.F)
			errs += v.Err
		case v.F > best.F || math.IsNaN(v.F) && !math.IsNaN(best.F):
			best = Value{F: v.F, Err: max(best.Err, v.Err), I: i}
		default:
			best.Err = max(best.Err, v.Err)
		}
	}
	if e.Op != Sum {
		return best, nil
	}
	// Any order of n additions, with or without fma: Higham, Accuracy and
	// Stability of Numerical Algorithms, (4.4), with n capped where the
	// random-walk bound √n·λ takes over (λ = 64 is far past certain).
	k := min(float64(n.I), 64*math.Sqrt(float64(n.I)))
	if n.I <= 1 {
		k = 0
	}
	return Value{F: float64(float32(sum)), Err: finite(errs + k*ulp*mag)}, nil
}

func finite(e float64) float64 {
	if math.IsNaN(e) || math.IsInf(e, 0) {
		return 0
	}
	return e
}

// rounded finishes an f32 operation: v is the exact (or nearly so) result, err
// what the operands' errors amount to.
func rounded(v, err, ulps float64) Value {
	r := float64(float32(v))
	if math.IsInf(r, 0) || math.IsNaN(r) {
		return Value{F: r}
	}
	e := finite(err)
	if e > 0 || ulps > 0 {
		e += 2 * max(ulps, 1) * ulp * math.Abs(r)
		if ulps > 0 {
			e += 2 * math.SmallestNonzeroFloat32
		}
	}
	return Value{F: r, Err: e}
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
	x, y := a.F, b.F
	function := func(v, slope float64) Value { return rounded(v, a.Err*math.Abs(slope), functionUlps) }
	switch e.Op {
	case Neg:
		return Value{F: -x, Err: a.Err}, nil
	case Abs:
		return Value{F: math.Abs(x), Err: a.Err}, nil
	case Add:
		return rounded(x+y, a.Err+b.Err, 0), nil
	case Sub:
		return rounded(x-y, a.Err+b.Err, 0), nil
	case Mul:
		return rounded(x*y, a.Err*math.Abs(y)+b.Err*math.Abs(x)+a.Err*b.Err, 0), nil
	case Div:
		slack := max(math.Abs(y)-b.Err, math.Abs(y)/2)
		return rounded(x/y, (a.Err+math.Abs(x/y)*b.Err)/slack, 0), nil
	case Min:
		return Value{F: min(x, y), Err: max(a.Err, b.Err)}, nil
	case Max:
		return Value{F: max(x, y), Err: max(a.Err, b.Err)}, nil
	case Exp:
		v := math.Exp(x)
		return function(v, v*math.Exp(min(a.Err, 1))), nil
	case Exp2:
		v := math.Exp2(x)
		return function(v, v*math.Exp(min(a.Err, 1))), nil
	case Log:
		return function(math.Log(x), 1/max(math.Abs(x)-a.Err, math.Abs(x)/2)), nil
	case Sqrt:
		return rounded(math.Sqrt(x), a.Err/(2*math.Sqrt(x)), 0), nil
	case Rsqrt:
		v := 1 / math.Sqrt(x)
		return function(v, v/x), nil
	case Sin:
		return function(math.Sin(x), 1), nil
	case Cos:
		return function(math.Cos(x), 1), nil
	case Tanh:
		return function(math.Tanh(x), 1), nil
	case Erf:
		return function(math.Erf(x), 1.2), nil
	case ToF32:
		return a, nil
	case Round:
		return roundTo(e.Type, a), nil
	}
	return a, fmt.Errorf("term: %s is no operation on floats", e)
}

// roundTo rounds to nearest, ties to even.
func roundTo(t ir.DType, a Value) Value {
	switch t {
	case ir.F32:
		return a
	case ir.F16:
		return narrowed(a, F16Round(a.F), 1.0/(1<<11), 1.0/(1<<24))
	}
	return narrowed(a, BF16Round(a.F), 1.0/(1<<8), 0)
}

func narrowed(a Value, v, rel, abs float64) Value {
	if a.Err == 0 {
		return Value{F: v}
	}
	return Value{F: v, Err: finite(a.Err + 2*rel*math.Abs(v) + abs)}
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
		return truth(compare(e.Op, fa, fb)), nil
	}
	v, err := IntOp(e.Op, a.I, b.I)
	if err == nil && e.Op == ToInt && e.Type.Size() < 8 && e.Type.Size() > 0 {
		v = wrap(e.Type, v)
	}
	return Value{I: v, F: float64(v)}, err
}

func wrap(t ir.DType, v int64) int64 {
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

func compare[T int64 | float64](op Op, a, b T) bool {
	switch op {
	case Eq:
		return a == b
	case Ne:
		return a != b
	case Lt:
		return a < b
	case Le:
		return a <= b
	case Gt:
		return a > b
	}
	return a >= b
}

// IntOp computes an integer or boolean operation; conditions are 0 and 1.
func IntOp(op Op, a, b int64) (int64, error) {
	switch op {
	case Neg:
		return -a, nil
	case Add:
		return a + b, nil
	case Sub:
		return a - b, nil
	case Mul:
		return a * b, nil
	case Div, Mod, CeilDiv:
		if b == 0 {
			return 0, fmt.Errorf("division by zero")
		}
		q, r := a/b, a%b
		if r != 0 && (r < 0) != (b < 0) {
			q, r = q-1, r+b
		}
		switch {
		case op == Mod:
			return r, nil
		case op == CeilDiv && r != 0:
			return q + 1, nil
		}
		return q, nil
	case Min:
		return min(a, b), nil
	case Max:
		return max(a, b), nil
	case Abs:
		return max(a, -a), nil
	case ToInt, ToF32:
		return a, nil
	case Not:
		return truth(a == 0).I, nil
	case And:
		return truth(a != 0 && b != 0).I, nil
	case Or:
		return truth(a != 0 || b != 0).I, nil
	case Pow2:
		return truth(a > 0 && bits.OnesCount64(uint64(a)) == 1).I, nil
	case Eq, Ne, Lt, Le, Gt, Ge:
		return truth(compare(op, a, b)).I, nil
	}
	return 0, fmt.Errorf("term: operation %d is none on integers", op)
}
