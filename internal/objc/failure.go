//go:build darwin || linux

package objc

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Error is an NSError.
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

// Failure is the error that an NSError says, nil of nil.
func Failure(o ID) error {
	if o == 0 {
		return nil
	}
	return &Error{
		Domain: GoString(ErrorDomain.SendID(o)), Code: int(ErrorCode.Send(o)),
		Description: GoString(ErrorDescription.SendID(o)),
	}
}

// WithError calls a method whose last argument is an NSError**, inside of a [Pool]. f gets that
// argument and returns what the method returned, 0 if it failed: then the error is what it left, or
// one that says that it left none.
func WithError(m *Method, f func(slot uintptr) uintptr) (uintptr, error) {
	word := new(ID)
	var pin runtime.Pinner
	pin.Pin(word)
	defer pin.Unpin()
	r := f(uintptr(unsafe.Pointer(word))) // pinned, so on the heap
	if r != 0 {
		return r, nil
	}
	if err := Failure(*word); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("%v failed and said no reason", m)
}
