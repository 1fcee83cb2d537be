package mix_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/collections/mix"
)

// Small words, as IDs and offsets are, give hashes that differ in their low and their
// high bits, which tables index by.
func TestWordSpreads(t *testing.T) {
	const n = 1 << 16
	low, high, all := map[uint64]int{}, map[uint64]int{}, map[uint64]bool{}
	for i := range uint64(n) {
		h := mix.Word(mix.Word(0, i/256*64), i%256)
		all[h] = true
		low[h%256]++
		high[h>>56]++
	}
	require.Len(t, all, n)
	for i := range uint64(256) {
		require.InDelta(t, n/256, low[i], n/256/2, "low bits %d", i)
		require.InDelta(t, n/256, high[i], n/256/2, "high bits %d", i)
	}
}
