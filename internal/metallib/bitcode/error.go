package bitcode

import "fmt"

// Error says what is wrong with a module, and where.
type Error struct {
	Offset int64 // in the bytes given to [Read]
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("bitcode: offset %d: %s", e.Offset, e.Reason) }

// failure carries an [Error] from where it is found to [Read], the only place that recovers it.
type failure struct{ *Error }

// fail ends the reading. A position in bits becomes the byte that it lies in.
func (c *cursor) fail(format string, args ...any) {
	panic(failure{&Error{Offset: c.base + int64(c.pos>>3), Reason: fmt.Sprintf(format, args...)}})
}

// caught makes an error of a failure that is passing.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.Error
	default:
		panic(r)
	}
}
