//go:build linux && (amd64 || arm64)

package fakecuda

// Address returns the address of a driver function.
var Address = address
