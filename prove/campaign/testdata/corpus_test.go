package prove

// This file is compiled into the tests of package prove by
// TestEveryCheckIsNeeded, together with a prover that has a switch at each check.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// TestHarmfulCorpus checks that none of the harmful changes of a folder is proved. For each change
// it also prints the checks without which the change would be proved; it tries each check that the
// change reaches.
func TestHarmfulCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("MLXC_PROVE_CORPUS"), "*.before"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	slices.Sort(files)
	read := func(path string) *ir.Graph {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		m, err := mlxt.Parse(context.Background(), path, text)
		require.NoError(t, err)
		return m.Graphs[0]
	}
	// A prover that lacks a check may stumble: that is noticed too.
	proved := func(before, after *ir.Graph) (proved bool) {
		defer func() { proved = proved || recover() != nil }()
		r := Check(context.Background(), before, after, Options{})
		trusts := slices.ContainsFunc(r.Assumptions, func(a string) bool { return strings.HasSuffix(a, "reads no memory that it does not bind") })
		return r.Verdict == Proved && !trusts
	}
	needed := map[int]bool{}
	for _, n := range strings.Fields(os.Getenv("MLXC_PROVE_NEEDED")) {
		k, err := strconv.Atoi(n)
		require.NoError(t, err)
		needed[k] = true
	}
	debug.SetMaxStack(64 << 20) // see TestEveryCheckIsNeeded
	of, _ := strconv.Atoi(os.Getenv("MLXC_PROVE_SHARDS"))
	shard, _ := strconv.Atoi(os.Getenv("MLXC_PROVE_SHARD"))
	for i, f := range files {
		if of > 0 && i%of != shard {
			continue
		}
		before, after := read(f), read(strings.TrimSuffix(f, "before")+"after")
		reached := watchChecks(func() { require.False(t, proved(before, after), f) })
		for _, n := range reached {
			if needed[n] {
				continue
			}
			fmt.Printf("trying %d\n", n)
			switchOff(n)
			if proved(before, after) {
				needed[n] = true
			}
		}
		switchOff(-1)
	}
	for n := range needed {
		fmt.Printf("needed %d\n", n)
	}
}
