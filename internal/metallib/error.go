package metallib

import "fmt"

// Error says what is wrong with a library, and where.
type Error struct {
	File   string
	Offset int64  // in the file
	Kernel string // "" where it is not one kernel's fault
	Reason string
}

func (e *Error) Error() string {
	at := ""
	if e.Kernel != "" {
		at = fmt.Sprintf("kernel %q: ", e.Kernel)
	}
	return fmt.Sprintf("%s: offset %d: %s%s", e.File, e.Offset, at, e.Reason)
}

func (l *Library) errorf(offset int64, kernel, format string, args ...any) *Error {
	return &Error{File: l.File, Offset: offset, Kernel: kernel, Reason: fmt.Sprintf(format, args...)}
}
