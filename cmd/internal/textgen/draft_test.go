package textgen

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGuesses: what followed the longest last sequence, where it was there last, is guessed; at the end of the text it repeats.
func TestGuesses(t *testing.T) {
	d := newDrafter(15, []int32{1, 2, 3, 4, 5, 6, 2, 3, 4, 7, 8, 9, 2, 3, 4})
	d.length = 15
	require.Equal(t, []int32{7, 8, 9, 2, 3}, d.guess(5), "the last place where 2, 3, 4 were")
	require.Len(t, d.guess(100), 15)
	d = newDrafter(15, []int32{1, 2, 3, 4, 5, 6, 2, 3, 4, 7, 8, 1, 2, 3, 4})
	d.length = 15
	require.Equal(t, []int32{5, 6, 2, 3}, d.guess(4), "1, 2, 3, 4 are longer")
	require.Empty(t, newDrafter(15, []int32{1, 2, 9, 3, 1, 2}).guess(4), "two tokens are too few")
	require.Empty(t, newDrafter(15, nil).guess(4))
	require.Empty(t, newDrafter(15, []int32{1, 1, 1, 1}).guess(0))
	require.Empty(t, newDrafter(0, []int32{1, 1, 1, 1}).guess(4))

	// A text of a period of 3 goes on with it.
	d = newDrafter(63, []int32{5, 6, 7, 5, 6, 7})
	d.length = 10
	require.Equal(t, []int32{5, 6, 7, 5, 6, 7, 5, 6, 7, 5}, d.guess(63))
	// Nor are the −1 that stand for what is before the text's beginning taken for tokens.
	require.Empty(t, newDrafter(3, []int32{-1, -1, 3}).guess(3))
}

// TestLengthsOfDrafts: guesses become more while they are right, down to one where they are not, and then rare.
func TestLengthsOfDrafts(t *testing.T) {
	ones := slices.Repeat([]int32{1}, 8)
	d := newDrafter(10, ones)
	var lengths []int
	for range 5 {
		g := d.guess(100)
		lengths = append(lengths, len(g))
		d.learn(len(g), len(g))
	}
	require.Equal(t, []int{1, 3, 7, 10, 10}, lengths, "two rows, four, eight, and as many as there may be")
	d.learn(10, 2)
	require.Len(t, d.guess(100), 3)
	d.learn(3, 1)
	require.Len(t, d.guess(100), 1)

	var waits []int
	for range 7 {
		d.learn(1, 0)
		n := 0
		for len(d.guess(1)) == 0 {
			d.add(1)
			n++
		}
		waits = append(waits, n)
	}
	require.Equal(t, []int{0, 1, 3, 7, 15, 16, 16}, waits)
	d.learn(1, 1)
	d.learn(1, 0)
	require.Len(t, d.guess(1), 1, "one was right meanwhile")
}
