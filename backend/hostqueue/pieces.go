package hostqueue

import "context"

// pieceBytes is what is copied before a look whether to go on.
const pieceBytes = 16 << 20

// Pieces calls do for the pieces of n bytes, one after another, until that fails or ctx ends.
func Pieces(ctx context.Context, n int, do func(from, to int) error) error {
	for from := 0; from < n; from += pieceBytes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := do(from, min(n, from+pieceBytes)); err != nil {
			return err
		}
	}
	return nil
}
