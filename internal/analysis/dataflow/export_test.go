package dataflow

// Crowd sets when commands count as unknown for the writes that they may meet, and
// returns what undoes that.
func Crowd(free, perAccess, most int) (restore func()) {
	a, b, c := lookFree, lookPerAccess, maxCrowd
	lookFree, lookPerAccess, maxCrowd = free, perAccess, most
	return func() { lookFree, lookPerAccess, maxCrowd = a, b, c }
}
