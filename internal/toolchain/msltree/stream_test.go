package msltree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The tokens and the text between them make up the whole source, and brackets pair.
func TestStreamKeepsEveryByte(t *testing.T) {
	words := []string{"a", "kernel", "template", "<", ">", ">>", "(", ")", "[", "]", "[[", "]]", "{", "}", ";", "::", "1.5e-3f", "0x1e+2", ".5h",
		"\"s \\\" }\"", "'}'", " ", "\n", "\t", "\n# 7 \"f.metal\"\n", "\n#pragma clang fp contract(off)\n", "->*", "&&", "operator", "device", ",", "*", "="}
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "words"), "")
		toks, tail, err := lex(src)
		require.NoError(t, err)
		var b strings.Builder
		for _, k := range toks {
			b.WriteString(k.Lead + k.Text)
		}
		assert.Equal(t, src, b.String()+tail)
		s, err := NewStream(src)
		if err != nil {
			return // brackets that do not pair
		}
		assert.Equal(t, src, s.String())
		for i := range s.Tok {
			if m := s.Match[i]; m >= 0 {
				assert.Equal(t, i, s.Match[m])
				assert.Contains(t, []string{"()", "[]", "{}", ")(", "][", "}{"}, s.At(i)+s.At(m))
			}
		}
	})
}

func TestLineMarkers(t *testing.T) {
	toks, _, err := lex("# 1 \"a.metal\"\nx\n\ny # 3\n# 40 \"b c.h\" 1 3\n\nz\n#pragma once\nw")
	require.NoError(t, err)
	var got []string
	for _, k := range toks {
		got = append(got, fmt.Sprintf("%s:%d: %s", k.File, k.Line, k.Text))
	}
	assert.Equal(t, []string{
		"a.metal:1: x", "a.metal:3: y", "a.metal:3: #", "a.metal:3: 3",
		"b c.h:41: z", "b c.h:43: w",
	}, got)
}

func TestUnpairedBracketsAreNamed(t *testing.T) {
	for src, want := range map[string]string{
		"# 1 \"f\"\nvoid f() {\n(\n}": `f:3: error: "}" closes nothing`,
		"# 1 \"f\"\n}":                `f:1: error: "}" closes nothing`,
		"# 1 \"f\"\na[\n":             `f:1: error: "[" is never closed`,
		"# 1 \"f\"\n\n\"abc":          `f:2: a literal does not end`,
	} {
		_, err := NewStream(src)
		assert.EqualError(t, err, want, "%q", src)
	}
}
