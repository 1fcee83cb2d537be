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

	"github.com/mlxc/mlxc/internal/toolchain/msltree"
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
			s, err := msltree.NewStream("# 1 \"" + in.Name + "\"\n" + string(in.Data))
			require.NoError(t, err)
			u := &unit{msltree.Parse(s)}
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
		s, err := msltree.NewStream(code)
		require.NoError(t, err, path)
		u := &unit{msltree.Parse(s)}
		out := strings.SplitAfterN(u.emit(), "\n", 2)[1]
		in, got := marked.FindAllString(code, -1), marked.FindAllString(out, -1)
		require.GreaterOrEqual(t, len(got), len(in), path)
		for _, f := range u.Functions {
			l := u.Tok[f.Tok].Line - 1
			assert.Contains(t, got[l], f.Name, "%s:%d", path, l+1)
		}
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
		s, err := msltree.NewStream(src)
		if err != nil {
			return
		}
		u := &unit{msltree.Parse(s)}
		u.check()
		u.emit()
	})
}
