package ptxmatrix

// FitOf is how a product of matrices is launched by blocks of so many rows, of which so many share the inner index.
func FitOf(k Kernel, groups [3]uint64, given Given, rows, splits int) (Fit, bool) {
	if p, ok := k.(*fullProduct); ok {
		return p.fit(groups, given, rows)
	}
	return k.(*product).fit(groups, given, rows, splits)
}
