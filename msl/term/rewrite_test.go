package term

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyKnownRewritesCanBeAllowed(t *testing.T) {
	require.NoError(t, CheckAllowed(nil))
	require.EqualError(t, CheckAllowed([]string{"fma"}), `there is no rewrite "fma": none can be allowed yet, all that are made are exact to the bit`)
	known := []Rewrite{{Name: "fma"}, {Name: "reassociate"}}
	require.NoError(t, checkAllowed([]string{"reassociate", "fma"}, known))
	require.EqualError(t, checkAllowed([]string{"fma", "fast"}, known), `there is no rewrite "fast" (there are fma, reassociate)`)
}
