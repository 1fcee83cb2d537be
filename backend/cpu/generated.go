package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/simd"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

// compileGenerated makes the kernel of a generated one: its steps, each over
// a block of up to 1024 elements at a time. Steps are those of the builtin
// elementwise kernels, which it replaces to the bit.
func compileGenerated(k *ir.Kernel) (*Kernel, error) {
	d, err := decl.Elementwise(k.Function)
	if err != nil {
		return nil, err
	}
	if want := d.Kernel(k.Name).Args; !slices.Equal(k.Args, want) {
		return nil, fmt.Errorf("the argument table of kernel @%s is not what its term says", ir.QuoteName(k.Name))
	}
	g := newGenerated(elementwise.Compile(d))
	total := func(c *Call) int { return c.Threads[0] * c.Threads[1] * c.Threads[2] }
	return &Kernel{
		Name:  "generated",
		Units: func(c *Call) int { return chunks(total(c)) },
		Run:   g.run,
		Cost:  func(c *Call) float64 { return 20 + g.cost*float64(min(chunk, total(c))) },
	}, nil
}

// Operations that are no single one of a term: simd has them whole, and the
// builtin kernels use those.
const (
	opSilu    = term.Op(200 + iota) // x / (1 + exp(-x))
	opSigmoid                       // y = 1 / (1 + exp(|x|)); x < 0 ? y : 1 - y
	opWiden                         // an f16 operand in f32
)

// place is where a value is: in a register, or in an f32 operand.
type place struct {
	register int // -1: in operand
	operand  int
}

// instruction is a step with places in place of values.
type instruction struct {
	op   term.Op
	dst  int      // register; -1: the only result itself
	args [3]place // of opWiden: the operand
}

// splat is a value that is the same for all elements, or for a row of them.
type splat struct {
	register int
	step     elementwise.Step
}

// generated is a compiled program. Values that are the same for all elements
// are in registers of their own, filled once a run; the others in registers of
// one block.
type generated struct {
	*elementwise.Program
	splats    []splat
	columns   []splat // of operands [i]: filled anew for each row
	code      []instruction
	results   []place // what is stored at the end of a block; nil if the last instruction does
	registers int
	cost      float64 // ns an element
}

func newGenerated(p *elementwise.Program) *generated {
	g := &generated{Program: p}
	steps := slices.Clone(p.Steps)
	for i := range steps {
		whole(steps, i)
	}
	// Who is needed, and until when.
	last := make([]int, len(steps))
	for i := range last {
		last[i] = -1
	}
	for _, r := range p.Results {
		last[r] = len(steps)
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if last[i] < 0 {
			continue
		}
		for _, a := range steps[i].Args {
			last[a] = max(last[a], i)
		}
	}
	at := make([]place, len(steps))
	var free []int
	take := func() int {
		if n := len(free); n > 0 {
			r := free[n-1]
			free = free[:n-1]
			return r
		}
		g.registers++
		return g.registers - 1
	}
	splats := make([]bool, len(steps)) // registers that are not given back
	for i, s := range steps {
		if last[i] < 0 {
			continue
		}
		switch s.Op {
		case term.Real, term.Symbol, term.Load:
			if s.Op == term.Load && (p.Operands[s.Operand].Index == elementwise.Full || p.Operands[s.Operand].Index == elementwise.Row) {
				at[i] = place{-1, s.Operand}
				if p.Operands[s.Operand].Type == ir.F16 {
					in := instruction{op: opWiden, dst: take(), args: [3]place{at[i]}}
					at[i] = place{register: in.dst}
					g.code = append(g.code, in)
					g.cost += costOf(opWiden)
				}
				continue
			}
			g.registers++
			at[i], splats[i] = place{register: g.registers - 1}, true
			x := splat{g.registers - 1, s}
			if s.Op == term.Load && p.Operands[s.Operand].Index == elementwise.Column {
				g.columns = append(g.columns, x)
			} else {
				g.splats = append(g.splats, x)
			}
			continue
		}
		in := instruction{op: s.Op}
		for k, a := range s.Args {
			in.args[k] = at[a]
		}
		for _, a := range s.Args { // an operation may write over what it reads last
			if at[a].register >= 0 && !splats[a] && last[a] == i {
				last[a] = -2 // once, though it stands twice
				free = append(free, at[a].register)
			}
		}
		in.dst = take()
		at[i] = place{register: in.dst}
		g.code = append(g.code, in)
		g.cost += costOf(s.Op)
	}
	for _, r := range p.Results {
		g.results = append(g.results, at[r])
	}
	if n := len(g.code); len(p.Results) == 1 && p.OutTypes[0] == ir.F32 && n > 0 && at[p.Results[0]].register == g.code[n-1].dst && !splats[p.Results[0]] {
		g.code[n-1].dst, g.results = -1, nil
	}
	return g
}

// whole makes step i a silu or a sigmoid where its arguments show that it is.
func whole(steps []elementwise.Step, i int) {
	is := func(k int, op term.Op) bool { return steps[k].Op == op }
	one := func(k int) bool { return is(k, term.Real) && steps[k].Val == 1 }
	// onePlusExp returns v where step k is 1 + exp(v).
	onePlusExp := func(k int) (int, bool) {
		if !is(k, term.Add) {
			return 0, false
		}
		a, b := steps[k].Args[0], steps[k].Args[1]
		if one(b) {
			a, b = b, a
		}
		if !one(a) || !is(b, term.Exp) {
			return 0, false
		}
		return steps[b].Args[0], true
	}
	s := &steps[i]
	switch s.Op {
	case term.Div:
		if v, ok := onePlusExp(s.Args[1]); ok && is(v, term.Neg) && steps[v].Args[0] == s.Args[0] {
			*s = elementwise.Step{Op: opSilu, Args: s.Args[:1]}
		}
	case term.Select:
		c, y, other := s.Args[0], s.Args[1], s.Args[2]
		if !is(c, term.Lt) || !is(steps[c].Args[1], term.Real) || steps[steps[c].Args[1]].Val != 0 || !is(y, term.Div) || !one(steps[y].Args[0]) ||
			!is(other, term.Sub) || !one(steps[other].Args[0]) || steps[other].Args[1] != y {
			return
		}
		if v, ok := onePlusExp(steps[y].Args[1]); ok && is(v, term.Abs) && steps[v].Args[0] == steps[c].Args[0] {
			*s = elementwise.Step{Op: opSigmoid, Args: steps[v].Args}
		}
	}
}

func costOf(op term.Op) float64 {
	switch op {
	case term.Add, term.Mul:
		return 0.06
	case opSilu, opSigmoid, term.Exp:
		return 0.35
	case opWiden:
		return 1
	case term.Round:
		return 3
	case term.Exp2, term.Log, term.Sin, term.Cos, term.Tanh:
		return 12
	}
	return 0.6
}

// run does units of 1024 elements in row-major order, in blocks that end where
// a row does.
func (g *generated) run(c *Call, w *Worker, lo, hi int) {
	width := c.Threads[0]
	total := width * c.Threads[1] * c.Threads[2]
	size := min(chunk, total)
	if !g.Flat {
		size = min(chunk, width) // a block does not leave its row
	}
	scratch := w.Scratch(g.registers * size)
	register := func(r, n int) []float32 { return scratch[r*size:][:n] }
	for _, s := range g.splats {
		fill(register(s.register, size), g.value(c, s.step, 0))
	}
	row := -1
	for p, end := lo*chunk, min(hi*chunk, total); p < end; {
		i, j := p/width, p%width
		n := min(size, end-p, width-j)
		if i != row {
			for _, s := range g.columns {
				fill(register(s.register, size), g.value(c, s.step, i))
			}
			row = i
		}
		get := func(x place) []float32 {
			if x.register >= 0 {
				return register(x.register, n)
			}
			o := g.Operands[x.operand]
			if o.Index == elementwise.Row {
				return c.F32(int(o.Slot))[j : j+n]
			}
			return c.F32(int(o.Slot))[p : p+n]
		}
		for k := range g.code {
			in := &g.code[k]
			if in.op == opWiden {
				o := g.Operands[in.args[0].operand]
				from := p
				if o.Index == elementwise.Row {
					from = j
				}
				halfTo(register(in.dst, n), c.U16(int(o.Slot))[from:from+n])
				continue
			}
			var args [3][]float32
			for a := range arity(in.op) {
				args[a] = get(in.args[a])
			}
			if in.dst >= 0 {
				execute(in.op, register(in.dst, n), args)
			} else {
				execute(in.op, c.F32(int(g.Out[0]))[p:p+n], args)
			}
		}
		g.store(c, p, n, get)
		p += n
	}
}

// store copies the results of a block to where they belong. A result that is an
// operand itself goes first to nobody: another result may lie over it.
func (g *generated) store(c *Call, p, n int, get func(place) []float32) {
	var kept [decl.MaxElementwiseResults][]float32
	for r, x := range g.results {
		if kept[r] = get(x); x.register < 0 && len(g.results) > 1 {
			kept[r] = slices.Clone(kept[r])
		}
	}
	for r := range g.results {
		if g.OutTypes[r] == ir.F16 {
			toHalf(c.U16(int(g.Out[r]))[p:p+n], kept[r])
			continue
		}
		copy(c.F32(int(g.Out[r]))[p:p+n], kept[r])
	}
}

// value is a splat's.
func (g *generated) value(c *Call, s elementwise.Step, row int) float32 {
	switch s.Op {
	case term.Real:
		return s.Val
	case term.Symbol:
		return c.Float(int(g.Constants[s.Operand]))
	}
	if o := g.Operands[s.Operand]; o.Type == ir.F16 {
		var v [1]float32
		halfTo(v[:], c.U16(int(o.Slot))[row:row+1])
		return v[0]
	}
	return c.F32(int(g.Operands[s.Operand].Slot))[row]
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}

func arity(op term.Op) int {
	switch op {
	case term.Select:
		return 3
	case term.Add, term.Sub, term.Mul, term.Div, term.Min, term.Max, term.Eq, term.Ne, term.Lt, term.Le, term.Gt, term.Ge, term.And, term.Or:
		return 2
	}
	return 1
}

// execute is dst = op(args), element by element; dst may be an argument. A
// condition is 1 or 0. Every result is rounded to f32 when it is stored, so
// that nothing is contracted on any architecture.
func execute(op term.Op, dst []float32, args [3][]float32) {
	a := args[0][:len(dst)]
	switch op {
	case term.Exp:
		simd.ExpTo(dst, a)
		return
	case opSilu:
		simd.SiluTo(dst, a)
		return
	case opSigmoid:
		simd.SigmoidTo(dst, a)
		return
	case term.Round:
		roundToHalf(dst, a)
		return
	case term.Neg:
		for i, x := range a {
			dst[i] = -x
		}
		return
	case term.Not:
		for i, x := range a {
			dst[i] = 1 - x
		}
		return
	}
	if f := unaries[op]; f != nil {
		for i, x := range a {
			dst[i] = float32(f(float64(x)))
		}
		return
	}
	b := args[1][:len(dst)]
	switch op {
	case term.Add:
		simd.AddTo(dst, a, b)
	case term.Mul:
		simd.MulTo(dst, a, b)
	case term.Sub:
		for i, x := range a {
			dst[i] = x - b[i]
		}
	case term.Div:
		for i, x := range a {
			dst[i] = x / b[i]
		}
	case term.Min:
		for i, x := range a {
			if y := b[i]; y < x || x != x {
				x = y
			}
			dst[i] = x
		}
	case term.Max:
		for i, x := range a {
			if y := b[i]; y > x || x != x {
				x = y
			}
			dst[i] = x
		}
	case term.Select:
		no := args[2][:len(dst)]
		for i, p := range a {
			if p != 0 {
				dst[i] = b[i]
			} else {
				dst[i] = no[i]
			}
		}
	case term.Lt:
		compare(dst, a, b, func(x, y float32) bool { return x < y })
	case term.Le:
		compare(dst, a, b, func(x, y float32) bool { return x <= y })
	case term.Gt:
		compare(dst, a, b, func(x, y float32) bool { return x > y })
	case term.Ge:
		compare(dst, a, b, func(x, y float32) bool { return x >= y })
	case term.Eq:
		compare(dst, a, b, func(x, y float32) bool { return x == y })
	case term.Ne:
		compare(dst, a, b, func(x, y float32) bool { return x != y })
	case term.And:
		compare(dst, a, b, func(x, y float32) bool { return x != 0 && y != 0 })
	case term.Or:
		compare(dst, a, b, func(x, y float32) bool { return x != 0 || y != 0 })
	default:
		panic(fmt.Sprintf("operation %d of a generated kernel", op))
	}
}

func compare(dst, a, b []float32, f func(x, y float32) bool) {
	for i, x := range a {
		v := float32(0)
		if f(x, b[i]) {
			v = 1
		}
		dst[i] = v
	}
}

// unaries are computed in float64 and rounded once; abs and sqrt are correctly
// rounded that way.
var unaries = map[term.Op]func(float64) float64{
	term.Abs: math.Abs, term.Sqrt: math.Sqrt, term.Rsqrt: func(x float64) float64 { return 1 / math.Sqrt(x) },
	term.Exp2: math.Exp2, term.Log: math.Log, term.Sin: math.Sin, term.Cos: math.Cos, term.Tanh: math.Tanh,
}
