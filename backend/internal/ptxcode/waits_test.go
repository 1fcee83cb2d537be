package ptxcode

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/msl"
)

// TestOwnKernelsWait: kernels of ours that mark where they begin to read what other dispatches wrote do wait there,
// and products with a vector load their matrices before. One kernel of each declaration is looked at.
func TestOwnKernelsWait(t *testing.T) {
	sample.Seldom(t)
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	files, err := fs.Glob(msl.Own(), "*.metal")
	require.NoError(t, err)
	there := 0
	taken := map[string]bool{} // a sample of the first instances of all templates
	all := slices.DeleteFunc(msl.Functions(), func(f string) bool { return msl.Declarations(f)[0].Of != nil })
	firsts := map[string]bool{}
	all = slices.DeleteFunc(all, func(f string) bool {
		template := msl.Declarations(f)[0].Family()
		defer func() { firsts[template] = true }()
		return firsts[template]
	})
	for _, f := range sample.Families(t, t.Name(), all, func(f string) string { return msl.Declarations(f)[0].File }, sample.Few) {
		taken[f] = true
	}
	for _, file := range files {
		text, err := msl.Source(file)
		require.NoError(t, err)
		if !strings.Contains(text, "wait_for_dispatches();") {
			continue
		}
		var names []string
		for _, name := range msl.Functions() {
			if d := msl.Declarations(name)[0]; d.File == file && taken[name] {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			continue
		}
		u, err := mslc.Compile(t.Context(), file, text, mslc.Options{Kernels: names})
		require.NoError(t, err)
		for i := range u.Kernels {
			k := &u.Kernels[i]
			module, err := u.Module(k.Name)
			require.NoError(t, err)
			early, reason, err := nvptx.Waits(t.Context(), c, air.Input{Name: filepath.Base(file), IR: []byte(module), Kernel: k})
			require.NoError(t, err)
			if len(early) > 0 {
				there++
			}
			if strings.Contains(k.Name, "gather_") { // writes NaN for an index outside of its stack
				assert.Contains(t, reason, "store", k.Name)
			} else {
				assert.Empty(t, reason, "%s: %s", file, k.Name)
			}
			if strings.Contains(k.Name, "_qmv_") && !strings.Contains(k.Name, "gather_") { // its matrix takes longest to load
				for _, a := range k.Args {
					if a.Space == air.Device && slices.ContainsFunc([]string{"w", "scales", "biases"}, func(p string) bool { return strings.HasPrefix(a.Name, p) }) {
						assert.Contains(t, early, a.Index, "%s: %s", k.Name, a.Name)
					}
				}
			}
		}
	}
	assert.Positive(t, there)
	t.Log(there, "kernels read before they wait")
}
