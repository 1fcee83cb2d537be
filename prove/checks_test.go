package prove_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/oracle"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/prove"
)

// corpusVar names the directory of harmful changes that TestHarmfulCorpus
// reads; offVar the check that an instrumented prover leaves out.
const (
	corpusVar = "MLXC_PROVE_CORPUS"
	offVar    = "MLXC_PROVE_CHECK_OFF"
)

// No change of the corpus that TestEveryCheckIsNeeded made is proved. By
// itself, the test makes a small one.
func TestHarmfulCorpus(t *testing.T) {
	dir := os.Getenv(corpusVar)
	if dir == "" {
		dir = t.TempDir()
		writeCorpus(t, dir, 2)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.before"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	read := func(path string) *ir.Graph {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		m, err := mlxt.Parse(context.Background(), path, text)
		require.NoError(t, err)
		return m.Graphs[0]
	}
	for _, f := range files {
		r := prove.Check(context.Background(), read(f), read(strings.TrimSuffix(f, "before")+"after"), prove.Options{})
		require.True(t, r.Verdict != prove.Proved || trusts(r), "%s", f)
	}
}

// writeCorpus writes changes that the oracle calls harmful, a pair of files each.
func writeCorpus(t *testing.T, dir string, perClass int) {
	var mu sync.Mutex
	n := 0
	_, err := oracle.Campaign(oracle.CampaignOptions{PerClass: perClass, Seed: 3, Also: recordings(t), Judged: func(before, after *ir.Graph, j oracle.Judgement) {
		if j.Verdict != oracle.Harmful {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		n++
		for name, g := range map[string]*ir.Graph{"before": before, "after": after} {
			text := mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}})
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.%s", n, name)), []byte(text), 0o644); err != nil {
				t.Error(err)
			}
		}
	}}, func(before, after *ir.Graph) (oracle.Answer, string) { return oracle.Refused, "" })
	require.NoError(t, err)
	require.Greater(t, n, 10*perClass)
}

// Every check of the prover is needed: without it, one of the package's fast
// tests fails. Checks are the calls that report or assume something, and the
// returns that say that two things differ.
func TestEveryCheckIsNeeded(t *testing.T) {
	if os.Getenv(offVar) != "" {
		t.Fatal("an instrumented prover tests itself")
	}
	dir := t.TempDir()
	corpus := filepath.Join(dir, "corpus")
	require.NoError(t, os.Mkdir(corpus, 0o755))
	writeCorpus(t, corpus, 12)
	binary, checks := instrumented(t, dir)
	run := func(off int) (out []byte, err error) {
		// The corpus is slow, and most checks are needed by something small.
		for _, tests := range []string{"^(TestChecks.*|TestFusions|TestMutations|TestPassesAreProved|TestDroppedBarriersAreRefused)$", "^TestHarmfulCorpus$"} {
			cmd := exec.Command(binary, "-test.run", tests, "-test.failfast", "-rapid.nofailfile")
			cmd.Env = append(os.Environ(), corpusVar+"="+corpus, fmt.Sprintf("%s=%d", offVar, off))
			if out, err = cmd.CombinedOutput(); err != nil {
				return out, err
			}
		}
		return out, nil
	}
	out, err := run(-1)
	require.NoError(t, err, "with every check: %s", out)
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := make(chan int)
	var survived []string
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				if _, err := run(i); err == nil {
					t.Logf("no test fails without %s", checks[i])
					mu.Lock()
					survived = append(survived, checks[i])
					mu.Unlock()
				}
			}
		})
	}
	for i := range checks {
		next <- i
	}
	close(next)
	wg.Wait()
	slices.Sort(survived)
	t.Logf("%d checks left out in turn", len(checks))
	require.Empty(t, survived, "no test fails without:\n%s", strings.Join(survived, "\n"))
}

// instrumented builds the package's tests with a switch at every check.
func instrumented(t *testing.T, dir string) (binary string, checks []string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	overlay := map[string]string{}
	add := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		abs, err := filepath.Abs(name)
		require.NoError(t, err)
		overlay[abs] = path
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") || f == "doc.go" {
			continue
		}
		if f == "search.go" || f == "hash.go" { // hints: nothing is believed because of them
			continue
		}
		src, err := os.ReadFile(f)
		require.NoError(t, err)
		add(f, instrument(t, f, string(src), &checks))
	}
	add("switch.go", `package prove

import (
	"os"
	"strconv"
)

var switchedOff = func() int { n, _ := strconv.Atoi(os.Getenv("`+offVar+`")); return n }()

func checkOff(n int) bool { return n == switchedOff }

func checkOffValue[T any](n int, v T) T {
	if checkOff(n) {
		var zero T
		return zero
	}
	return v
}
`)
	table, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, table, 0o644))
	binary = filepath.Join(dir, "prove.test")
	cmd := exec.Command("go", "test", "-c", "-overlay", list, "-o", binary, ".")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary, checks
}

// instrument puts a switch at every check of a file.
func instrument(t *testing.T, name, src string, checks *[]string) string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	require.NoError(t, err)
	type edit struct {
		at, end int
		text    string
	}
	var edits []edit
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	note := func(n ast.Node) int {
		text := src[offset(n.Pos()):offset(n.End())]
		*checks = append(*checks, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), strings.SplitN(text, "\n", 2)[0]))
		return len(*checks) - 1
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		predicate := fn.Type.Results != nil && len(fn.Type.Results.List) == 1 && isIdent(fn.Type.Results.List[0].Type, "bool")
		result := ""
		if fn.Type.Results != nil && len(fn.Type.Results.List) == 1 {
			if id, ok := fn.Type.Results.List[0].Type.(*ast.Ident); ok {
				result = id.Name
			}
		}
		words := result == "difference" || result == "answer" || fn.Name.Name == "blobsDiffer" // says what differs
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return !predicate && !words // its returns are another function's
			case *ast.ExprStmt:
				call, ok := n.X.(*ast.CallExpr)
				if !ok {
					return true
				}
				what := ""
				switch f := call.Fun.(type) {
				case *ast.Ident:
					what = f.Name
				case *ast.SelectorExpr:
					if x, ok := f.X.(*ast.Ident); ok && (x.Name == "p" || x.Name == "r") {
						what = x.Name + "." + f.Sel.Name
					}
				}
				switch what {
				case "giveUp", "fail", "p.add", "p.assume", "r.add":
					edits = append(edits, edit{offset(n.Pos()), offset(n.Pos()), fmt.Sprintf("if !checkOff(%d) { ", note(n))}, edit{offset(n.End()), offset(n.End()), " }"})
				}
			case *ast.ReturnStmt:
				if len(n.Results) != 1 {
					return true
				}
				x := n.Results[0]
				switch {
				case predicate && isIdent(x, "false"):
					edits = append(edits, edit{offset(x.Pos()), offset(x.End()), fmt.Sprintf("checkOff(%d)", note(n))})
				case words && saysDifferent(src[offset(x.Pos()):offset(x.End())]):
					edits = append(edits, edit{offset(x.Pos()), offset(x.Pos()), fmt.Sprintf("checkOffValue(%d, ", note(n))}, edit{offset(x.End()), offset(x.End()), ")"})
				}
			}
			return true
		})
	}
	slices.SortStableFunc(edits, func(x, y edit) int { return y.at - x.at })
	for _, e := range edits {
		src = src[:e.at] + e.text + src[e.end:]
	}
	return src
}

// saysDifferent reports whether the text of a result says that two things differ, or
// may.
func saysDifferent(text string) bool {
	if strings.HasPrefix(text, "difference{}") {
		return false
	}
	for _, x := range []string{"differ", "unsure", "anotherKernel", "difference{text", "fmt.Sprintf", `"other bytes"`, "err.Error()"} {
		if strings.HasPrefix(text, x) {
			return true
		}
	}
	return false
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
