package term

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// Op is the operation of an expression's root.
type Op uint8

// The operations, with the [Kind] that each yields. A new one stands at the end: the order of operands in
// generated kernels depends on these numbers.
const (
	Number Op = iota // Int: the literal Num
	Real             // Float: the literal Val, an f32
	Symbol           // Int or Float: a name of the declaration (Index in its table)
	Var              // Int: an index variable (Index counts binders from the outside)
	Load             // element Args… of argument Name
	Call             // the abbreviation Name applied to Args
	Neg
	Add
	Sub
	Mul
	Div     // Int: floor; Float: true division
	Mod     // Int, sign of the divisor
	CeilDiv // Int: ⌈a/b⌉
	Min
	Max
	Abs
	Exp
	Exp2
	Log
	Sqrt
	Rsqrt
	Sin
	Cos
	Tanh
	Erf
	Pow2  // Bool: the integer is a power of two
	AsF16 // Float: the f16 whose bits are the low 16 of an integer
	ToF32
	Round // to Type
	ToInt // an integer store of Type
	Select
	Sum     // over Var Index in [0, Args[0]) of Args[1], order Class
	MaxOver // likewise; without a Class it is Max of all and -inf, to the bit
	ArgMax  // Int: least index of the greatest value; with Args[2], the index at that place of their order
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	And
	Or
	Not
	AsF32 // Float: the f32 whose bits are the low 32 of an integer
)

// FromBits reports whether o makes a float of the bits of an integer.
func (o Op) FromBits() bool { return o == AsF16 || o == AsF32 }

// OfBits returns the float that o, an operation of which [Op.FromBits] is true, makes of an integer.
func (o Op) OfBits(n int64) float64 {
	if o == AsF16 {
		return F16Value(uint16(n))
	}
	return float64(math.Float32frombits(uint32(n)))
}

// operation is a row of the table: what the toolchain knows of an operation. The parser, the printer, the
// interpreter, generated kernels, passes, the prover and the tests read it there. The CPU's loops are a table in
// backend/cpu, so that the interpreter and what it judges stay apart.
type operation struct {
	name     string // as terms write it
	notation notation
	binds    int // of an infix sign: the greater, the closer it binds
	args     int // the number of operands; 0 if the notation has rules of its own for them
	takes    operands
	yields   Kind // or widest

	commutes bool // the operands may change places: floats are stored as the same bits
	inexact  bool // executors may differ, even if the operands are exact (docs/terms.md)
	// elementwise says that a generated kernel may have the operation. Then Metal and PTX have it too.
	elementwise bool
	metal       string // the function of Metal, in a form that fast-math does not replace by a less exact one
	metalText   string // the source of that function, if Metal lacks it
	ptx         string // the instruction of PTX; "" if there is none, and internal/air/calls has a function of this name

	other             Op // what a test puts in its place to see whether somebody notices
	negated, mirrored Op // of a comparison: !(a < b), but for NaN, is a >= b; b < a is a > b

	// The meaning, for the interpreter. An operation of one operand ignores b.
	float    func(a, b Value) Value
	integer  func(a, b int64) int64
	divides  bool                              // b = 0 is an error of the integer operation
	compares func(less, equal, more bool) bool // a < b, a == b, a > b: none of them with a NaN
}

// notation is how an operation is written.
type notation uint8

const (
	special   notation = iota // names, numbers, elements, round(f16, a), ceil(a / b), u8(a)
	infix                     // a + b
	prefix                    // -a
	function                  // exp(a)
	reduction                 // sum[class](k < n, a)
)

// operands is what an operation takes.
type operands uint8

const (
	numbers    operands = iota // integers and floats; conditions are refused
	integers                   // integers only
	conditions                 // conditions only
	choice                     // a condition, then numbers
)

// widest is the kind of an operation that yields an integer if all its operands are integers, else a float.
const widest Kind = 255

// Precedences of infix signs; a prefix sign binds closer than all of them.
const (
	orBinds = 1 + iota
	andBinds
	comparisonBinds
	sumBinds
	productBinds
	prefixBinds
)

var table = [...]operation{
	Real: {elementwise: true}, Symbol: {elementwise: true}, Load: {elementwise: true},
	Number: {}, Var: {}, Call: {},

	Neg: {
		name: "-", notation: prefix, args: 1, yields: widest, elementwise: true, ptx: "neg.f32", other: Abs,
		float:   func(a, _ Value) Value { return Value{F: -a.F, Err: a.Err} },
		integer: func(a, _ int64) int64 { return -a },
	},
	Add: {
		name: "+", notation: infix, binds: sumBinds, args: 2, yields: widest,
		commutes: true, elementwise: true, ptx: "add.rn.f32", other: Sub,
		float:   func(a, b Value) Value { return rounded(a.F+b.F, a.Err+b.Err, exact(a, b)) },
		integer: func(a, b int64) int64 { return a + b },
	},
	Sub: {
		name: "-", notation: infix, binds: sumBinds, args: 2, yields: widest,
		elementwise: true, ptx: "sub.rn.f32", other: Add,
		float:   func(a, b Value) Value { return rounded(a.F-b.F, a.Err+b.Err, exact(a, b)) },
		integer: func(a, b int64) int64 { return a - b },
	},
	Mul: {
		name: "*", notation: infix, binds: productBinds, args: 2, yields: widest,
		commutes: true, elementwise: true, ptx: "mul.rn.f32", other: Add,
		float: func(a, b Value) Value {
			bound := times(a.Err, math.Abs(b.F)) + times(b.Err, math.Abs(a.F)) + times(a.Err, b.Err)
			return rounded(a.F*b.F, bound, exact(a, b))
		},
		integer: func(a, b int64) int64 { return a * b },
	},
	Div: {
		name: "/", notation: infix, binds: productBinds, args: 2, yields: widest,
		elementwise: true, ptx: "div.rn.f32", other: Mul,
		float:   quotient,
		integer: floorDiv, divides: true,
	},
	Mod: {
		name: "%", notation: infix, binds: productBinds, args: 2, takes: integers, yields: Int, other: Div,
		integer: func(a, b int64) int64 { return a - b*floorDiv(a, b) }, divides: true,
	},
	CeilDiv: {
		name: "ceil", args: 2, takes: integers, yields: Int,
		integer: ceilDiv, divides: true,
	},

	// min and max of PTX, too, are the number if one operand is a NaN, and take −0 for less than +0.
	Min: {
		name: "min", notation: function, args: 2, yields: widest,
		commutes: true, elementwise: true, metal: "lesser", metalText: lesserText, ptx: "min.f32", other: Max,
		float:   lesser,
		integer: func(a, b int64) int64 { return min(a, b) },
	},
	Max: {
		name: "max", notation: function, args: 2, yields: widest,
		commutes: true, elementwise: true, metal: "greater", metalText: greaterText, ptx: "max.f32", other: Min,
		float:   greater,
		integer: func(a, b int64) int64 { return max(a, b) },
	},
	Abs: {
		name: "abs", notation: function, args: 1, yields: Float,
		elementwise: true, metal: "abs", ptx: "abs.f32", other: Neg,
		float: func(a, _ Value) Value { return Value{F: math.Abs(a.F), Err: a.Err} },
	},
	Exp: {
		name: "exp", notation: function, args: 1, yields: Float,
		inexact: true, elementwise: true, metal: "precise::exp", other: Exp2,
		float: func(a, _ Value) Value { v := math.Exp(a.F); return near(v, v*math.Expm1(a.Err)) },
	},
	Exp2: {
		name: "exp2", notation: function, args: 1, yields: Float,
		inexact: true, elementwise: true, metal: "precise::exp2", other: Exp,
		float: func(a, _ Value) Value { v := math.Exp2(a.F); return near(v, v*math.Expm1(a.Err*math.Ln2)) },
	},
	Log: {
		name: "log", notation: function, args: 1, yields: Float,
		inexact: true, elementwise: true, metal: "precise::log", other: Exp,
		float: func(a, _ Value) Value {
			return near(math.Log(a.F), falling(a, func(fraction float64) float64 { return -math.Log1p(-fraction) }))
		},
	},
	Sqrt: {
		name: "sqrt", notation: function, args: 1, yields: Float,
		elementwise: true, metal: "precise::sqrt", ptx: "sqrt.rn.f32", other: Rsqrt,
		float: func(a, _ Value) Value {
			// √(x+d) − √x ≤ √d, and √x − √(x−d) ≤ √d.
			v := math.Sqrt(a.F)
			bound := min(math.Sqrt(a.Err), falling(a, func(fraction float64) float64 { return v * (1 - math.Sqrt(1-fraction)) }))
			return rounded(v, bound, a.Err == 0)
		},
	},
	Rsqrt: {
		name: "rsqrt", notation: function, args: 1, yields: Float,
		inexact: true, elementwise: true, metal: "precise::rsqrt", other: Sqrt,
		float: func(a, _ Value) Value {
			v := 1 / math.Sqrt(a.F)
			return near(v, falling(a, func(fraction float64) float64 { return v * (1/math.Sqrt(1-fraction) - 1) }))
		},
	},
	Sin: {
		name: "sin", notation: function, args: 1, yields: Float,
		inexact: true, elementwise: true, metal: "precise::sin", other: Cos,
		float: func(a, _ Value) Value { return near(math.Sin(a.F), a.Err) },
	},
	Cos: {
		name: "cos", notation: function, args: 1, yields: Float,
		inexact: true, elementwise: true, metal: "precise::cos", other: Sin,
		float: func(a, _ Value) Value { return near(math.Cos(a.F), a.Err) },
	},
	Tanh: {
		name: "tanh", notation: function, args: 1, yields: Float,
		inexact: true, elementwise: true, metal: "precise::tanh", other: Erf,
		float: func(a, _ Value) Value { return near(math.Tanh(a.F), a.Err) },
	},
	Erf: { // Metal lacks it
		name: "erf", notation: function, args: 1, yields: Float, inexact: true, other: Tanh,
		float: func(a, _ Value) Value { return near(math.Erf(a.F), a.Err*2/math.SqrtPi) },
	},
	Pow2: {
		name: "pow2", notation: function, args: 1, takes: integers, yields: Bool,
		integer: func(a, _ int64) int64 { return truth(a > 0 && bits.OnesCount64(uint64(a)) == 1).I },
	},
	AsF16: {name: "as_f16", notation: function, args: 1, takes: integers, yields: Float, other: ToF32},
	AsF32: {name: "as_f32", notation: function, args: 1, takes: integers, yields: Float, other: ToF32},
	ToF32: {
		name: "f32", notation: function, args: 1, yields: Float,
		float: func(a, _ Value) Value { return a },
	},
	Round:  {name: "round", args: 1, yields: Float, elementwise: true},
	ToInt:  {name: "int", args: 1, takes: integers, yields: Int, integer: func(a, _ int64) int64 { return a }},
	Select: {name: "select", notation: function, args: 3, takes: choice, yields: Float, elementwise: true},

	Sum:     {name: "sum", notation: reduction, yields: Float, inexact: true, other: MaxOver},
	MaxOver: {name: "max", notation: reduction, yields: Float, inexact: true, other: Sum}, // exact without a class
	ArgMax:  {name: "argmax", notation: reduction, yields: Int},

	Eq: {
		name: "==", notation: infix, binds: comparisonBinds, args: 2, yields: Bool,
		commutes: true, elementwise: true, ptx: "setp.eq.f32",
		other: Ne, negated: Ne, mirrored: Eq, compares: func(_, equal, _ bool) bool { return equal },
	},
	Ne: {
		name: "!=", notation: infix, binds: comparisonBinds, args: 2, yields: Bool,
		commutes: true, elementwise: true, ptx: "setp.neu.f32",
		other: Eq, negated: Eq, mirrored: Ne, compares: func(_, equal, _ bool) bool { return !equal },
	},
	Lt: {
		name: "<", notation: infix, binds: comparisonBinds, args: 2, yields: Bool,
		elementwise: true, ptx: "setp.lt.f32",
		other: Ge, negated: Ge, mirrored: Gt, compares: func(less, _, _ bool) bool { return less },
	},
	Le: {
		name: "<=", notation: infix, binds: comparisonBinds, args: 2, yields: Bool,
		elementwise: true, ptx: "setp.le.f32",
		other: Gt, negated: Gt, mirrored: Ge, compares: func(less, equal, _ bool) bool { return less || equal },
	},
	Gt: {
		name: ">", notation: infix, binds: comparisonBinds, args: 2, yields: Bool,
		elementwise: true, ptx: "setp.gt.f32",
		other: Le, negated: Le, mirrored: Lt, compares: func(_, _, more bool) bool { return more },
	},
	Ge: {
		name: ">=", notation: infix, binds: comparisonBinds, args: 2, yields: Bool,
		elementwise: true, ptx: "setp.ge.f32",
		other: Lt, negated: Lt, mirrored: Le, compares: func(_, equal, more bool) bool { return equal || more },
	},

	// The interpreter looks at the right operand of && and || only if it is needed.
	And: {
		name: "&&", notation: infix, binds: andBinds, args: 2, takes: conditions, yields: Bool,
		commutes: true, elementwise: true, ptx: "and.pred", other: Or,
		integer: func(a, b int64) int64 { return truth(a != 0 && b != 0).I },
	},
	Or: {
		name: "||", notation: infix, binds: orBinds, args: 2, takes: conditions, yields: Bool,
		commutes: true, elementwise: true, ptx: "or.pred", other: And,
		integer: func(a, b int64) int64 { return truth(a != 0 || b != 0).I },
	},
	Not: {
		name: "!", notation: prefix, args: 1, takes: conditions, yields: Bool, elementwise: true, ptx: "not.pred",
		integer: func(a, _ int64) int64 { return truth(a == 0).I },
	},
}

// byName returns the operations that are written in one way, by name.
func byName(n notation) map[string]Op {
	out := map[string]Op{}
	for op := range table {
		if o := &table[op]; o.notation == n {
			out[o.name] = Op(op)
		}
	}
	return out
}

var signs, prefixes, functions, reductions = byName(infix), byName(prefix), byName(function), byName(reduction)

// String returns the operation's sign or name.
func (op Op) String() string {
	if int(op) < len(table) && table[op].name != "" {
		return table[op].name
	}
	return "Op(" + strconv.Itoa(int(op)) + ")"
}

// Args returns the number of operands; 0 for names, numbers, elements and reductions.
func (op Op) Args() int { return table[op].args }

// Commutes reports whether the operands may change places without a change of bits.
func (op Op) Commutes() bool { return table[op].commutes }

// Exact reports whether all executors compute the same bits from operands of the same bits.
func (op Op) Exact() bool { return !table[op].inexact }

// Elementwise reports whether a generated kernel may have the operation.
func (op Op) Elementwise() bool { return table[op].elementwise }

// Condition reports whether the operation yields a condition.
func (op Op) Condition() bool { return table[op].yields == Bool }

// Comparison reports whether the operation compares two numbers.
func (op Op) Comparison() bool { return table[op].compares != nil }

// Reduction reports whether the operation is one over an index that it binds.
func (op Op) Reduction() bool { return table[op].notation == reduction }

// Negated returns the comparison that holds where this one does not, as long as no operand is NaN.
func (op Op) Negated() Op { return table[op].negated }

// Mirrored returns the comparison with the operands in the other order.
func (op Op) Mirrored() Op { return table[op].mirrored }

// Other returns an operation that yields other values from the same operands: a test that takes it for this one
// should fail. ok is false if there is none.
func (op Op) Other() (other Op, ok bool) { return table[op].other, table[op].other != Number }

// PTX returns the instruction of an elementwise operation. If it is "", the function of internal/air/calls that has
// the operation's name computes it.
func (op Op) PTX() string { return table[op].ptx }

// Metal returns an elementwise operation on the operands' texts, as Metal has it.
func (op Op) Metal(args ...string) string { return table[op].writeMetal(args) }

// MetalText returns the source of the function that the text of [Op.Metal] calls, if Metal lacks it.
func (op Op) MetalText() string { return table[op].metalText }

// Operations returns all operations, in the order of their numbers.
func Operations() []Op {
	out := make([]Op, len(table))
	for op := range out {
		out[op] = Op(op)
	}
	return out
}

// choose returns the operations of which f is true.
func choose(f func(o *operation) bool) []Op {
	return slices.DeleteFunc(Operations(), func(op Op) bool { return !f(&table[op]) })
}

// FloatOperations returns the elementwise operations that compute a float from n floats, other than rounding to a type.
func FloatOperations(n int) []Op {
	return choose(func(o *operation) bool { return o.elementwise && o.float != nil && o.args == n })
}

// Comparisons returns the operations that compare numbers.
func Comparisons() []Op { return choose(func(o *operation) bool { return o.compares != nil }) }

// Logical returns the operations on conditions that yield a condition.
func Logical() []Op { return choose(func(o *operation) bool { return o.takes == conditions }) }
