package mslcheck

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Each golden is an archive of one preprocessed source, NAME.metal, and of its result:
// the C++ (out.cpp) or the rules that it breaks (rules).
func TestRewriteGoldens(t *testing.T) {
	paths, err := filepath.Glob("testdata/rewrite_*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			require.NoError(t, err)
			require.NotEmpty(t, ar.Files)
			in := ar.Files[0]
			s, err := newStream("# 1 \"" + in.Name + "\"\n" + string(in.Data))
			require.NoError(t, err)
			u := parse(s)
			got := &txtar.Archive{Comment: ar.Comment, Files: []txtar.File{in}}
			var rules strings.Builder
			for _, d := range u.check() {
				rules.WriteString(d.String() + "\n")
			}
			if rules.Len() > 0 {
				got.Files = append(got.Files, txtar.File{Name: "rules", Data: []byte(rules.String())})
			}
			got.Files = append(got.Files, txtar.File{Name: "out.cpp", Data: []byte(u.emit())})
			if *update {
				require.NoError(t, os.WriteFile(path, txtar.Format(got), 0o644))
				return
			}
			assert.Empty(t, cmp.Diff(string(txtar.Format(ar)), string(txtar.Format(got))), "golden -, got +; -update rewrites")
		})
	}
}

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
		s, err := newStream(src)
		if err != nil {
			return // brackets that do not pair
		}
		assert.Equal(t, src, s.String())
		for i := range s.Tok {
			if m := s.match[i]; m >= 0 {
				assert.Equal(t, i, s.match[m])
				assert.Contains(t, []string{"()", "[]", "{}", ")(", "][", "}{"}, s.At(i)+s.At(m))
			}
		}
	})
}

// Rewriting moves no line, so a message of clang names the right line of the source.
func TestRewritingKeepsLines(t *testing.T) {
	paths, err := filepath.Glob("../../../msl/*.metal")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	// Lines stay if no token gets a newline and every token keeps its lead.
	marked := regexp.MustCompile(`(?m)^.*\n`)
	for _, path := range paths {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		code := regexp.MustCompile(`(?m)//.*$|^#(define|include)(.*\\\n)*.*$`).ReplaceAllStringFunc(string(src), func(s string) string {
			return strings.Repeat("\n", strings.Count(s, "\n"))
		})
		s, err := newStream(code)
		require.NoError(t, err, path)
		u := parse(s)
		out := strings.SplitAfterN(u.emit(), "\n", 2)[1]
		in, got := marked.FindAllString(code, -1), marked.FindAllString(out, -1)
		require.GreaterOrEqual(t, len(got), len(in), path)
		for _, f := range u.functions {
			l := u.Tok[f.tok].Line - 1
			assert.Contains(t, got[l], f.name, "%s:%d", path, l+1)
		}
	}
}

func TestLineMarkers(t *testing.T) {
	toks, _, err := lex("# 1 \"a.metal\"\nx\n\ny # 3\n# 40 \"b c.h\" 1 3\n\nz\n#pragma once\nw")
	require.NoError(t, err)
	var got []string
	for _, k := range toks {
		got = append(got, diagnostic{k.File, k.Line, k.Text}.String())
	}
	assert.Equal(t, []string{
		"a.metal:1: error: x", "a.metal:3: error: y", "a.metal:3: error: #", "a.metal:3: error: 3",
		"b c.h:41: error: z", "b c.h:43: error: w",
	}, got)
}

func TestUnpairedBracketsAreNamed(t *testing.T) {
	for src, want := range map[string]string{
		"# 1 \"f\"\nvoid f() {\n(\n}": `f:3: error: "}" closes nothing`,
		"# 1 \"f\"\n}":                `f:1: error: "}" closes nothing`,
		"# 1 \"f\"\na[\n":             `f:1: error: "[" is never closed`,
		"# 1 \"f\"\n\n\"abc":          `f:2: a literal does not end`,
	} {
		_, err := newStream(src)
		assert.EqualError(t, err, want, "%q", src)
	}
}

// The rewriter reads and writes any source without a panic.
func FuzzRewrite(f *testing.F) {
	paths, err := filepath.Glob("testdata/rewrite_*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, p := range paths {
		ar, err := txtar.ParseFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(ar.Files[0].Data))
	}
	for _, s := range []string{"operator", "operator(", "operator()", "(a)", "template<", "template <a", "[[", "[[a]]", "template [[kernel]] f<", "kernel void f(", "namespace", "extern \"C\" {}", "x[[a(b)]];", "(device a*)", "(device a*)&", "struct", "vec<a>(", "threadgroup x", "a(const", "a(b*,c[],d=)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s, err := newStream(src)
		if err != nil {
			return
		}
		u := parse(s)
		u.check()
		u.emit()
	})
}
