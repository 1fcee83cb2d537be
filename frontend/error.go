package frontend

import "fmt"

// Error says which byte of which file breaks which rule of its format.
type Error struct {
	File   string
	Offset int64 // byte offset in the file; -1 when no byte is to blame (a missing key)
	Reason string
	Err    error // cause, or nil
}

// Error formats as "FILE: offset N: reason".
func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s: offset %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
