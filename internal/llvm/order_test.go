package llvm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flow makes blocks that lead to each other as given.
func flow(next [][]int) []*Block {
	out := make([]*Block, len(next))
	for i, to := range next {
		out[i] = &Block{Label: fmt.Sprint("b", i)}
		for _, x := range to {
			out[i].Lines = append(out[i].Lines, fmt.Sprintf("  br label %%b%d", x))
		}
	}
	return out
}

// TestArrange: in any flow of control, a way back leads to the header of a loop, and a way out of
// a loop leads behind it.
func TestArrange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	loopsSeen, nested := 0, 0
	for range 3000 {
		n := 1 + random.IntN(14)
		next := make([][]int, n)
		for i := range next {
			for range random.IntN(4) {
				if n > 1 {
					next[i] = append(next[i], 1+random.IntN(n-1)) // nothing leads to the first block
				}
			}
		}
		blocks := flow(next)
		arranged, err := Arrange(blocks)
		require.NoError(t, err)
		order, loops := arranged.Order, arranged.Loops
		for _, l := range loops {
			for _, x := range order[l.First : l.Last+1] {
				if x != l.Header {
					is := func(b *Block) bool { return b == x }
					require.Equal(t, avoids(order[l.First:l.Last+1], l.Header, x), arranged.Overtakes(l, is), "%v: %s in the loop of %s", next, x.Label, l.Header.Label)
				}
			}
		}
		require.ElementsMatch(t, blocks, order)
		at := map[string]int{}
		for i, b := range order {
			at[b.Label] = i
		}
		loopsSeen += len(loops)
		for i, l := range loops {
			require.Same(t, l.Header, order[l.First])
			if i > 0 {
				require.GreaterOrEqual(t, l.Last, loops[i-1].Last)
				if l.First < loops[i-1].First {
					nested++
				}
			}
		}
		reached := map[int]bool{0: true}
		for list := []int{0}; len(list) > 0; list = list[1:] {
			for _, to := range next[list[0]] {
				if !reached[to] {
					reached[to] = true
					list = append(list, to)
				}
			}
		}
		for i := range next {
			if !reached[i] {
				continue
			}
			from := at[blocks[i].Label]
			for _, x := range next[i] {
				to := at[blocks[x].Label]
				back := false
				for _, l := range loops {
					inside := l.First <= from && from <= l.Last
					back = back || inside && to == l.First
					if inside && to > from && to > l.Last {
						continue
					}
					if inside && (to < l.First || to > l.Last) {
						require.Less(t, to, from, "%v: %d to %d", next, i, x)
					}
				}
				if to <= from {
					require.True(t, back, "%v: block %d leads back to %d, which is no header", next, i, x)
				}
			}
		}
	}
	assert.Greater(t, loopsSeen, 1000)
	assert.Greater(t, nested, 100)
}

// avoids reports whether a way leads from the header of a loop back to it, within the loop and
// past a block.
func avoids(inside []*Block, header, past *Block) bool {
	seen := map[string]bool{}
	for list := []*Block{header}; len(list) > 0; list = list[1:] {
		for _, to := range list[0].Successors() {
			if to == header.Label {
				return true
			}
			for _, b := range inside {
				if b.Label == to && b != past && !seen[to] {
					seen[to] = true
					list = append(list, b)
				}
			}
		}
	}
	return false
}

// TestOvertakes: threads can overtake where a way round the loop passes a site by.
func TestOvertakes(t *testing.T) {
	for _, c := range []struct {
		name string
		next [][]int
		at   int
		want bool
	}{
		{"straight", [][]int{{1}, {2}, {3}, {1, 4}, nil}, 2, false},
		{"continue", [][]int{{1}, {2}, {1, 3}, {1, 4}, nil}, 3, true},
		{"branch", [][]int{{1}, {2, 3}, {4}, {4}, {1, 5}, nil}, 2, true},
		{"join of branches", [][]int{{1}, {2, 3}, {4}, {4}, {1, 5}, nil}, 4, false},
		{"header", [][]int{{1}, {1, 2}, nil}, 1, false},
		{"break", [][]int{{1}, {2, 4}, {3, 4}, {1}, nil}, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocks := flow(c.next)
			arranged, err := Arrange(blocks)
			require.NoError(t, err)
			require.Len(t, arranged.Loops, 1)
			assert.Equal(t, c.want, arranged.Overtakes(arranged.Loops[0], func(b *Block) bool { return b == blocks[c.at] }))
		})
	}
}
