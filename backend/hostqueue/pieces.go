package hostqueue

import (
	"context"

	"github.com/mlxc/mlxc/backend"
)

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

// Copy copies between two slices of one length, in pieces.
func Copy(ctx context.Context, to, from []byte) error {
	return Pieces(ctx, len(to), func(a, b int) error {
		copy(to[a:b], from[a:b])
		return nil
	})
}

// Read copies what lies at a place, of any device, to memory that the host sees, in pieces.
func Read(ctx context.Context, to []byte, from backend.Place) error {
	return Pieces(ctx, len(to), func(a, b int) error {
		_, err := from.Buffer.ReadAt(to[a:b], from.Offset+int64(a))
		return err
	})
}

// throughBytes is the length of the memory through which Through copies.
const throughBytes = 4 << 20

// Through copies n bytes from a place of another device by way of the host: write is given them in pieces, each with
// the number of its first byte. The other device may take locks of its own meanwhile, so the caller holds none.
func Through(ctx context.Context, from backend.Place, n int64, write func(at int64, data []byte) error) error {
	data := make([]byte, min(n, throughBytes))
	for at := int64(0); at < n; at += int64(len(data)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		data = data[:min(n-at, throughBytes)]
		if _, err := from.Buffer.ReadAt(data, from.Offset+at); err != nil {
			return err
		}
		if err := write(at, data); err != nil {
			return err
		}
	}
	return nil
}
