package record

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// here is what the names of this package's functions begin with.
const here = "github.com/mlxc/mlxc/record."

// callerLine returns the line from which this package was called, as
// "folder/file.go:12: ", or "" if it is not known.
func callerLine() string {
	pcs := make([]uintptr, 16)
	for skip := 0; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs)
		frames := runtime.CallersFrames(pcs[:n])
		for {
			f, more := frames.Next()
			if f.Function != "" && !strings.HasPrefix(f.Function, here) && !strings.HasPrefix(f.Function, "runtime.") {
				// The last folder is enough to tell files apart. A whole path would make
				// messages differ from machine to machine.
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
