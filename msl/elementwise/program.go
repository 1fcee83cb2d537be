package elementwise

import (
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Index says how an operand is indexed in a kernel whose results are [d0, d1]. A kernel
// whose results are [n] counts as one with d0 = 1.
type Index uint8

// The indices.
const (
	Full   Index = iota // [i, j], as the results are
	Row                 // [j]: one row that all rows of the results share
	Column              // [i]: one element for each row of the results
	One                 // [0]
)

// Step computes one value from earlier ones.
type Step struct {
	// Op is an operation of a term: Load (of Operand), Symbol (constant Operand), Real (Val), Round
	// (to Type, f16 or bf16), or another operation on Args.
	Op      term.Op
	Type    ir.DType // of a Round
	Args    []int    // indices of the steps whose values are its operands
	Val     float32
	Operand int // for a Load, an index in Program.Operands; for a Symbol, one in Program.Constants
}

// Program is a generated kernel as a list of steps without branches.
type Program struct {
	Decl     *decl.Decl
	Flat     bool // results are [n], not [d0, d1]
	Steps    []Step
	Results  []int // the steps that are stored
	Operands []Operand
	// Out and Constants are the slots of the results and of the f32 constants.
	Out, Constants []uint8
	OutTypes       []ir.DType // f32, or f16 or bf16 if the stored value is one already
	// Copies says which results are a single operand whose bits are copied. In every other result a
	// NaN is replaced by the NaN that a store leaves.
	Copies []bool
}

// Operand is an argument that the kernel reads.
type Operand struct {
	Slot  uint8
	Index Index
	Type  ir.DType // f32, f16 or bf16
}

// Compile makes the program of a declaration that [decl.Elementwise] returned.
func Compile(d *decl.Decl) *Program {
	p := &Program{Decl: d, Flat: len(d.Results[0].Vars) == 1}
	operand, constant := map[int]int{}, map[int]int{}
	for i, a := range d.Args {
		switch {
		case a.Mode == decl.Write:
			p.Out, p.OutTypes = append(p.Out, a.Slot), append(p.OutTypes, a.Elem)
		case len(a.Shape) == 0:
			constant[a.Symbol] = len(p.Constants)
			p.Constants = append(p.Constants, a.Slot)
		default:
			operand[i] = len(p.Operands)
			p.Operands = append(p.Operands, Operand{a.Slot, IndexOf(a.Shape, p.Flat), a.Elem})
		}
	}
	known := map[stepKey]int{}
	shared := make([]int, len(d.Wheres))
	var walk func(e *term.Expr) int
	walk = func(e *term.Expr) int {
		s := Step{Op: e.Op}
		if e.Op == term.Round && e.Type == ir.F32 { // every value is an f32 anyway
			return walk(e.Args[0])
		}
		switch e.Op {
		case term.Call:
			return shared[e.Index]
		case term.Load:
			s.Operand = operand[e.Index]
		case term.Symbol:
			s.Operand = constant[e.Index]
		case term.Real:
			s.Val = float32(e.Val)
		default:
			if s.Op == term.Round {
				s.Type = e.Type
			}
			for _, a := range e.Args {
				s.Args = append(s.Args, walk(a))
			}
			if s.Op.Commutes() && s.Args[0] > s.Args[1] {
				s.Args[0], s.Args[1] = s.Args[1], s.Args[0]
			}
		}
		if s.Op == term.Round && p.Steps[s.Args[0]].Op == term.Round && p.Steps[s.Args[0]].Type == s.Type {
			return s.Args[0] // the value has the type already
		}
		key := stepKey{op: s.Op, typ: s.Type, val: math.Float32bits(s.Val), operand: s.Operand}
		copy(key.args[:], s.Args)
		if v, ok := known[key]; ok {
			return v
		}
		p.Steps = append(p.Steps, s)
		known[key] = len(p.Steps) - 1
		return known[key]
	}
	for k := range d.Wheres {
		shared[k] = walk(d.Wheres[k].Body)
	}
	for _, r := range d.Results {
		p.Results = append(p.Results, walk(r.Body))
		p.Copies = append(p.Copies, r.Body.Op == term.Load)
	}
	return p
}

// stepKey identifies what a step computes: steps with equal keys have equal values. Unused elements
// of args are 0.
type stepKey struct {
	op      term.Op
	typ     ir.DType
	args    [3]int
	val     uint32
	operand int
}

// IndexOf returns how an operand is indexed, which its declared shape shows. flat says that results are [n], not
// [d0, d1].
func IndexOf(shape []*term.Expr, flat bool) Index {
	switch {
	case shape[0].Op == term.Number:
		return One
	case len(shape) == 2 || flat:
		return Full
	case shape[0].Name == "d1":
		return Row
	}
	return Column
}
