package sample

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryMember: 128 runs take every member of every family, each run the first and at least one in
// eight of the others, and of kernels one of each family in at least one run of [Templates].
func TestEveryMember(t *testing.T) {
	Long(t)
	t.Setenv(WholeEnv, "")
	var members []int
	for i := range 100 {
		members = append(members, i)
	}
	seen := map[int]int{}
	var pairs []string // ten families of hundred
	for i := range 1000 {
		pairs = append(pairs, fmt.Sprintf("%03d", i))
	}
	pairs = append(pairs, "a", "b0", "b1", "b2") // small ones
	families, turns := map[string]int{}, map[int]int{}
	small, seldom := 0, 0
	within := map[int]map[int]bool{2: {}, 3: {}, 4: {}, Few: {}}
	slow := map[int]int{}
	for run := range Runs {
		t.Setenv(Env, fmt.Sprint(run))
		some := Of(t, "a name", members, Few)
		assert.Equal(t, 0, some[0])
		assert.GreaterOrEqual(t, len(some), 1+99/Few)
		assert.Less(t, len(some), 20)
		for _, m := range some {
			seen[m]++
		}
		names := Choose(t, "another")(pairs, func(name string) string { return name[:1] })
		assert.InDelta(t, 1000/Instances, len(names)-2, 6)
		small += len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n[0] != 'b' }))
		if run < Instances {
			for _, n := range names {
				families[n]++
			}
		}
		turns[Turns(t, "a third", members[:3])[0]]++
		slow[SlowTurn()]++
		if mine("a slow test") {
			seldom++
			for _, in := range []int{2, 3, 4, Few} {
				for _, m := range Of(t, "within", members, in) {
					within[in][m] = true
				}
			}
		}
	}
	assert.InDelta(t, Runs/Templates, small, 2)
	assert.Equal(t, Runs/Slow, seldom)
	assert.Len(t, slow, Slow)
	for turn, runs := range slow {
		assert.Equal(t, Runs/Slow, runs, "turn %d", turn)
	}
	assert.Len(t, turns, 3)
	for in, some := range within {
		assert.Len(t, some, len(members), "of a slow test that takes one in %d", in)
	}
	assert.Len(t, seen, len(members))
	assert.Len(t, families, len(pairs))
	assert.Equal(t, Runs, seen[0])
	assert.Equal(t, Instances/Templates, families["a"])
	assert.Equal(t, 1, families["700"])

	t.Setenv(WholeEnv, "1")
	assert.Equal(t, members, Of(t, "a name", members, Few))
	t.Setenv(WholeEnv, "")
	t.Setenv(Env, fmt.Sprint(Runs))
	require.Panics(t, func() { Of(t, "a name", members, Few) })
}

// The parts of a whole run are all of it, once.
func TestParts(t *testing.T) {
	t.Setenv(WholeEnv, "1")
	members := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	seen := map[int]int{}
	for part := range 3 {
		t.Setenv(PartEnv, fmt.Sprintf("%d/3", part))
		for _, m := range Of(t, "a name", members, Few) {
			seen[m]++
		}
	}
	for _, m := range members {
		assert.Equal(t, 1, seen[m], "%d", m)
	}
	for _, wrong := range []string{"3/3", "-1/3", "x", "1/0", "1"} {
		t.Setenv(PartEnv, wrong)
		assert.Panics(t, func() { Parted(members) }, wrong)
	}
}

// Every turn but that of vet has slow tests, whatever their names, and make test starts vet in that one.
func TestSlowTurns(t *testing.T) {
	seen := map[int]int{}
	for i := range 1000 {
		seen[turnOf(fmt.Sprintf("Test%d", i))]++
	}
	assert.Len(t, seen, Slow-1)
	assert.NotContains(t, seen, VetTurn)
	for turn, tests := range seen {
		assert.InDelta(t, 1000/(Slow-1), tests, 60, "turn %d", turn)
	}
	text, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	assert.Contains(t, string(text), fmt.Sprintf("$$(((MLXC_SAMPLE + 5 * (MLXC_SAMPLE / %d)) %% %d)) = %d ]", Slow, Slow, VetTurn))
}
