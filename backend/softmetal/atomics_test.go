//go:build unix

package softmetal

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAtomics: whatever the order in which workers run threadgroups, no update is lost.
func TestAtomics(t *testing.T) {
	const n = 20_000
	random := rand.New(rand.NewPCG(5, 6))
	in, small := make([]int32, n), make([]float32, n)
	for i := range in {
		in[i] = int32(random.Uint32())
		small[i] = float32(random.IntN(100))
	}
	grid, group := [3]uint32{n, 1, 1}, [3]uint32{32, 1, 1}
	ctx := context.Background()
	for _, workers := range []int{1, 4} {
		r := newRig(t, Options{Workers: workers}).metal("atomics.metal")
		s := r.buffer(bytesOf([]int32{0, math.MaxInt32, math.MinInt32, 0}))
		u := r.buffer(bytesOf([]uint32{0, math.MaxUint32, 0, math.MaxUint32, 0, 0, 0}))
		tickets := r.buffer(make([]byte, 4*n))
		require.NoError(t, r.run(ctx, "integers", grid, group, s, u, r.buffer(bytesOf(in)), tickets))
		sum := int32(0)
		and, or, xor, least, greatest := uint32(math.MaxUint32), uint32(0), uint32(0), uint32(math.MaxUint32), uint32(0)
		for _, x := range in {
			sum += x
			and &= uint32(x) | 0xff00
			or |= uint32(x)
			xor ^= uint32(x)
			least, greatest = min(least, uint32(x)), max(greatest, uint32(x))
		}
		assert.Equal(t, []uint32{uint32(sum), uint32(slices.Min(in)), uint32(slices.Max(in)), uint32(-sum)}, wordsOf(s.bytes()))
		assert.Equal(t, []uint32{uint32(sum), least, greatest, and, or, xor, n}, wordsOf(u.bytes()))
		each := wordsOf(tickets.bytes())
		slices.Sort(each)
		for i := range each {
			require.EqualValues(t, i, each[i], "each ticket is given once")
		}

		f := r.buffer(make([]byte, 8))
		require.NoError(t, r.run(ctx, "floats", grid, group, f, r.buffer(bytesOf(small))))
		total := float32(0) // exact: the sum is less than 2²⁴
		for _, x := range small {
			total += x
		}
		assert.Equal(t, []float32{total, slices.Max(small)}, floatsOf(f.bytes()))

		last, before := r.buffer(bytesOf([]uint32{math.MaxUint32})), r.buffer(make([]byte, 4*n))
		require.NoError(t, r.run(ctx, "chain", grid, group, last, before))
		seen, at := 0, wordsOf(last.bytes())[0]
		for next := wordsOf(before.bytes()); at != math.MaxUint32 && seen <= n; seen++ {
			at = next[at]
		}
		assert.Equal(t, n, seen)

		bins, want := r.buffer(make([]byte, 64)), make([]uint32, 16)
		for _, x := range in {
			want[uint32(x)%16]++
		}
		require.NoError(t, r.run(ctx, "counted", grid, [3]uint32{96, 1, 1}, r.buffer(bytesOf(in)), bins))
		assert.Equal(t, want, wordsOf(bins.bytes()))
	}
}
