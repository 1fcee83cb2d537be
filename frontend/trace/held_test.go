package trace

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a buffer holds is what the last write of each byte says, however writes lie.
func TestHeld(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var h held
		var want [64]int16
		for i := range want {
			want[i] = -1
		}
		left := 1 << 20
		for range random.IntN(12) {
			lo := random.Int64N(64)
			p := piece{offset: lo, n: random.Int64N(64 - lo + 1), value: byte(random.IntN(200))}
			if random.IntN(2) == 0 {
				p.data = make([]byte, p.n)
				for i := range p.data {
					p.data[i] = byte(random.IntN(256))
				}
			}
			h.write(p)
			for i := range p.n {
				if want[lo+i] = int16(p.value); p.data != nil {
					want[lo+i] = int16(p.data[i])
				}
			}
			if random.IntN(4) > 0 {
				continue
			}
			got := [64]int16{}
			for i := range got {
				got[i] = -1
			}
			pieces, err := h.read(&left)
			require.NoError(t, err)
			for i, q := range pieces {
				require.Positive(t, q.n)
				require.True(t, i == 0 || pieces[i-1].offset+pieces[i-1].n <= q.offset)
				for j := range q.n {
					if got[q.offset+j] = int16(q.value); q.data != nil {
						got[q.offset+j] = int16(q.data[j])
					}
				}
			}
			require.Equal(t, want, got)
			a := random.Int64N(64)
			n := random.Int64N(64 - a + 1)
			part := int64(0)
			for _, q := range cut(pieces, a, n) {
				require.True(t, q.offset >= a && q.offset+q.n <= a+n && q.n > 0)
				part += q.n
			}
			there := int64(0)
			for _, v := range want[a : a+n] {
				there += 1 - min(1, int64(uint16(v)>>15))
			}
			require.Equal(t, there, part)
		}
	}
	var h held
	h.write(piece{offset: 0, n: 4})
	left := 0
	_, err := h.read(&left)
	require.ErrorIs(t, err, errParts)
}
