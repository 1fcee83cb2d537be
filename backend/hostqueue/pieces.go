package hostqueue

import "context"

// pieceBytes is how many bytes are copied between two checks of the context.
const pieceBytes = 16 << 20

// Pieces calls do for pieces of n bytes, each from byte from to byte to, until do fails or ctx ends.
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
