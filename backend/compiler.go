package backend

import "errors"

// ErrNoCompiler is what errors of devices wrap that need a compiler for a kernel's source where there is none:
// whatever else a device can do it can do then, too.
var ErrNoCompiler = errors.New("there is no compiler for kernels here")
