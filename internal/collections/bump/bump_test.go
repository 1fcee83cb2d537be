package bump_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/collections/bump"
)

// Pieces have the length asked for, are zero, and never share an element, whatever is
// appended to them.
func TestPiecesAreApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s bump.Allocator[int]
		var pieces [][]int
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 40), 0, 60).Draw(t, "lengths") {
			p := s.Take(n)
			require.Len(t, p, n)
			for j := range p {
				require.Zero(t, p[j])
				p[j] = i + 1
			}
			_ = append(p, -1)
			pieces = append(pieces, p)
		}
		one := s.One()
		require.Zero(t, *one)
		*one = -1
		for i, p := range pieces {
			for _, v := range p {
				require.Equal(t, i+1, v)
			}
			c := s.Clone(p)
			require.Equal(t, p, c)
			if len(c) > 0 {
				c[0] = 0
				require.Equal(t, i+1, p[0])
			}
		}
	})
	var s bump.Allocator[int]
	require.Nil(t, s.Clone(nil))
	require.NotNil(t, s.Clone([]int{}))
}

func TestAllocatesRarely(t *testing.T) {
	var s bump.Allocator[[4]int]
	require.Less(t, testing.AllocsPerRun(20, func() {
		for range 1000 {
			s.Take(2)
		}
	}), 4.0)
}
