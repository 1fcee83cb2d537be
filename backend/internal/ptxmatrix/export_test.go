package ptxmatrix

// FitOf is how a product of matrices is launched by blocks of so many rows, or teams of which so many share the inner index.
func FitOf(k Kernel, groups [3]uint64, given Given, rows, splits int) (Fit, bool) {
	switch p := k.(type) {
	case *warpProduct:
		return p.fit(groups, given, rows, splits)
	case *fullProduct:
		return p.fit(groups, given, rows)
	case *blockProduct:
		return p.fit(given, rows, splits)
	}
	return k.(*product).fit(groups, given, rows, splits)
}

// WarpPhase is of how many elements of the inner index tensor cores of compute capability 8.0 add up the products.
func WarpPhase(inner int) int { return warpPhase(inner) }
