package msltree

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHostile reads long sources in which every token could begin something that ends nowhere.
func TestHostile(t *testing.T) {
	for _, source := range []string{
		"int f() { return " + strings.Repeat("a<", 1<<17) + "a; }",
		"void f(" + strings.Repeat("a<", 1<<17) + ");",
		"int x = 0; " + strings.Repeat("# ", 1<<17),
		strings.Repeat("template [[host_name(\"k\")]] kernel decltype(f<int>) f<int>;\n", 1<<12),
	} {
		s, err := NewStream(source)
		require.NoError(t, err)
		u := Parse(s)
		_ = u.Entries()
		assert.Equal(t, source, s.String())
	}
}

// TestAngle: a list of template arguments ends, or it is a comparison.
func TestAngle(t *testing.T) {
	for source, want := range map[string]int{
		"<a, b<c>, (d)>": 12,
		"<a;>":           -1,
		"<" + strings.Repeat("a, ", maxAngle/2-2) + "a>": maxAngle - 1,
		"<" + strings.Repeat("a, ", maxAngle) + "a>":     -1,
	} {
		s, err := NewStream(source)
		require.NoError(t, err)
		assert.Equal(t, want, s.Angle(0), "%.20s", source)
	}
}

// TestDirectives: a # begins a directive where only space stands before it on its line.
func TestDirectives(t *testing.T) {
	s, err := NewStream("# 7 \"a.metal\"\nint x # y\n \t# 20 \"b.metal\"\nz")
	require.NoError(t, err)
	var got []string
	for _, k := range s.Tok {
		got = append(got, k.Text)
	}
	assert.Equal(t, []string{"int", "x", "#", "y", "z"}, got)
	assert.Equal(t, "b.metal", s.Tok[4].File)
	assert.Equal(t, 7, s.Tok[0].Line)
}
