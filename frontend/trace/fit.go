package trace

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
)

// form is a number of a graph: con + Σ slope·param, for a grid divided by div and rounded up. div is 1 elsewhere.
type form struct {
	con   int64
	slope []int64 // by param; nil: it is the same in all runs
	div   int64
}

// fitted is what the runs of a group have in common.
type fitted struct {
	names   []string   // of params
	values  [][]uint64 // by run, by param
	numbers []form
}

// fit finds the params of a group, and the numbers of its runs as expressions in them. guess names the param of steps
// that do not say their params themselves.
func (g *group) fit(ctx context.Context, k *kernels, guess string) (*fitted, error) {
	first := g.runs[0]
	f := &fitted{numbers: make([]form, len(first.numbers))}
	differ := []int{}
	var polls interrupt.Every
	for i, v := range first.numbers {
		polls.Poll(ctx, 1024)
		f.numbers[i] = form{con: v, div: 1}
		for _, r := range g.runs[1:] {
			if r.numbers[i] != v {
				differ = append(differ, i)
				break
			}
		}
	}
	if err := f.params(g, k.log, guess, differ); err != nil {
		return nil, err
	}
	if len(f.names) == 0 && len(differ) > 0 { // none of them counts but those of buffers, which are inputs then
		for k := range g.given {
			g.given[k].inert = true
		}
		return f, nil
	}
	if len(differ) == 0 {
		return f, nil
	}
	basis, inverse := f.independent()
	for _, i := range differ {
		polls.Poll(ctx, 64)
		x := &f.numbers[i]
		err := x.solve(g, i, basis, inverse, f.values)
		if v := g.givenAt(i); v != nil {
			// Any two numbers are on a line: of two runs only what counts with the param is taken for a number of the graph.
			if err != nil || len(g.runs) <= len(basis) && slices.ContainsFunc(x.slope, func(s int64) bool { return s < -1 || s > 1 }) {
				v.inert = true
			}
			continue
		}
		if err == nil {
			continue
		}
		if !first.grid[i] || len(f.names) != 1 || !x.ceiling(g, i, f.values) {
			text := ""
			for n := range min(len(g.runs), 4) {
				text += fmt.Sprintf(" %d", g.runs[n].numbers[i])
			}
			place, inline := first.place(i)
			return nil, k.log.fault(first.offset, "graph %s: %s is%s in the first runs of it (the params %v are %v): that is no sum of multiples of the params%s",
				g.name, place, text, f.names, f.values[:min(len(f.values), 4)], k.maybePadding(inline))
		}
	}
	return f, nil
}

// params finds the params and their values in each run.
func (f *fitted) params(g *group, l *Log, guess string, differ []int) error {
	first := g.runs[0]
	if len(first.params) > 0 {
		for _, p := range first.params {
			if slices.Contains(f.names, p.name) {
				return l.fault(first.offset, "step %s: the param %s is there twice", g.name, p.name)
			}
			f.names = append(f.names, p.name)
		}
		for _, r := range g.runs {
			row := make([]uint64, len(f.names))
			if len(r.params) != len(f.names) {
				return l.fault(r.offset, "step %s has %d params, the first one of it %d", g.name, len(r.params), len(f.names))
			}
			for i, name := range f.names {
				j := slices.IndexFunc(r.params, func(p param) bool { return p.name == name })
				if j < 0 {
					return l.fault(r.offset, "step %s has no param %s, the first one of it has", g.name, name)
				}
				row[i] = r.params[j].value
			}
			f.values = append(f.values, row)
		}
		return nil
	}
	hard := slices.ContainsFunc(differ, func(i int) bool { return g.givenAt(i) == nil })
	none := func() error {
		for range g.runs {
			f.values = append(f.values, nil)
		}
		return nil
	}
	if len(differ) == 0 {
		return none()
	}
	// The smallest number that counts the runs, or how many there were before.
	f.names = []string{guess}
	base, found := int64(0), false
	for _, i := range differ {
		counts := !first.grid[i]
		for k := 1; k < len(g.runs); k++ {
			counts = counts && g.runs[k].numbers[i] == first.numbers[i]+int64(g.runs[k].index-first.index)
		}
		if v := first.numbers[i]; counts && (!found || v < base) {
			base, found = v, true
		}
	}
	if !hard && !found {
		f.names = nil
		return none()
	}
	for _, r := range g.runs {
		f.values = append(f.values, []uint64{uint64(base + int64(r.index-first.index))})
	}
	return nil
}

// independent returns runs whose params determine the expressions, and the inverse of the matrix of their params, with a 1 in
// front. Params that depend on others in all runs have slope 0.
func (f *fitted) independent() (basis []int, inverse [][]*big.Rat) {
	var rows [][]*big.Rat // reduced, with the combination of runs that each is
	n := len(f.names) + 1
	var pivots []int
	for k, values := range f.values {
		row := make([]*big.Rat, n)
		row[0] = big.NewRat(1, 1)
		for i, v := range values {
			row[1+i] = new(big.Rat).SetUint64(v)
		}
		for j, p := range pivots {
			c := new(big.Rat).Quo(row[p], rows[j][p])
			for i := range row {
				row[i] = new(big.Rat).Sub(row[i], new(big.Rat).Mul(c, rows[j][i]))
			}
		}
		if p := slices.IndexFunc(row, func(x *big.Rat) bool { return x.Sign() != 0 }); p >= 0 {
			rows, pivots, basis = append(rows, row), append(pivots, p), append(basis, k)
		}
	}
	// Gauss and Jordan on the chosen columns of the chosen runs.
	m := len(basis)
	a := make([][]*big.Rat, m)
	for i, k := range basis {
		a[i] = make([]*big.Rat, 2*m)
		for j, p := range pivots {
			a[i][j] = big.NewRat(1, 1)
			if p > 0 {
				a[i][j] = new(big.Rat).SetUint64(f.values[k][p-1])
			}
		}
		for j := range m {
			a[i][m+j] = big.NewRat(int64(bit(i == j)), 1)
		}
	}
	for c := range m {
		r := c
		for a[r][c].Sign() == 0 {
			r++ // the rows are independent
		}
		a[c], a[r] = a[r], a[c]
		inv := new(big.Rat).Inv(a[c][c])
		for j := range a[c] {
			a[c][j] = new(big.Rat).Mul(a[c][j], inv)
		}
		for i := range a {
			if x := a[i][c]; i != c && x.Sign() != 0 {
				x = new(big.Rat).Set(x)
				for j := range a[i] {
					a[i][j] = new(big.Rat).Sub(a[i][j], new(big.Rat).Mul(x, a[c][j]))
				}
			}
		}
	}
	inverse = make([][]*big.Rat, n)
	for j, p := range pivots {
		inverse[p] = a[j][m:]
	}
	return basis, inverse
}

// solve finds the expression of number i, and compares it with all runs.
func (x *form) solve(g *group, i int, basis []int, inverse [][]*big.Rat, values [][]uint64) error {
	out := form{div: 1, slope: make([]int64, len(inverse)-1)}
	for p, row := range inverse {
		sum := new(big.Rat)
		for j := range row {
			sum.Add(sum, new(big.Rat).Mul(row[j], new(big.Rat).SetInt64(g.runs[basis[j]].numbers[i])))
		}
		if !sum.IsInt() || !sum.Num().IsInt64() {
			return fmt.Errorf("no integers")
		}
		if p == 0 {
			out.con = sum.Num().Int64()
		} else {
			out.slope[p-1] = sum.Num().Int64()
		}
	}
	for k, r := range g.runs {
		if out.eval(values[k]) != r.numbers[i] {
			return fmt.Errorf("run %d differs", k)
		}
	}
	*x = out
	return nil
}

// eval computes the number. Sums wrap, as those of a forged log may; they are compared with numbers that were logged.
func (x *form) eval(values []uint64) int64 {
	v := x.con
	for i, s := range x.slope {
		v += s * int64(values[i])
	}
	if x.div > 1 {
		return (v + x.div - 1) / x.div
	}
	return v
}

// plus returns a sum of two numbers, which are no quotients.
func (x *form) plus(y *form) form {
	out := form{con: x.con + y.con, div: 1, slope: slices.Clone(x.slope)}
	if out.slope == nil {
		out.slope = slices.Clone(y.slope)
		return out
	}
	for i, s := range y.slope {
		out.slope[i] += s
	}
	return out
}

// ceiling finds number i, of a grid, as (param + c)/div, rounded up.
func (x *form) ceiling(g *group, i int, values [][]uint64) bool {
	for div := int64(2); div <= 4096; div *= 2 {
		lo, hi := int64(-1<<40), int64(1<<40) // of c
		for k, r := range g.runs {
			v, p := r.numbers[i], int64(values[k][0])
			lo, hi = max(lo, div*(v-1)+1-p), min(hi, div*v-p)
		}
		if lo <= hi {
			*x = form{con: max(lo, min(hi, 1)), slope: []int64{1}, div: div} // a count is most often the position and one
			return true
		}
	}
	return false
}
