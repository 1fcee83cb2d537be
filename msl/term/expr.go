package term

import (
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

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

// String writes e as it would be written in a declaration.
func (e *Expr) String() string {
	var b strings.Builder
	e.write(&b, 0)
	return b.String()
}

func (e *Expr) write(b *strings.Builder, outer int) {
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
	o := &table[e.Op]
	switch o.notation {
	case infix:
		if o.binds < outer {
			b.WriteByte('(')
		}
		e.Args[0].write(b, o.binds)
		b.WriteString(" " + o.name + " ")
		e.Args[1].write(b, o.binds+1)
		if o.binds < outer {
			b.WriteByte(')')
		}
		return
	case prefix:
		b.WriteString(o.name)
		e.Args[0].write(b, prefixBinds)
		return
	case function:
		list(o.name+"(", ")", e.Args)
		return
	case reduction:
		b.WriteString(o.name)
		if e.Class != "" {
			b.WriteString("[" + e.Class + "]")
		}
		b.WriteString("(" + e.Name + " < ")
		e.Args[0].write(b, sumBinds)
		b.WriteString(", ")
		list("", ")", e.Args[1:])
		return
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
	case Load, Call:
		list(e.Name+"[", "]", e.Args)
	case CeilDiv:
		b.WriteString("ceil(")
		e.Args[0].write(b, productBinds)
		b.WriteString(" / ")
		e.Args[1].write(b, prefixBinds)
		b.WriteByte(')')
	case Round:
		list("round("+e.Type.String()+", ", ")", e.Args)
	case ToInt:
		list(e.Type.String()+"(", ")", e.Args)
	}
}

// Walk calls f on e and everything below it.
func (e *Expr) Walk(f func(*Expr)) {
	f(e)
	for _, a := range e.Args {
		a.Walk(f)
	}
}
