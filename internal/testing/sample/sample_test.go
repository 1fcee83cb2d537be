package sample

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryMember: 64 runs take every member of every family, each run the first and at least one in
// eight of the others.
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
	families := map[string]int{}
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
		assert.GreaterOrEqual(t, len(names), 10+990/Instances)
		assert.LessOrEqual(t, len(names), 10+990/Instances+1)
		for _, n := range names {
			families[n]++
		}
	}
	assert.Len(t, seen, len(members))
	assert.Len(t, families, len(pairs))
	assert.Equal(t, Runs, seen[0])
	assert.Equal(t, Runs, families["700"])

	t.Setenv(WholeEnv, "1")
	assert.Equal(t, members, Of(t, "a name", members, Few))
	t.Setenv(WholeEnv, "")
	t.Setenv(Env, fmt.Sprint(Runs))
	require.Panics(t, func() { Of(t, "a name", members, Few) })
}
