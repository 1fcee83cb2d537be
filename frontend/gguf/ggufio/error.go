package ggufio

import (
	"errors"
	"fmt"
)

// ErrMissing is wrapped by an accessor's error when the key is not in the file,
// so that a caller can tell "absent: take the default" from "present but wrong".
var ErrMissing = errors.New("key is missing")

// Error says which byte of which file breaks which rule.
type Error struct {
	File   string // as given to Open
	Offset int64  // byte offset in the file; -1 when no byte is to blame (a missing key)
	Reason string
	Err    error // cause, or nil
}

// Error formats as "ggufio: FILE: offset N: reason".
func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("ggufio: %s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("ggufio: %s: offset %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
