package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/metal/litmus"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestBrokenGPU: a GPU that ignores barriers fails the litmus tests of barriers and conformance tests; one that
// keeps them passes, and its profile has the optional orders that were seen.
func TestBrokenGPU(t *testing.T) {
	sample.Seldom(t)
	for _, ignored := range []fakemetal.Order{0, fakemetal.Barriers} {
		l := fakemetal.Build(t)
		require.NoError(t, objc.Load(l.Path))
		m := l.Serve(t, fakemetal.Options{Seed: 9, IndirectBarriers: true, Ignored: ignored})
		d, err := metal.Open(metal.Options{})
		require.NoError(t, err)
		r, err := Examine(t.Context(), Options{Device: d, Quick: true, Only: "order/*", Litmus: func(ctx context.Context, begin func(string, float64)) ([]verdict.Result, error) {
			// Like the command's, without grids of no threads, which the stand-in notes as a mistake.
			return litmus.Run(ctx, litmus.Options{Trials: 4, Begin: begin, Only: "[ei][n]*/*"})
		}})
		require.NoError(t, err)
		require.NoError(t, d.Close())
		assert.Equal(t, ignored == 0, r.OK(), "%+v", r.Failures)
		assert.True(t, r.Seen().IndirectBarriers)
		assert.False(t, r.Seen().Fences, "they were not tested")
		assert.NotEmpty(t, r.Facts)
		if ignored != 0 {
			text := ""
			for _, f := range r.Failures {
				text += f.Part + " " + f.What + "\n"
				assert.True(t, strings.HasPrefix(f.Next, "send the report"), "%+v", f)
			}
			assert.Contains(t, text, "orders encoder/barrier: ")
			assert.Contains(t, text, "orders indirect/ranges: ")
			assert.Contains(t, text, "conformance order/")
		}
		m.Close()
		assert.Empty(t, l.Failures())
	}
}

// inChild is the variable that tells TestChild how its GPU behaves: "warm", "cold" or "dies".
const inChild = "MLXC_TEST_LITMUS"

// TestApart: the test of cold pipelines runs in a process of its own. Its result, or that the process has died,
// is the result here.
func TestApart(t *testing.T) {
	for in, want := range map[string]string{"warm": "", "cold": "element 0 is", "dies": "exit status 3\nit is cold here"} {
		t.Setenv(inChild, in)
		l := fakemetal.Build(t)
		require.NoError(t, objc.Load(l.Path))
		m := l.Serve(t, fakemetal.Options{Family: 9})
		d, err := metal.Open(metal.Options{})
		require.NoError(t, err)
		results, err := d.Litmus(t.Context(), verdict.Options{Trials: 1, Only: "indirect/cold", Apart: Apart(os.Args[0], "-test.run=^TestChild$")})
		require.NoError(t, err)
		require.NoError(t, d.Close())
		require.Len(t, results, 1)
		if want == "" {
			assert.Equal(t, verdict.Passed, results[0].Verdict, "%+v", results[0])
		} else {
			assert.Equal(t, verdict.Failed, results[0].Verdict, "%+v", results[0])
			assert.Contains(t, results[0].Detail, want)
		}
		m.Close()
	}
}

// TestChild is what the other process of TestApart runs.
func TestChild(t *testing.T) {
	in := os.Getenv(inChild)
	if in == "" {
		t.Skip("TestApart runs it")
	}
	if in == "dies" {
		fmt.Fprintln(os.Stderr, "it is cold here")
		os.Exit(3)
	}
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	l.Serve(t, fakemetal.Options{Family: 9, ColdPipelines: in == "cold"})
	results, err := litmus.Run(t.Context(), litmus.Options{Trials: 1, Spin: 3, Only: os.Args[len(os.Args)-1]})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.NoError(t, json.NewEncoder(os.Stdout).Encode(results[0]))
}
