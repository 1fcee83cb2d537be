package hazard

import "github.com/mlxc/mlxc/internal/analysis/bytestate"

// Crowd sets when cells become crowds, and returns a function that undoes it.
func Crowd(free, perAccess, most int) (restore func()) {
	return bytestate.SetBound(bytestate.Limits{Free: free, PerAccess: perAccess, Crowd: most})
}
