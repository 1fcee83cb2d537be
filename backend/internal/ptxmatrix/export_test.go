package ptxmatrix

// FitOf is how a product of matrices is launched by blocks of so many rows, of which so many share the inner index, or which, of f32, add up its products in so many phases.
func FitOf(k Kernel, groups [3]uint64, given Given, rows, splits int) (Fit, bool) {
	if p, ok := k.(*fullProduct); ok {
		f, ok := p.fit(groups, given, rows)
		f.Long, f.Part = splits > 1, (f.Inner/splits+fullDepth-1)/fullDepth*fullDepth
		return f, ok
	}
	return k.(*product).fit(groups, given, rows, splits)
}
