//go:build darwin || linux

// Package dynlib opens shared libraries and finds names in them, without cgo. The system keeps what was
// wrong for the thread that asked (dlerror), so the question and what was wrong are asked on one thread.
package dynlib

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// Open opens a library. Mode is of purego's RTLD flags.
func Open(name string, mode int) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(name, mode)
}

// Symbol returns the address of a name in a library.
func Symbol(library uintptr, name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlsym(library, name)
}
