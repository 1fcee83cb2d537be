//go:build linux && (amd64 || arm64)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
)

// TestRooms: of two even launches one after the other, one at least has no room for two of its blocks on a multiprocessor, and blocks of both have room there
// together.
func TestRooms(t *testing.T) {
	even, other, none := ptxmatrix.Fit{Resident: 2, Launches: 2, Teams: 3}, ptxmatrix.Fit{Rows: 1, Heads: 4}, ptxmatrix.Fit{}
	c := &code{}
	for _, f := range []ptxmatrix.Fit{none, even, even, none, even, other, even, even, even, other, other, even} {
		c.steps = append(c.steps, step{entry: &entry{form: form{fit: f}}})
	}
	c.rooms()
	var roomy []int
	for n, s := range c.steps {
		if s.room > 0 {
			require.EqualValues(t, ptxmatrix.Roomy, s.room)
			roomy = append(roomy, n)
		}
	}
	require.Equal(t, []int{1, 4, 6, 8, 11}, roomy)
}
