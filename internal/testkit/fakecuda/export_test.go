//go:build linux && (amd64 || arm64)

package fakecuda

// Address is where a function lies.
var Address = address
