package mlxt

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// editsSlowly is the textbook's recursion.
func editsSlowly(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	d := editsSlowly(a[1:], b[1:])
	if a[0] != b[0] {
		d++
	}
	d = min(d, editsSlowly(a[1:], b)+1, editsSlowly(a, b[1:])+1)
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, editsSlowly(a[2:], b[2:])+1)
	}
	return d
}

func TestEdits(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		if want, got := min(limit, editsSlowly(a, b)), edits(a, b, limit); want != got {
			t.Fatalf("edits(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"memory", "param", "kernel", "end", "x", "y0"}
	for s, want := range map[string]string{
		"memroy": "memory", "parma": "param", "kernels": "kernel", "ned": "end", "z": "", "yo": "y0", "grid": "", "": "",
	} {
		require.Equal(t, want, nearest(s, slices.Values(words)), s)
	}
	require.Equal(t, "aab", nearest("aaa", slices.Values([]string{"aab", "aac"})), "the first of equals")
}
