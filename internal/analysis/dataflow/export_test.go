package dataflow

import "github.com/mlxc/mlxc/internal/analysis/bytestate"

// Crowd sets how many writes commands may meet, and returns what undoes that.
func Crowd(free, perAccess, most int) (restore func()) {
	return bytestate.SetBound(bytestate.Limits{Free: free, PerAccess: perAccess, Crowd: most})
}
