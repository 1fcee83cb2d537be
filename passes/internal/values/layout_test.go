package values_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/passes/internal/values"
)

func items(t *rapid.T, last int32) []values.Item {
	var out []values.Item
	for range rapid.IntRange(0, 20).Draw(t, "items") {
		a := rapid.Int32Range(0, last).Draw(t, "a")
		x := values.Item{A: a, B: min(last, a+rapid.Int32Range(0, 3).Draw(t, "time")), Size: rapid.Int64Range(1, 40).Draw(t, "size"),
			Align: int64(1) << rapid.IntRange(0, 4).Draw(t, "align")}
		x.Rest = rapid.Int64Range(0, x.Align-1).Draw(t, "rest")
		if rapid.IntRange(0, 9).Draw(t, "overhang") == 0 {
			x.After = rapid.Int64Range(0, 30).Draw(t, "after")
		}
		out = append(out, x)
	}
	return out
}

// together reports, by the definition, whether two items are needed at the same time.
func together(x, y values.Item, last int32, wrap bool) bool {
	if x.A <= y.B && y.A <= x.B {
		return true
	}
	return wrap && (x.A == 0 && y.B == last || y.A == 0 && x.B == last)
}

// No two items that are needed at the same time share a byte, places are aligned and in the arena, and the arena
// is at least as large as the bytes that are needed at any one time.
func TestArrange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.Int32Range(0, 12).Draw(t, "last")
		wrap := rapid.Bool().Draw(t, "wrap")
		xs := items(t, last)
		l := values.Arrange(xs, last, wrap)
		requireLayout(t, xs, l.At, last, wrap)
		bound := int64(0)
		for at := int32(0); at <= last; at++ {
			sum := int64(0)
			for _, x := range xs {
				if x.A <= at && at <= x.B || wrap && at == 0 && x.B == last {
					sum += x.Size
				}
			}
			bound = max(bound, sum)
		}
		require.Equal(t, bound, l.Bound)
		require.GreaterOrEqual(t, l.Peak, l.Bound)
		for i, x := range xs {
			require.LessOrEqual(t, l.At[i]+x.Size+x.After, l.Peak)
		}
	})
}

func requireLayout(t require.TestingT, xs []values.Item, at []int64, last int32, wrap bool) {
	for i, x := range xs {
		require.Equal(t, x.Rest, at[i]%x.Align)
		require.GreaterOrEqual(t, at[i], int64(0))
		for j, y := range xs[:i] {
			if together(x, y, last, wrap) {
				require.True(t, at[i]+x.Size <= at[j] || at[j]+y.Size <= at[i], "items %d and %d share bytes", i, j)
			}
		}
	}
}

// With few items of one size at a time, the arena is no larger than what is needed at any one time.
func TestArrangeReachesTheBound(t *testing.T) {
	var xs []values.Item
	for i := range int32(1000) {
		xs = append(xs, values.Item{A: i, B: i + 1, Size: 256, Align: 256})
	}
	l := values.Arrange(xs, 1000, true)
	require.Equal(t, int64(512), l.Bound)
	require.Equal(t, l.Bound, l.Peak)
}

// A hundred thousand items, most of them needed at the same time, are too many pairs for the method by size.
func TestArrangeManyAtOnce(t *testing.T) {
	const n = 1 << 17
	xs := make([]values.Item, 0, n)
	for i := range int32(n) {
		xs = append(xs, values.Item{A: i % 3, B: i%3 + 1, Size: 16 + int64(i%5)*16, Align: 16})
	}
	l := values.Arrange(xs, 3, false)
	require.GreaterOrEqual(t, l.Peak, l.Bound)
	require.LessOrEqual(t, l.Peak, l.Bound*3/2)
	requireLayout(t, xs[:600], l.At[:600], 3, false)
}
