//go:build darwin || linux

package objc

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Error is a copy of an NSError.
type Error struct {
	Domain      string
	Code        int
	Description string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Description == "" {
		return fmt.Sprintf("%s error %d", e.Domain, e.Code)
	}
	return fmt.Sprintf("%s (%s %d)", e.Description, e.Domain, e.Code)
}

// Failure returns an [Error] for an NSError, nil for nil.
func Failure(o ID) error {
	if o == 0 {
		return nil
	}
	return &Error{
		Domain: GoString(ErrorDomain.SendID(o)), Code: int(ErrorCode.Send(o)),
		Description: GoString(ErrorDescription.SendID(o)),
	}
}

// WithError calls f, which sends a method whose last argument is an NSError**, and returns its result. f gets
// that argument; it returns 0 if the method failed. Then the error is the NSError that the method has
// stored, or one that says that there is none. The caller has a [Pool].
func WithError(m *Method, f func(slot uintptr) uintptr) (uintptr, error) {
	word := new(ID)
	var pin runtime.Pinner
	pin.Pin(word)
	defer pin.Unpin()
	r := f(uintptr(unsafe.Pointer(word))) // a pinned word lies on the heap and does not move
	if r != 0 {
		return r, nil
	}
	if err := Failure(*word); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("%v failed and said no reason", m)
}
