package backend

import "errors"

// ErrNoCompiler is wrapped by the error of a device that has to compile a kernel's source and finds no compiler on
// the machine. Everything that needs no compiler still works.
var ErrNoCompiler = errors.New("there is no compiler for kernels here")

// ErrForeignCode says that a device has kernels of its own, and runs none of files.
var ErrForeignCode = errors.New("the device runs no code of files")
