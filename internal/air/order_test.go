package air

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flow makes blocks that lead to each other as given.
func flow(next [][]int) []*block {
	out := make([]*block, len(next))
	for i, to := range next {
		out[i] = &block{label: fmt.Sprint("b", i)}
		for _, x := range to {
			out[i].lines = append(out[i].lines, fmt.Sprintf("  br label %%b%d", x))
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
		arranged, err := arrange(blocks)
		require.NoError(t, err)
		order, loops := arranged.order, arranged.loops
		for _, l := range loops {
			for _, x := range order[l.first : l.last+1] {
				if x != l.header {
					is := func(b *block) bool { return b == x }
					require.Equal(t, avoids(order[l.first:l.last+1], l.header, x), arranged.overtakes(l, is), "%v: %s in the loop of %s", next, x.label, l.header.label)
				}
			}
		}
		require.ElementsMatch(t, blocks, order)
		at := map[string]int{}
		for i, b := range order {
			at[b.label] = i
		}
		loopsSeen += len(loops)
		for i, l := range loops {
			require.Same(t, l.header, order[l.first])
			if i > 0 {
				require.GreaterOrEqual(t, l.last, loops[i-1].last)
				if l.first < loops[i-1].first {
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
			from := at[blocks[i].label]
			for _, x := range next[i] {
				to := at[blocks[x].label]
				back := false
				for _, l := range loops {
					inside := l.first <= from && from <= l.last
					back = back || inside && to == l.first
					if inside && to > from && to > l.last {
						continue
					}
					if inside && (to < l.first || to > l.last) {
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
func avoids(inside []*block, header, past *block) bool {
	seen := map[string]bool{}
	for list := []*block{header}; len(list) > 0; list = list[1:] {
		for _, to := range list[0].successors() {
			if to == header.label {
				return true
			}
			for _, b := range inside {
				if b.label == to && b != past && !seen[to] {
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
			arranged, err := arrange(blocks)
			require.NoError(t, err)
			require.Len(t, arranged.loops, 1)
			assert.Equal(t, c.want, arranged.overtakes(arranged.loops[0], func(b *block) bool { return b == blocks[c.at] }))
		})
	}
}

// TestDivide: a division that may have no result gets a divisor with which it has one.
func TestDivide(t *testing.T) {
	f := &function{lines: []string{
		"  %q = udiv i32 %a, %b, !dbg !4",
		"  %r = sdiv exact i64 %a, 8",
		"  %s = srem <2 x i16> %v, %w",
		"  %t = sdiv i32 %a, 0",
		"  %u = sdiv i32 %a, -1",
		"  %d = fdiv float %x, %y",
	}}
	f.divide()
	assert.Equal(t, []string{
		"  %mlxc.q.zero = icmp eq i32 %b, 0, !dbg !4",
		"  %mlxc.q.by = select i1 %mlxc.q.zero, i32 1, i32 %b, !dbg !4",
		"  %q = udiv i32 %a, %mlxc.q.by, !dbg !4",
		"  %r = sdiv exact i64 %a, 8",
		"  %mlxc.s.zero = icmp eq <2 x i16> %w, splat (i16 0)",
		"  %mlxc.s.minus = icmp eq <2 x i16> %w, splat (i16 -1)",
		"  %mlxc.s.least = icmp eq <2 x i16> %v, splat (i16 -32768)",
		"  %mlxc.s.over = and <2 x i1> %mlxc.s.minus, %mlxc.s.least",
		"  %mlxc.s.none = or <2 x i1> %mlxc.s.zero, %mlxc.s.over",
		"  %mlxc.s.by = select <2 x i1> %mlxc.s.none, <2 x i16> splat (i16 1), <2 x i16> %w",
		"  %s = srem <2 x i16> %v, %mlxc.s.by",
		"  %mlxc.t.zero = icmp eq i32 0, 0",
		"  %mlxc.t.minus = icmp eq i32 0, -1",
		"  %mlxc.t.least = icmp eq i32 %a, -2147483648",
		"  %mlxc.t.over = and i1 %mlxc.t.minus, %mlxc.t.least",
		"  %mlxc.t.none = or i1 %mlxc.t.zero, %mlxc.t.over",
		"  %mlxc.t.by = select i1 %mlxc.t.none, i32 1, i32 0",
		"  %t = sdiv i32 %a, %mlxc.t.by",
		"  %mlxc.u.zero = icmp eq i32 -1, 0",
		"  %mlxc.u.minus = icmp eq i32 -1, -1",
		"  %mlxc.u.least = icmp eq i32 %a, -2147483648",
		"  %mlxc.u.over = and i1 %mlxc.u.minus, %mlxc.u.least",
		"  %mlxc.u.none = or i1 %mlxc.u.zero, %mlxc.u.over",
		"  %mlxc.u.by = select i1 %mlxc.u.none, i32 1, i32 -1",
		"  %u = sdiv i32 %a, %mlxc.u.by",
		"  %d = fdiv float %x, %y",
	}, f.lines)
}
