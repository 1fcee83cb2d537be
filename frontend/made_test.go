package frontend_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
)

// Contents that are made are the same whole, in pieces and at once, have the digest of their bytes, and are not made before
// somebody asks.
func TestMade(t *testing.T) {
	for _, length := range []int64{0, 4, ir.Piece - 4, ir.Piece, ir.Piece + 4, 5*ir.Piece + 68} {
		calls := make(chan int64, 1000)
		fill := func(dst []byte, at int64) {
			calls <- at
			for i := 0; i < len(dst); i += 4 {
				binary.LittleEndian.PutUint32(dst[i:], uint32((at+int64(i))*2654435761>>7))
			}
		}
		want := make([]byte, length)
		fill(want, 0)
		<-calls
		d := frontend.Digests{Refer: true}
		b := d.Made("x", length, fill)
		require.Empty(t, calls)
		require.NoError(t, d.Compute(t.Context()))
		require.Equal(t, ir.Digest(sha256.Sum256(want)), b.Digest)
		require.NoError(t, b.Verify())
		whole, err := b.Bytes()
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, whole))
		into := make([]byte, length)
		require.NoError(t, b.Fill(into))
		require.True(t, bytes.Equal(want, into))
		require.Error(t, b.Fill(make([]byte, length+1)))
		var joined []byte
		for piece, err := range b.Pieces() {
			require.NoError(t, err)
			joined = append(joined, piece...)
		}
		require.True(t, bytes.Equal(want, joined))

		var once frontend.Digests
		atOnce := once.Made("x", length, fill)
		require.NoError(t, once.Compute(t.Context()))
		require.False(t, atOnce.Made())
		require.NoError(t, atOnce.Verify())
		require.Equal(t, b.Digest, atOnce.Digest)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d := frontend.Digests{Refer: true}
	d.Made("x", 8, func([]byte, int64) {})
	require.ErrorIs(t, d.Compute(ended), context.Canceled)
	unread := frontend.Digests{Refer: true, Unread: true}
	x, y := unread.Made("x", 8, func([]byte, int64) {}), unread.Made("y", 8, func([]byte, int64) {})
	require.NotEqual(t, x.Digest, y.Digest)
}
