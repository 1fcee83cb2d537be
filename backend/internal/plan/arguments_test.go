//go:build (darwin || linux) && (amd64 || arm64)

package plan

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// TestArguments: what a GPU does not take is an error that names the argument, whatever the params are.
func TestArguments(t *testing.T) {
	const text = `mlxt 1

graph g {
  param $pos u32 in [0, 7]
  memory %x input 64 f16[32]
  memory %y output 64 f16[32]
  kernel @k builtin "k" args(0 a: device f16 read, 1 s: constant f16, 2 c: device f16 write)

  #0 @k (a = A, s = S, c = %y[0:32]) grid threads [16, 1, 1] of [16, 1, 1]
}
`
	for _, x := range []struct{ a, s, want string }{
		{"%x[2:34]", "%x[4:6]", ""},
		{"%x[2:34]", "1.5", ""},
		{"%x[2 * $pos:2 * $pos + 32]", "%x[4 * $pos:4 * $pos + 2]", ""},
		{"%x[1:33]", "%x[4:6]", "argument 0 (a): %x[1:33] begins at an address that is no multiple of 2 bytes"},
		{"%x[$pos:$pos + 32]", "%x[4:6]", "argument 0 (a): %x[$pos:$pos + 32] begins at an address that is no multiple of 2 bytes"},
		{"%x[2:34]", "%x[2:4]", "argument 1 (s): %x[2:4] begins at an address that is no multiple of 4 bytes"},
		{"%x[2:34]", "%x[2 * $pos:2 * $pos + 2]", "argument 1 (s): %x[2*$pos:2*$pos + 2] begins at an address that is no multiple of 4 bytes"},
	} {
		m, err := mlxt.Parse(context.Background(), "t", []byte(strings.NewReplacer("a = A", "a = "+x.a, "s = S", "s = "+x.s).Replace(text)))
		require.NoError(t, err)
		g := m.Graphs[0]
		err = Arguments(g, g.Nodes[0].(*ir.Dispatch))
		if x.want == "" {
			assert.NoError(t, err, "%+v", x)
			continue
		}
		assert.ErrorContains(t, err, x.want, "%+v", x)
	}
}
