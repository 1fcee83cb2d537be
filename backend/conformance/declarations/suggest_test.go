package declarations

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// TestSuggest: for corruptions that only a witness can show, suggest finds one, which a source
// can have as a line.
func TestSuggest(t *testing.T) {
	found, all := 0, 0
	for _, f := range []string{"l2_norm_float32", "rmsfloat32", "vv_Addfloat32", "g2_copyfloat32float32", "rope_single_float32"} {
		d := msl.Declarations(f)[0]
		text, err := msl.Source(d.File)
		require.NoError(t, err)
		x := instance{f, 0, d}
		for _, m := range mutants(d) {
			wrong := append([]*decl.Decl{m.d}, msl.Declarations(f)[1:]...)
			if !errors.Is(dispatches.Witnessed(f, wrong), dispatches.ErrWitness) {
				continue
			}
			all++
			s, ok := strings.CutPrefix(suggest(x, m), "// @witness ")
			if !ok {
				t.Logf("%v: %v: nothing found", x, m)
				continue
			}
			found++
			read, err := decl.Parse(d.File, text+"// @witness "+s+"\n")
			require.NoError(t, err)
			tests, err := read.Tests()
			require.NoError(t, err)
			w := tests.Witnesses[len(tests.Witnesses)-1]
			assert.Equal(t, w.OK, dispatches.Describes(w, msl.Declarations(f)) == nil, s)
			assert.NotEqual(t, w.OK, dispatches.Describes(w, wrong) == nil, s)
		}
	}
	t.Logf("%d of %d", found, all)
	assert.Greater(t, found, all*9/10)
}
