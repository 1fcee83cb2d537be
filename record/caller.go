package record

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// here is what the names of this package's functions begin with.
const here = "github.com/mlxc/mlxc/record."

// callerLine returns "folder/file.go:12: " of the innermost call on the stack that
// lies outside this package, "" if there is none.
func callerLine() string {
	pcs := make([]uintptr, 16)
	for skip := 0; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs)
		frames := runtime.CallersFrames(pcs[:n])
		for {
			f, more := frames.Next()
			if f.Function != "" && !strings.HasPrefix(f.Function, here) && !strings.HasPrefix(f.Function, "runtime.") {
				// The folder of the file, not the way to it: it tells files apart, and is
				// the same on every machine.
				return fmt.Sprintf("%s:%d: ", path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)), f.Line)
			}
			if !more {
				break
			}
		}
		if n < len(pcs) {
			return ""
		}
	}
}
