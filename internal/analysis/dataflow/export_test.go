package dataflow

import "github.com/mlxc/mlxc/internal/analysis/bytestate"

// Crowd sets how many writes commands may meet, and returns a function that undoes it.
func Crowd(free, perAccess, most int) (restore func()) {
	return bytestate.SetBound(bytestate.Limits{Free: free, PerAccess: perAccess, Crowd: most})
}
