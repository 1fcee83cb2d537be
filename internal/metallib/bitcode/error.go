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

// fail ends the reading with an error at the byte in which the cursor's position lies.
func (c *cursor) fail(format string, args ...any) {
	panic(failure{&Error{Offset: c.base + int64(c.pos>>3), Reason: fmt.Sprintf(format, args...)}})
}

// caught turns a panic with a failure into an error.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.Error
	default:
		panic(r)
	}
}
