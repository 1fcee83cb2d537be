package ir

import (
	"math/big"
	"slices"
)

// contradiction returns the indices of constraints that no values of the params within their bounds
// satisfy together. It returns nil if some values do, or if it could not decide.
//
// It divides each constraint by the greatest common divisor of its coefficients and rounds the
// bound down. Then the simplex method with exact arithmetic (Chvátal, Linear Programming, chapters
// 2 and 3, with Bland's rule) decides whether fractions satisfy all constraints. It accepts
// constraints that fractions satisfy and whole numbers do not. The search ends after maxPivotWork.
func (g *Graph) contradiction() []int {
	if len(g.Constraints) == 0 || len(g.Samples(4)) > 0 {
		return nil
	}
	d := newDictionary(g)
	for d.work < maxPivotWork {
		enter := d.entering()
		if enter < 0 {
			return d.reason()
		}
		leave := d.leaving(enter)
		if leave < 0 { // the auxiliary variable can decrease without limit, so it is not needed
			return nil
		}
		d.pivot(leave, enter)
		if !slices.Contains(d.basic, 0) {
			return nil // the auxiliary variable is 0, so all constraints hold
		}
	}
	return nil
}

// maxPivotWork bounds the total bits of the numbers that one search computes with, because a
// hostile file may have dozens of constraints with long numbers. A search takes about a second at
// most.
const maxPivotWork = 1 << 26

// dictionary writes some variables, the basic ones, as sums of a constant and multiples of the
// others, which are 0. All variables are at least 0. Variable 0 is the auxiliary one: every
// constraint has it on its right side, and the search tries to make it 0. Then follow the params
// minus their mins, and one slack variable for each constraint and for each upper bound of a param.
type dictionary struct {
	params, constraints int
	basic, other        []int
	rows                [][]*big.Rat // by basic variable: its constant, then the multiples of the other variables
	goal                []*big.Rat   // the negated auxiliary variable, written likewise
	work                int64
}

func newDictionary(g *Graph) *dictionary {
	n := len(g.Params)
	d := &dictionary{params: n, constraints: len(g.Constraints), other: []int{0}}
	for j := range n {
		d.other = append(d.other, 1+j)
	}
	row := func() []*big.Rat {
		r := make([]*big.Rat, len(d.other)+1)
		for i := range r {
			r[i] = new(big.Rat)
		}
		d.basic = append(d.basic, 1+n+len(d.rows))
		d.rows = append(d.rows, r)
		return r
	}
	worst := 0
	for k, c := range g.Constraints {
		div := int64(0)
		for _, t := range c.LHS.Terms() {
			for x := t.Coeff; x != 0; {
				div, x = x, div%x
			}
		}
		r := row()
		room := new(big.Int).SetInt64(c.Max)
		room.Div(room, new(big.Int).Abs(big.NewInt(div))) // rounds down
		r[0].SetInt(room)
		r[1].SetInt64(1)
		for _, t := range c.LHS.Terms() {
			q := new(big.Rat).SetInt(new(big.Int).Quo(big.NewInt(t.Coeff), new(big.Int).Abs(big.NewInt(div))))
			least := new(big.Rat).SetInt64(int64(g.Params[t.Param].Min))
			r[0].Sub(r[0], least.Mul(least, q))
			r[2+t.Param].Neg(q)
		}
		if r[0].Cmp(d.rows[worst][0]) < 0 {
			worst = k
		}
	}
	for j := range g.Params {
		p := &g.Params[j]
		r := row()
		if p.Type == U32 {
			r[0].SetInt64(int64(p.Max) - int64(p.Min))
		}
		r[2+j].SetInt64(-1)
	}
	d.goal = make([]*big.Rat, len(d.other)+1)
	for i := range d.goal {
		d.goal[i] = new(big.Rat)
	}
	d.goal[1].SetInt64(-1)
	d.pivot(worst, 0) // now no constant is negative
	return d
}

// entering returns the index of the first variable whose increase lowers the auxiliary variable, or
// −1.
func (d *dictionary) entering() int {
	at := -1
	for i, v := range d.other {
		if d.goal[1+i].Sign() > 0 && (at < 0 || v < d.other[at]) {
			at = i
		}
	}
	return at
}

// leaving returns the index of the basic variable that becomes 0 first when non-basic variable e
// increases. It prefers the auxiliary variable. It returns −1 if none becomes 0.
func (d *dictionary) leaving(e int) int {
	at := -1
	var least, x big.Rat
	for i, r := range d.rows {
		if r[1+e].Sign() >= 0 {
			continue
		}
		d.cost(r[0])
		x.Quo(r[0], r[1+e])
		x.Neg(&x)
		c := -1
		if at >= 0 {
			c = x.Cmp(&least)
		}
		if c < 0 || c == 0 && d.basic[i] < d.basic[at] {
			at = i
			least.Set(&x)
		}
	}
	return at
}

func (d *dictionary) cost(x *big.Rat) { d.work += int64(64 + x.Num().BitLen() + x.Denom().BitLen()) }

// pivot exchanges basic variable b and non-basic variable e.
func (d *dictionary) pivot(b, e int) {
	r := d.rows[b]
	// b = … + a·e  ⇒  e = (b − …) / a
	by := new(big.Rat).Inv(r[1+e])
	for i := range r {
		if i == 1+e {
			r[i].Set(by)
		} else if r[i].Sign() != 0 {
			d.cost(r[i])
			r[i].Mul(r[i], by)
			r[i].Neg(r[i])
		}
	}
	var x big.Rat
	put := func(s []*big.Rat) {
		k := new(big.Rat).Set(s[1+e])
		if k.Sign() == 0 {
			return
		}
		s[1+e].SetInt64(0)
		for i := range s {
			if r[i].Sign() != 0 {
				d.cost(r[i])
				s[i].Add(s[i], x.Mul(k, r[i]))
			}
		}
	}
	for i, s := range d.rows {
		if i != b {
			put(s)
		}
	}
	put(d.goal)
	d.basic[b], d.other[e] = d.other[e], d.basic[b]
}

// reason returns the constraints that keep the auxiliary variable above 0. Their multiples in the
// goal prove that (Farkas' lemma).
func (d *dictionary) reason() (out []int) {
	if d.goal[0].Sign() == 0 {
		return nil
	}
	for i, v := range d.other {
		if k := v - 1 - d.params; k >= 0 && k < d.constraints && d.goal[1+i].Sign() != 0 {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
