package fusion

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// overlapping returns a round with groups of the given members and gains, which are sorted by gain.
func overlapping(commands int, gains []cost.Seconds, members ...[]int32) *round {
	r := &round{fuser: &fuser{m: &isel.Matcher{}}, cmds: make([]*command, commands)}
	for k, m := range members {
		gr := group{n: int32(len(m)), v: &verdict{gain: gains[k]}}
		copy(gr.list[:], m)
		r.groups = append(r.groups, gr)
	}
	slices.SortStableFunc(r.groups, func(a, b group) int {
		switch {
		case a.v.gain > b.v.gain:
			return -1
		case a.v.gain < b.v.gain:
			return 1
		}
		return 0
	})
	return r
}

// taken returns the groups that apply would take: in order, each if it is still possible.
func taken(r *round) (out [][]int32, gain cost.Seconds) {
	took := make([]bool, len(r.cmds))
	for k := range r.groups {
		m := r.groups[k].members()
		if slices.ContainsFunc(m, func(i int32) bool { return took[i] }) {
			continue
		}
		for _, i := range m {
			took[i] = true
		}
		out, gain = append(out, slices.Clone(m)), gain+r.groups[k].v.gain
	}
	return out, gain
}

func TestChoose(t *testing.T) {
	for _, k := range []struct {
		name    string
		gains   []cost.Seconds
		members [][]int32
		want    [][]int32
	}{
		{"the greatest gain", []cost.Seconds{3, 2}, [][]int32{{0, 1}, {1, 2}}, [][]int32{{0, 1}}},
		{"product and sum, norm and weight", []cost.Seconds{3, 2, 2}, [][]int32{{1, 2, 3}, {0, 1}, {2, 3}}, [][]int32{{0, 1}, {2, 3}}},
		{"not if they gain no more", []cost.Seconds{4, 2, 2}, [][]int32{{1, 2, 3}, {0, 1}, {2, 3}}, [][]int32{{1, 2, 3}}},
		{"not if they overlap", []cost.Seconds{3, 2, 2}, [][]int32{{1, 2}, {0, 1}, {0, 2}}, [][]int32{{1, 2}}},
		{"not if a third one would have to go", []cost.Seconds{4, 3.5, 3, 2}, [][]int32{{2, 3}, {0, 1}, {1, 2}, {3, 4}}, [][]int32{{2, 3}, {0, 1}}},
		{"three for one", []cost.Seconds{3, 1.5, 1.5, 1.5}, [][]int32{{1, 2, 3}, {0, 1}, {2, 5}, {3, 4}}, [][]int32{{0, 1}, {2, 5}, {3, 4}}},
		{"a chain of equals", []cost.Seconds{1, 1, 1, 1}, [][]int32{{0, 1}, {1, 2}, {2, 3}, {3, 4}}, [][]int32{{0, 1}, {2, 3}}},
	} {
		r := overlapping(6, k.gains, k.members...)
		r.choose()
		got, _ := taken(r)
		require.Equal(t, k.want, got, k.name)
	}
}

// The total gain is never lower than that of the greedy choice, and no group is lost.
func TestChooseNeverLoses(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	better := 0
	for range 3000 {
		n := 2 + random.IntN(12)
		var gains []cost.Seconds
		var members [][]int32
		for range random.IntN(20) {
			var m []int32
			for _, i := range random.Perm(n)[:2+random.IntN(min(n, maxMembers)-1)] {
				m = append(m, int32(i))
			}
			slices.Sort(m)
			gains, members = append(gains, cost.Seconds(1+random.IntN(9))), append(members, m)
		}
		r := overlapping(n, gains, members...)
		_, before := taken(r)
		r.choose()
		_, after := taken(r)
		require.GreaterOrEqual(t, after, before, "%v of %v", gains, members)
		require.Len(t, r.groups, len(members))
		if after > before {
			better++
		}
	}
	require.Greater(t, better, 300)
}

// Each group is examined only once, whether all groups overlap or each overlaps the next; examining
// them repeatedly would take hours here.
func TestChooseIsLinear(t *testing.T) {
	const n = 400_000
	star, chain := make([][]int32, n), make([][]int32, n)
	gains := make([]cost.Seconds, n)
	for k := range n {
		star[k], chain[k] = []int32{0, int32(k + 1)}, []int32{int32(k), int32(k + 1)}
		gains[k] = cost.Seconds(n - k)
	}
	for _, members := range [][][]int32{star, chain} {
		for range 2 {
			r := overlapping(n+1, gains, members...)
			r.choose()
			_, gain := taken(r)
			require.Positive(t, gain)
			slices.Reverse(gains)
		}
	}
}
