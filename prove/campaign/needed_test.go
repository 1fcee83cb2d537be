package campaign

import (
	"cmp"
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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// smallTests are the tests of package prove that make their own graphs.
const smallTests = "^(TestChecks.*|TestFusions|TestMutations|TestPassesAreProved|TestDroppedBarriersAreRefused)$"

// writeCorpus writes mutations that the judge calls harmful, as pairs of files.
func writeCorpus(t *testing.T, dir string, perClass int) {
	var mu sync.Mutex
	n := 0
	_, err := judge.Campaign(judge.CampaignOptions{PerClass: perClass, Seed: 3, Also: recorded.Graphs(t), Judged: func(before, after *ir.Graph, j judge.Judgement) {
		if j.Verdict != judge.Harmful {
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
	}}, func(before, after *ir.Graph) (judge.Answer, string) { return judge.Refused, "" })
	require.NoError(t, err)
	require.Greater(t, n, 10*perClass)
}

// Every check of the prover is needed: without it a harmful mutation is proved, or one
// of the package's small tests fails. Checks are the calls that report or assume
// something, and the returns that say that two things differ.
func TestEveryCheckIsNeeded(t *testing.T) {
	sample.Long(t)
	if !sample.Takes(t.Name(), 0, sample.Rare) {
		t.Logf("one in sixteen runs tests this: %s=1", sample.WholeEnv)
		return
	}
	dir := t.TempDir()
	corpus := filepath.Join(dir, "corpus")
	require.NoError(t, os.Mkdir(corpus, 0o755))
	writeCorpus(t, corpus, 24)
	p := instrumented(t, dir)
	needed := make([]bool, len(p.checks))

	// First the corpus. One process tries each mutation once for every check that the
	// mutation reaches, with that check switched off.
	shards := runtime.GOMAXPROCS(0)
	outputs := make([]string, shards)
	parallel(shards, shards, func(i int) {
		for known := ""; ; {
			out, err := p.run("^TestHarmfulCorpus$", "MLXC_PROVE_CORPUS="+corpus, "MLXC_PROVE_NEEDED="+known, fmt.Sprint("MLXC_PROVE_SHARDS=", shards), fmt.Sprint("MLXC_PROVE_SHARD=", i))
			before, _, overflow := strings.Cut(out, "fatal error: stack overflow")
			if at := strings.LastIndex(before, "trying "); err != nil && overflow && at >= 0 {
				// Without that check the prover does not end, so it is needed. Go on with the others.
				n := strings.Fields(before[at:])[1]
				known += " " + n
				outputs[i] += "\nneeded " + n + "\n"
				continue
			}
			if outputs[i] += out; err != nil {
				t.Errorf("with every check: %v\n%s", err, out)
			}
			return
		}
	})
	for _, line := range strings.Split(strings.Join(outputs, ""), "\n") {
		var n int
		if _, err := fmt.Sscanf(line, "needed %d", &n); err == nil {
			needed[n] = true
		}
	}
	t.Logf("%d checks, the corpus needs %d", len(needed), count(needed))

	// Then the small tests that reach a check, the quickest first.
	list, err := p.run("", "", "-test.list="+smallTests)
	require.NoError(t, err, list)
	type small struct {
		name    string
		took    time.Duration
		reaches map[int]bool
	}
	var tests []*small
	for _, name := range strings.Fields(list) {
		if strings.HasPrefix(name, "Test") {
			tests = append(tests, &small{name: name})
		}
	}
	require.Greater(t, len(tests), 20, list)
	parallel(len(tests), shards, func(i int) {
		x, start := tests[i], time.Now()
		file := filepath.Join(dir, x.name+".reached")
		if out, err := p.run("^"+x.name+"$", "MLXC_PROVE_REACHED="+file); err != nil {
			t.Errorf("with every check: %v\n%s", err, out)
		}
		x.took, x.reaches = time.Since(start), numbers(t, file)
	})
	slices.SortFunc(tests, func(a, b *small) int { return cmp.Compare(a.took, b.took) })
	parallel(len(needed), shards, func(i int) {
		fails := func(pattern string) bool {
			_, err := p.run(pattern, fmt.Sprint("MLXC_PROVE_CHECK_OFF=", i), "-test.failfast", "-rapid.nofailfile")
			return err != nil
		}
		for _, x := range tests {
			needed[i] = needed[i] || x.reaches[i] && fails("^"+x.name+"$")
		}
		// Chance may decide whether a test reaches a check, so try them all once more.
		needed[i] = needed[i] || fails(smallTests)
	})
	for i, ok := range needed {
		if !ok {
			t.Errorf("no test fails without %s", p.checks[i])
		}
	}
}

// parallel calls f with each number below n, on so many goroutines.
func parallel(n, workers int, f func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

func count(list []bool) (n int) {
	for _, x := range list {
		if x {
			n++
		}
	}
	return n
}

// numbers reads a file of one number a line.
func numbers(t *testing.T, path string) map[int]bool {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	out := map[int]bool{}
	for _, f := range strings.Fields(string(data)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Error(err)
		}
		out[n] = true
	}
	return out
}

// prover is the tests of package prove, built with a switch at every check.
type prover struct {
	binary, dir string
	checks      []string // the messages or returns that they stand for
}

// run runs tests of the prover. An element of more that is not a flag is set as an
// environment variable.
func (p *prover) run(tests string, more ...string) (string, error) {
	cmd := exec.Command(p.binary, "-test.run", tests)
	cmd.Dir, cmd.Env = p.dir, os.Environ()
	for _, x := range more {
		if strings.HasPrefix(x, "-") {
			cmd.Args = append(cmd.Args, x)
		} else if x != "" {
			cmd.Env = append(cmd.Env, x)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// instrumented builds the tests of package prove with a switch at every check.
func instrumented(t *testing.T, dir string) *prover {
	at, err := filepath.Abs("..")
	require.NoError(t, err)
	p := &prover{binary: filepath.Join(dir, "prove.test"), dir: at}
	files, err := filepath.Glob(filepath.Join(at, "*.go"))
	require.NoError(t, err)
	overlay := map[string]string{}
	for _, f := range files {
		name := filepath.Base(f)
		if strings.HasSuffix(name, "_test.go") || name == "doc.go" {
			continue
		}
		if name == "search.go" || name == "hash.go" { // these files only guess, and nothing is believed because of it
			continue
		}
		src, err := os.ReadFile(f)
		require.NoError(t, err)
		overlay[f] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(overlay[f], []byte(instrument(t, name, string(src), &p.checks)), 0o644))
	}
	for _, name := range []string{"switch.go", "corpus_test.go"} {
		overlay[filepath.Join(at, name)], err = filepath.Abs(filepath.Join("testdata", name))
		require.NoError(t, err)
	}
	table, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, table, 0o644))
	cmd := exec.Command("go", "test", "-c", "-overlay", list, "-o", p.binary, ".")
	cmd.Dir = at
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return p
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
