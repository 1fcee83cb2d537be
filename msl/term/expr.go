package term

import (
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Op is the operation of an expression's root.
type Op uint8

// The operations, with the [Kind] that each yields.
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
	ArgMax  // Int: min index of the max; with Args[2], the index at that place of their order
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	And
	Or
	Not
)

// String returns the operation's sign or name.
func (op Op) String() string {
	if s, ok := infix[op]; ok {
		return s
	}
	if s, ok := functionNames[op]; ok {
		return s
	}
	if s, ok := map[Op]string{Neg: "-", Not: "!", CeilDiv: "ceil", Round: "round", ToInt: "int", Sum: "sum", MaxOver: "max", ArgMax: "argmax"}[op]; ok {
		return s
	}
	return "Op(" + strconv.Itoa(int(op)) + ")"
}

// Kind is what an expression yields.
type Kind uint8

// The kinds.
const (
	Int Kind = iota
	Float
	Bool
)

func (k Kind) String() string { return [...]string{"integer", "float", "condition"}[k] }

// Expr is a node of an expression tree; trees are immutable.
type Expr struct {
	Op    Op
	Kind  Kind
	Args  []*Expr
	Name  string   // Symbol, Var, Load, Call
	Index int      // Symbol: index in the scope's table; Var and reductions: depth of the binder; Load: index of the argument; Call: index of the abbreviation
	Num   int64    // Number
	Val   float64  // Real
	Type  ir.DType // Round, ToInt
	Class string   // Sum, MaxOver: reduction order; a maximum without one depends on none
}

// functions are the calls with fixed meaning.
var functions = map[string]struct {
	op   Op
	args int
	kind Kind
}{
	"abs": {Abs, 1, Float}, "exp": {Exp, 1, Float}, "exp2": {Exp2, 1, Float}, "log": {Log, 1, Float},
	"sqrt": {Sqrt, 1, Float}, "rsqrt": {Rsqrt, 1, Float}, "sin": {Sin, 1, Float}, "cos": {Cos, 1, Float},
	"tanh": {Tanh, 1, Float}, "erf": {Erf, 1, Float}, "f32": {ToF32, 1, Float}, "pow2": {Pow2, 1, Bool},
	"as_f16": {AsF16, 1, Float},
	"min":    {Min, 2, Int}, "max": {Max, 2, Int}, "select": {Select, 3, Float},
}

var functionNames = func() map[Op]string {
	m := map[Op]string{}
	for n, f := range functions {
		m[f.op] = n
	}
	return m
}()

var infix = map[Op]string{
	Add: "+", Sub: "-", Mul: "*", Div: "/", Mod: "%",
	Eq: "==", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">=", And: "&&", Or: "||",
}

var precedence = map[string]int{
	"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}

// String writes e as it would be written in a declaration.
func (e *Expr) String() string {
	var b strings.Builder
	e.write(&b, 0)
	return b.String()
}

func (e *Expr) write(b *strings.Builder, outer int) {
	if sign, ok := infix[e.Op]; ok {
		p := precedence[sign]
		if p < outer {
			b.WriteByte('(')
		}
		e.Args[0].write(b, p)
		b.WriteString(" " + sign + " ")
		e.Args[1].write(b, p+1)
		if p < outer {
			b.WriteByte(')')
		}
		return
	}
	list := func(open, close string, args []*Expr) {
		b.WriteString(open)
		for i, a := range args {
			if i > 0 {
				b.WriteString(", ")
			}
			a.write(b, 0)
		}
		b.WriteString(close)
	}
	switch e.Op {
	case Number:
		b.WriteString(strconv.FormatInt(e.Num, 10))
	case Real:
		s := strconv.FormatFloat(e.Val, 'g', -1, 32)
		switch {
		case s == "+Inf":
			s = "inf"
		case !strings.ContainsAny(s, ".e"):
			s += ".0"
		}
		b.WriteString(s)
	case Symbol, Var:
		b.WriteString(e.Name)
	case Load:
		list(e.Name+"[", "]", e.Args)
	case Call:
		list(e.Name+"[", "]", e.Args)
	case Neg:
		b.WriteByte('-')
		e.Args[0].write(b, 6)
	case Not:
		b.WriteByte('!')
		e.Args[0].write(b, 6)
	case CeilDiv:
		b.WriteString("ceil(")
		e.Args[0].write(b, 5)
		b.WriteString(" / ")
		e.Args[1].write(b, 6)
		b.WriteByte(')')
	case Round, ToInt:
		if e.Op == Round {
			b.WriteString("round(" + e.Type.String() + ", ")
		} else {
			b.WriteString(e.Type.String() + "(")
		}
		e.Args[0].write(b, 0)
		b.WriteByte(')')
	case Sum, MaxOver, ArgMax:
		b.WriteString(map[Op]string{Sum: "sum", MaxOver: "max", ArgMax: "argmax"}[e.Op])
		if e.Class != "" {
			b.WriteString("[" + e.Class + "]")
		}
		b.WriteString("(" + e.Name + " < ")
		e.Args[0].write(b, 4)
		b.WriteString(", ")
		list("", ")", e.Args[1:])
	default:
		list(functionNames[e.Op]+"(", ")", e.Args)
	}
}

// Walk calls f on e and everything below it.
func (e *Expr) Walk(f func(*Expr)) {
	f(e)
	for _, a := range e.Args {
		a.Walk(f)
	}
}
