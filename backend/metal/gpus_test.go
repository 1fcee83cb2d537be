//go:build linux

package metal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// TestOtherGPUs: a GPU older than the M1's gets a warning, and on one with simdgroups of another width than
// Apple's, kernels do not compile.
func TestOtherGPUs(t *testing.T) {
	g := testGraphs(t)["norm_mul"]
	for _, c := range []struct {
		family, width int
		warning, err  string
	}{
		{7, 32, "", ""},
		{6, 32, "software Metal is of none of Apple's GPU families from 7 (M1) on", ""},
		{7, 64, "", "this GPU has simdgroups of 64 threads, and kernels are written for 32, as all of Apple's GPUs have: use another device"},
	} {
		m := serve(t, fakemetal.Options{Family: c.family, SIMDWidth: c.width})
		var warnings []string
		d := open(t, metal.Options{Cache: metal.NoCache, Warn: func(s string) { warnings = append(warnings, s) }})
		p := &backend.Program{Graph: g, Places: make([]backend.Place, len(g.Memories))}
		for i := range g.Memories {
			if b, err := d.Alloc(backend.BufferSpec{Size: g.Memories[i].Size}); assert.NoError(t, err) {
				p.Places[i] = backend.At(b)
			}
		}
		e, err := d.Compile(context.Background(), p)
		if c.err == "" {
			require.NoError(t, err)
			require.NoError(t, e.Close())
		} else {
			require.ErrorContains(t, err, c.err)
		}
		if c.warning == "" {
			assert.Empty(t, warnings)
		} else if assert.Len(t, warnings, 1) {
			assert.Contains(t, warnings[0], c.warning)
		}
		for _, x := range p.Places {
			require.NoError(t, x.Buffer.Close())
		}
		require.NoError(t, d.Close())
		m.Close()
	}
}
