package hazard

// Crowd sets when cells become crowds, and returns what undoes that.
func Crowd(free, perAccess, most int) (restore func()) {
	a, b, c := lookFree, lookPerAccess, maxCrowd
	lookFree, lookPerAccess, maxCrowd = free, perAccess, most
	return func() { lookFree, lookPerAccess, maxCrowd = a, b, c }
}
