//go:build linux && !amd64

package cage

// deniedHere are further denied system calls, which only this processor has.
var deniedHere []uintptr
