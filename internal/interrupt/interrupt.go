// Package interrupt ends long work that walks a graph when its context ends.
//
// The loops of an analysis are deep inside functions that cannot fail, and an
// error threaded through all of them would be the largest part of their text. So
// they call [Poll], which panics once the context is done, and the function that
// the work was asked of turns the panic into an error by [Catch]. Nothing of it
// leaves a public function, and no other panic is touched.
//
// # What it does not do
//
// It starts no goroutine and ends none: each goroutine that polls needs a Catch of
// its own.
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

// stopped is the panic of Poll.
type stopped struct{ cause error }

// Poll returns while ctx lives; once it is done, Poll ends the work that has a
// [Catch]. It costs a few nanoseconds: once a command is often enough, and once for
// each step of a search that may be long.
func Poll(ctx context.Context) {
	if ctx != nil && ctx.Err() != nil {
		panic(stopped{context.Cause(ctx)})
	}
}

// Every polls each n-th time that it is asked, for loops whose steps cost less than
// asking.
type Every struct{ left int }

// Poll polls ctx, once in n calls.
func (e *Every) Poll(ctx context.Context, n int) {
	if e.left--; e.left < 0 {
		e.left = n
		Poll(ctx)
	}
}

// Catch, deferred, sets *err to the cause of the context if Poll ended the work.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case stopped:
		*err = r.cause
	default:
		panic(r)
	}
}

// Writer returns a writer to w that fails with the cause of ctx once it is done.
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
