package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// seedEnv names the environment variable that chooses which kernels the tests compile.
const seedEnv = "COVERAGE_SEED"

func seed(t *testing.T) uint64 {
	text := os.Getenv(seedEnv)
	if text == "" {
		return 20261122 + uint64(sample.Run())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, seedEnv)
	return n
}

// compiles compiles kernels of MLX 0.32.4, each of another family, those from the given one on.
func compiles(t *testing.T, c checker, from, count int) {
	compiler, err := clang.Find(t.Context())
	require.NoError(t, err)
	lib := metallibs.Open(t, "0.32.4")
	var names []string
	for _, k := range lib.Kernels {
		names = append(names, k.Name)
	}
	s := seed(t)
	t.Logf("%d kernels by the seed %d (%s chooses another), %s", count, s, seedEnv, compiler)
	names = inOrder(names, s)[from : from+count]
	if !sample.Whole() {
		names = names[:count/sample.Few]
	}
	c.compiler = compiler
	next := make(chan string)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for name := range next {
				if err := c.check(t.Context(), lib, name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	for _, n := range names {
		next <- n
	}
	close(next)
	workers.Wait()
}

// TestHost compiles kernels for this machine: 300, of which a run of make test takes an eighth.
func TestHost(t *testing.T) {
	sample.Seldom(t)
	compiles(t, checker{}, 0, 300)
}

// TestARM compiles 40 others for another.
func TestARM(t *testing.T) {
	sample.Long(t)
	compiles(t, checker{target: "aarch64-linux-gnu"}, 300, 40)
}

// TestPTX compiles 60 others to PTX.
func TestPTX(t *testing.T) {
	sample.Long(t)
	compiles(t, checker{ptx: true}, 340, 60)
}

// small writes a library of two kernels; with bad, clang cannot read the second one.
func small(t *testing.T, bad bool) string {
	fs := metallibs.Functions(t, "v_Absfloat32float32", "vv_Addint32")
	if bad {
		module := fs[1].Bitcode
		// Behind the wrapper of 20 bytes and the magic number.
		for i := 24; i < 64; i++ {
			module[i] ^= 0x55
		}
	}
	path := filepath.Join(t.TempDir(), "small.metallib")
	require.NoError(t, os.WriteFile(path, metallibs.Write(fs), 0o600))
	return path
}

// TestCommand runs the command: what passes is remembered, shards are parts, failures are
// grouped and make the exit code 1.
func TestCommand(t *testing.T) {
	do := func(code int, args ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		assert.Equal(t, code, run(t.Context(), args, &stdout, &stderr), "%v\n%s%s", args, &stdout, &stderr)
		return stdout.String(), stderr.String()
	}
	good, results := small(t, false), filepath.Join(t.TempDir(), "results")
	out, _ := do(0, "-shard", "2/2", "-results", results, good)
	assert.Contains(t, out, "of 1 kernels, 1 compile")
	lines := func() int {
		data, err := os.ReadFile(results)
		require.NoError(t, err)
		return bytes.Count(data, []byte("\n"))
	}
	assert.Equal(t, 1, lines())
	// A run that was interrupted while it wrote.
	f, err := os.OpenFile(results, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"With":"`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for range 2 {
		out, _ = do(0, "-results", results, good)
		assert.Contains(t, out, "of 2 kernels, 2 compile")
		assert.Equal(t, 2, lines())
	}
	out, _ = do(1, small(t, true))
	assert.Contains(t, out, "of 2 kernels, 1 compile")
	assert.Contains(t, out, "vv_AddT")
	do(2, "-shard", "3/2", good)
	do(2)
	_, stderr := do(3, "-results", results, filepath.Join(t.TempDir(), "none"))
	assert.Contains(t, stderr, "none")
	require.NoError(t, os.WriteFile(results, []byte("{\n"), 0o600))
	_, stderr = do(3, "-results", results, good)
	assert.Contains(t, stderr, "results:1: no line of results")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	assert.NotZero(t, run(stopped, []string{good}, &bytes.Buffer{}, &bytes.Buffer{}))
}

// TestOrder checks that one of each family comes first, that every name comes once, and that
// the seed decides.
func TestOrder(t *testing.T) {
	names := []string{"v_Absfloat32float32", "v_Absint8int8", "vv_Addbfloat16", "vv_Addint32", "v_Absbool_bool_", "g1_Addint32"}
	assert.Equal(t, "v_AbsTT", family(names[0]))
	assert.Equal(t, family(names[0]), family(names[4]))
	orders := map[string]bool{}
	for seed := range uint64(20) {
		got := inOrder(names, seed)
		assert.ElementsMatch(t, names, got)
		var families []string
		for _, n := range got[:3] {
			families = append(families, family(n))
		}
		slices.Sort(families)
		assert.Equal(t, []string{"gN_AddT", "v_AbsTT", "vv_AddT"}, families)
		orders[strings.Join(got, " ")] = true
	}
	assert.Greater(t, len(orders), 5)
}

// TestReasons checks which errors count as the same failure.
func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		"kernel: kernel f: clang: exit status 1\n/tmp/x/plain.ll:51:17: error: expected type\n 51 | define\n": "expected type",
		"kernel: kernel f: the object needs __truncsfbf2":                                                     "the object needs __truncsfbf2",
		"kernel: kernel f: clang: exit status 1\nerror: use of undefined value '%12'":                         "use of undefined value '%…'",
	} {
		assert.Equal(t, want, reason(text))
	}
}
