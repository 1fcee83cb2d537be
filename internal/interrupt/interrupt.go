// Package interrupt ends long work that walks a graph when its context ends.
//
// The loops of an analysis are deep inside functions that cannot fail, and passing an
// error through all of them would make up most of their text. So the loops call [Poll],
// which panics once the context is done, and the function that was asked for the work
// turns the panic into an error with [Catch]. The panic never leaves a public function,
// and no other panic is caught.
//
// # What it does not do
//
// It starts and ends no goroutine. Every goroutine that polls needs a Catch of its own.
//
// # Smallest example
//
//	func Depth(ctx context.Context, g *ir.Graph) (depth int, err error) {
//		defer interrupt.Catch(&err)
//		for _, n := range g.Nodes {
//			interrupt.Poll(ctx)
//			…
package interrupt

import (
	"context"
	"io"
)

// stopped is the panic value of Poll.
type stopped struct{ cause error }

// Poll returns if ctx is alive. Once ctx is done, Poll panics, which ends the work up
// to its [Catch]. It costs a few nanoseconds: calling it once for each command is often
// enough, and once for each step of a search that may be long.
func Poll(ctx context.Context) {
	if ctx != nil && ctx.Err() != nil {
		panic(stopped{context.Cause(ctx)})
	}
}

// Every polls only at every n-th call, for loops whose steps cost less than polling.
type Every struct{ left int }

// Poll polls ctx at every n-th call.
func (e *Every) Poll(ctx context.Context, n int) {
	if e.left--; e.left < 0 {
		e.left = n
		Poll(ctx)
	}
}

// Catch, when deferred, sets *err to the cause of the context if Poll ended the work.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case stopped:
		*err = r.cause
	default:
		panic(r)
	}
}

// Writer returns a writer to w that fails with the cause of ctx once ctx is done.
func Writer(ctx context.Context, w io.Writer) io.Writer { return &writer{ctx, w} }

type writer struct {
	ctx context.Context
	w   io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.w.Write(p)
}
