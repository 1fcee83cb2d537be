package plan

// Value is what a [Var] is at the values of the params.
func (v *Var) Value(params []uint32) uint64 {
	if v.Float {
		return uint64(params[v.Expr.Terms()[0].Param])
	}
	n, by := v.Expr.Eval(params), max(1, v.Divide)
	q := n / by
	if n%by > 0 {
		q++
	}
	return uint64(q)
}
