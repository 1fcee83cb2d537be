package hazard

// Crowd sets when loose cells become crowds, and returns what undoes that.
func Crowd(free, perAccess, most int) (restore func()) {
	a, b, c := looseFree, loosePerAccess, maxCrowd
	looseFree, loosePerAccess, maxCrowd = free, perAccess, most
	return func() { looseFree, loosePerAccess, maxCrowd = a, b, c }
}
