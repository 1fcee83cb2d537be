package term_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/msl/term"
)

// scope is a small declaration: integers n, m and s[0], s[1], a float eps,
// arguments x and y f32[·,·], v f32[·], id i32[·], abbreviations inv[r] (float),
// at[r] (integer) and big[r] (condition).
type scope struct{}

var symbols = []struct {
	name string
	kind term.Kind
}{{"n", term.Int}, {"m", term.Int}, {"s[0]", term.Int}, {"s[1]", term.Int}, {"eps", term.Float}}

func (scope) Symbol(name string) (int, term.Kind, bool) {
	for i, s := range symbols {
		if s.name == name {
			return i, s.kind, true
		}
	}
	return 0, 0, false
}

func (scope) Load(name string) (index, rank int, kind term.Kind, ok bool) {
	switch name {
	case "x":
		return 0, 2, term.Float, true
	case "y":
		return 1, 2, term.Float, true
	case "v":
		return 2, 1, term.Float, true
	case "id":
		return 3, 1, term.Int, true
	}
	return 0, 0, 0, false
}

func (scope) Abbrev(name string) (index, params int, kind term.Kind, ok bool) {
	switch name {
	case "inv":
		return 0, 1, term.Float, true
	case "at":
		return 1, 1, term.Int, true
	case "big":
		return 2, 1, term.Bool, true
	}
	return 0, 0, 0, false
}

func parse(t testing.TB, src string, vars ...string) *term.Expr {
	t.Helper()
	e, err := term.Parse(src, scope{}, vars...)
	require.NoError(t, err)
	return e
}
