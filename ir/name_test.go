package ir_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

func TestQuoteName(t *testing.T) {
	for name, want := range map[string]string{
		"x": "x", "_": "_", "kv.0-k": "kv.0-k", "Z9_": "Z9_", "x.": "x.",
		"": `""`, "0x": `"0x"`, ".x": `".x"`, "-x": `"-x"`, "two words": `"two words"`, `a"b`: `"a\"b"`, "é": `"é"`, "\xff": `"\xff"`, "a\n": `"a\n"`, "%x": `"%x"`,
	} {
		require.Equal(t, want, ir.QuoteName(name))
	}
	bare := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9_.-]{0,5}`), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "name")
		q := ir.QuoteName(s)
		if bare.MatchString(s) {
			if q != s {
				t.Fatalf("bare name %q is written %s", s, q)
			}
		} else if u, err := strconv.Unquote(q); err != nil || u != s {
			t.Fatalf("%q is written %s, which is %q (%v)", s, q, u, err)
		}
	})
}
