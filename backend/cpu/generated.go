package cpu

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

// compileGenerated returns the twin of a generated kernel. It runs one step after
// another, each over a block of up to 1024 elements. The steps are those of the builtin
// elementwise kernels, so that it may replace these to the bit.
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

// valuePlace is where a value of a generated kernel lies: in a register of one block, or in an f32 operand.
type valuePlace struct {
	register int // -1 if the value is in the operand
	operand  int
}

// instruction is a step whose values have places.
type instruction struct {
	run  loop // nil if the instruction widens a 16-bit operand to f32
	dst  int  // a register, or -1 if the value is the only result and is stored directly
	args []valuePlace
}

// splat is a value that is the same for all elements, or for all elements of a row.
type splat struct {
	register int
	step     elementwise.Step
}

// generated is a compiled generated kernel. Its splats have registers of their own, which are filled once per
// run. All other values have registers that hold one block of elements.
type generated struct {
	*elementwise.Program
	splats    []splat
	columns   []splat // splats of operands indexed by row, filled for each row
	code      []instruction
	results   []valuePlace // stored at the end of a block, except copies; nil if the last instruction stores the result itself
	registers int
	cost      float64 // ns per element
}

func newGenerated(p *elementwise.Program) *generated {
	g := &generated{Program: p}
	steps := slices.Clone(p.Steps)
	for i := range steps {
		whole(steps, i)
	}
	// last holds, for each value, the last step that needs it; -1 if none does.
	last := make([]int, len(steps))
	for i := range last {
		last[i] = -1
	}
	for k, r := range p.Results {
		if !p.Copies[k] { // a copy stores the bits of its operand, not the f32
			last[r] = len(steps)
		}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if last[i] < 0 {
			continue
		}
		for _, a := range steps[i].Args {
			last[a] = max(last[a], i)
		}
	}
	at := make([]valuePlace, len(steps))
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
	splats := make([]bool, len(steps)) // values whose registers are never reused
	for i, s := range steps {
		if last[i] < 0 {
			continue
		}
		switch s.Op {
		case term.Real, term.Symbol, term.Load:
			if s.Op == term.Load && (p.Operands[s.Operand].Index == elementwise.Full || p.Operands[s.Operand].Index == elementwise.Row) {
				at[i] = valuePlace{-1, s.Operand}
				if p.Operands[s.Operand].Type != ir.F32 {
					in := instruction{dst: take(), args: []valuePlace{at[i]}}
					at[i] = valuePlace{register: in.dst}
					g.code = append(g.code, in)
					g.cost += widenCost
				}
				continue
			}
			g.registers++
			at[i], splats[i] = valuePlace{register: g.registers - 1}, true
			x := splat{g.registers - 1, s}
			if s.Op == term.Load && p.Operands[s.Operand].Index == elementwise.Column {
				g.columns = append(g.columns, x)
			} else {
				g.splats = append(g.splats, x)
			}
			continue
		}
		op, ok := operations[s.Op]
		if !ok {
			panic(fmt.Sprintf("operation %d of a generated kernel", s.Op)) // INVARIANT: a test looks at all operations.
		}
		in := instruction{run: op.run}
		if s.Op == term.Round {
			in.run = rounding(narrowOf(s.Type))
		}
		for _, a := range s.Args {
			in.args = append(in.args, at[a])
		}
		for _, a := range s.Args { // a result may overwrite an argument that no later step needs
			if at[a].register >= 0 && !splats[a] && last[a] == i {
				last[a] = -2 // frees the register once, even if the value is an argument twice
				free = append(free, at[a].register)
			}
		}
		in.dst = take()
		at[i] = valuePlace{register: in.dst}
		g.code = append(g.code, in)
		g.cost += op.ns
	}
	for _, r := range p.Results {
		g.results = append(g.results, at[r])
	}
	if n := len(g.code); len(p.Results) == 1 && p.OutTypes[0] == ir.F32 && !p.Copies[0] && n > 0 && at[p.Results[0]] == (valuePlace{register: g.code[n-1].dst}) && !splats[p.Results[0]] {
		g.code[n-1].dst, g.results = -1, nil
	}
	return g
}

// whole replaces step i by a single silu or sigmoid if it and its arguments together compute one.
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

// widenCost is the time to widen an element from 16 bits, in nanoseconds.
const widenCost = 0.06

// run computes the units [lo, hi), of 1024 elements each in row-major order, in blocks that end where a row does.
func (g *generated) run(c *Call, w *Worker, lo, hi int) {
	width := c.Threads[0]
	total := width * c.Threads[1] * c.Threads[2]
	size := min(chunk, total)
	if !g.Flat {
		size = min(chunk, width) // a block does not reach into the next row
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
		get := func(x valuePlace) []float32 {
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
			var dst []float32
			if in.dst >= 0 {
				dst = register(in.dst, n)
			} else {
				dst = c.F32(int(g.Out[0]))[p : p+n]
			}
			if in.run == nil {
				o := g.Operands[in.args[0].operand]
				from := p
				if o.Index == elementwise.Row {
					from = j
				}
				narrowOf(o.Type).from(dst, c.U16(int(o.Slot))[from:from+n])
				continue
			}
			var args [3][]float32
			for a, x := range in.args {
				args[a] = get(x)
			}
			in.run(dst, args)
		}
		if g.results == nil {
			canonical(c.F32(int(g.Out[0]))[p : p+n])
		} else {
			g.store(c, i, j, n, get)
		}
		p += n
	}
}

// store stores the results of one block: n elements from [i, j] on. A result that is a plain copy of an operand is
// read before anything is stored, because the memory of another result may be that of the operand.
func (g *generated) store(c *Call, i, j, n int, get func(valuePlace) []float32) {
	p := i*c.Threads[0] + j
	aside := len(g.results) > 1
	var values [decl.MaxElementwiseResults][]float32
	var halves [decl.MaxElementwiseResults][]uint16
	for r, x := range g.results {
		switch {
		case !g.Copies[r]:
			if values[r] = get(x); x.register < 0 && aside {
				values[r] = slices.Clone(values[r])
			}
		case g.OutTypes[r] != ir.F32:
			o := g.Operands[g.Steps[g.Results[r]].Operand]
			halves[r] = bitsOf(c.U16(int(o.Slot)), o.Index, i, j, n, p, aside)
		default:
			o := g.Operands[g.Steps[g.Results[r]].Operand]
			values[r] = bitsOf(c.F32(int(o.Slot)), o.Index, i, j, n, p, aside)
		}
	}
	for r := range g.results {
		if t := g.OutTypes[r]; t != ir.F32 {
			out := c.U16(int(g.Out[r]))[p : p+n]
			if g.Copies[r] {
				copy(out, halves[r])
			} else {
				narrowOf(t).to(out, values[r])
			}
			continue
		}
		out := c.F32(int(g.Out[r]))[p : p+n]
		if copy(out, values[r]); !g.Copies[r] {
			canonical(out)
		}
	}
}

// bitsOf returns the n elements of an operand for the block that begins at [i, j], element p of the results. If
// aside is set it returns a copy, which later stores do not change.
func bitsOf[T float32 | uint16](x []T, index elementwise.Index, i, j, n, p int, aside bool) []T {
	switch index {
	case elementwise.Full:
		x = x[p : p+n]
	case elementwise.Row:
		x = x[j : j+n]
	case elementwise.Column:
		return slices.Repeat(x[i:i+1], n)
	default:
		return slices.Repeat(x[:1], n)
	}
	if aside {
		x = slices.Clone(x)
	}
	return x
}

// value returns the number that a splat holds.
func (g *generated) value(c *Call, s elementwise.Step, row int) float32 {
	switch s.Op {
	case term.Real:
		return s.Val
	case term.Symbol:
		return c.Float(int(g.Constants[s.Operand]))
	}
	if o := g.Operands[s.Operand]; o.Type != ir.F32 {
		var v [1]float32
		narrowOf(o.Type).from(v[:], c.U16(int(o.Slot))[row:row+1])
		return v[0]
	}
	return c.F32(int(g.Operands[s.Operand].Slot))[row]
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
