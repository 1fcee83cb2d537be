//go:build linux && !amd64

package cage

// deniedHere are system calls that this processor's kernel has and others have not.
var deniedHere []uintptr
