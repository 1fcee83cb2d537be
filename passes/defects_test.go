package passes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/replay"
)

// The graphs of testdata/defects and the words of their expectations are
// described in testdata/defects/README.md.

// defect is one archive of testdata/defects.
type defect struct {
	name    string
	graph   *ir.Graph // as recorded; clone before running passes
	expects []expectation
}

// expectation is one line of expect.txt.
type expectation struct {
	line string
	word *word
	args []string // what the word's form captured
}

func (e expectation) id(i int) ir.ID {
	n, err := strconv.ParseUint(e.args[i], 10, 32)
	if err != nil {
		panic(err) // the form admits digits only
	}
	return ir.ID(n)
}

func (e expectation) number(i int) int { return int(e.id(i)) }

// outcome is what a pipeline made of a graph.
type outcome struct {
	graph   *ir.Graph
	reports []*passes.Report
}

// word is one entry of the vocabulary.
type word struct {
	form *regexp.Regexp
	// pipelines are those whose output decides whether the expectation holds. A line waits until
	// all of their passes exist.
	pipelines func(e expectation) []string
	// waits names what else, beside passes, must exist before the line can be
	// decided.
	waits string
	check func(e expectation, o outcome) error
	// holds and breaks make an output out of a recorded graph and its form after annotate and
	// barriers. The check must accept the output of holds and refuse that of breaks.
	holds, breaks func(e expectation, recorded, scheduled *ir.Graph) outcome
}

const (
	annotated = "annotate"
	scheduled = "annotate,barriers"
)

func always(p ...string) func(expectation) []string {
	return func(expectation) []string { return p }
}

// fusing and reordering return a pipeline with the limit that the line ends in, if any.
func fusing(e expectation) []string {
	if e.args[2] != "" {
		return []string{"annotate,fuse{max-threads=" + e.args[2] + ",generate=false},barriers"}
	}
	return []string{"annotate,fuse{generate=false},barriers"}
}

func reordering(e expectation) []string {
	if e.args[2] != "" {
		return []string{"annotate,reorder{lookahead=" + e.args[2] + "},barriers"}
	}
	return []string{"annotate,reorder,barriers"}
}

// everyOrder lists the pipelines that must keep what is ordered in order.
var everyOrder = []string{
	"annotate,fuse", "annotate,fuse{generate=false}", // see fusesAlone
	scheduled, "annotate,fuse,barriers", "annotate,fuse{generate=false},barriers", "", "annotate,reorder,barriers", "annotate,fuse,reorder,barriers",
	"annotate,barriers,split", "annotate,fuse,reorder,barriers,split",
	"annotate,fuse,dce,rename{budget=unlimited},schedule,barriers,plan,split,constants",
}

// fusesAlone reports whether a pipeline ends in fuse. The pass barriers behind it would put
// back an order that fuse had lost, and hide the mistake.
func fusesAlone(pipeline string) bool {
	return pipeline == "annotate,fuse" || pipeline == "annotate,fuse{generate=false}"
}

// ordered reports whether the recorded graph of a row orders all its conflicts. In rows
// about barriers some barriers are missing on purpose.
func (d *defect) ordered() bool { return strings.HasPrefix(d.name, "F") }

var vocabulary = []*word{
	{
		form:      regexp.MustCompile(`^runs$`),
		pipelines: always(everyOrder...),
		check:     nil, // TestDefectsReplay
	},
	{
		form:      regexp.MustCompile(`^unknown #(\d+)$`),
		pipelines: always(annotated),
		check: func(e expectation, o outcome) error {
			return want(e, !effectsOf(o.graph, e.id(0)).Known(), "its effects are known")
		},
		holds: asScheduled,
		breaks: func(e expectation, _, s *ir.Graph) outcome {
			return setEffects(s, e.id(0), &ir.Effects{Complete: true})
		},
	},
	{
		form:      regexp.MustCompile(`^known #(\d+)$`),
		pipelines: always(annotated),
		check: func(e expectation, o outcome) error {
			return want(e, effectsOf(o.graph, e.id(0)).Known(), "its effects are unknown")
		},
		holds:  asScheduled,
		breaks: func(e expectation, _, s *ir.Graph) outcome { return setEffects(s, e.id(0), nil) },
	},
	{
		form:      regexp.MustCompile(`^order #(\d+) before #(\d+)$`),
		pipelines: always(everyOrder...),
		check: func(e expectation, o outcome) error {
			a, b := find(o.graph, e.id(0)), find(o.graph, e.id(1))
			return want(e, a.node == b.node || a.before(b), "nothing that stands between them orders them")
		},
		holds:  asScheduled,
		breaks: loosened,
	},
	{
		form:      regexp.MustCompile(`^barriers (\d+)$`),
		pipelines: always(scheduled),
		check:     barrierCount,
		holds:     asScheduled,
		breaks:    fenced,
	},
	{
		form:      regexp.MustCompile(`^barrier-between #(\d+) #(\d+)$`),
		pipelines: always(scheduled),
		check: func(e expectation, o outcome) error {
			a, b := find(o.graph, e.id(0)), find(o.graph, e.id(1))
			return want(e, a.buffer == b.buffer && a.epoch < b.epoch, "there is none")
		},
		holds:  asScheduled,
		breaks: loosened,
	},
	{
		form:      regexp.MustCompile(`^no-barrier-between #(\d+) #(\d+)$`),
		pipelines: always(scheduled),
		check: func(e expectation, o outcome) error {
			a, b := find(o.graph, e.id(0)), find(o.graph, e.id(1))
			return want(e, a.buffer == b.buffer && a.epoch == b.epoch, "there is one")
		},
		holds:  asScheduled,
		breaks: fenced,
	},
	{
		form:      regexp.MustCompile(`^commit-ordered #(\d+) #(\d+)$`),
		pipelines: always(scheduled),
		check: func(e expectation, o outcome) error {
			a, b := find(o.graph, e.id(0)), find(o.graph, e.id(1))
			return want(e, a.buffer < b.buffer && a.ordered < b.ordered, "no commit between them orders")
		},
		holds:  asScheduled,
		breaks: loosened,
	},
	{
		form:      regexp.MustCompile(`^commit-bare #(\d+) #(\d+)$`),
		pipelines: always(scheduled),
		check: func(e expectation, o outcome) error {
			a, b := find(o.graph, e.id(0)), find(o.graph, e.id(1))
			return want(e, a.buffer < b.buffer && a.ordered == b.ordered, "a commit between them orders, or none is left")
		},
		holds:  asScheduled,
		breaks: fenced,
	},
	{
		form:      regexp.MustCompile(`^fused #(\d+) #(\d+)(?: max-threads (\d+))?$`),
		pipelines: fusing,
		check: func(e expectation, o outcome) error {
			return want(e, find(o.graph, e.id(0)).node == find(o.graph, e.id(1)).node, "they are two dispatches")
		},
		holds:  merged,
		breaks: asScheduled,
	},
	{
		form:      regexp.MustCompile(`^not-fused #(\d+) #(\d+)(?: max-threads (\d+))?$`),
		pipelines: fusing,
		check: func(e expectation, o outcome) error {
			return want(e, find(o.graph, e.id(0)).node != find(o.graph, e.id(1)).node, "they are one dispatch")
		},
		holds:  asScheduled,
		breaks: merged,
	},
	{
		form:      regexp.MustCompile(`^fused-barriers (\d+)$`),
		pipelines: always("annotate,fuse{generate=false},barriers"),
		check:     barrierCount,
		holds:     bareBarriers,
		breaks:    fenced,
	},
	{
		form:      regexp.MustCompile(`^fused-reordered-barriers (\d+)$`),
		pipelines: always("annotate,fuse{generate=false},reorder,barriers"),
		check:     barrierCount,
		holds:     bareBarriers,
		breaks:    fenced,
	},
	{
		form:      regexp.MustCompile(`^hoists #(\d+) before #(\d+)(?: lookahead (\d+))?$`),
		pipelines: reordering,
		check: func(e expectation, o outcome) error {
			return want(e, find(o.graph, e.id(0)).at < find(o.graph, e.id(1)).at, "it stands behind")
		},
		holds:  hoisted,
		breaks: asScheduled,
	},
	{
		form:      regexp.MustCompile(`^no-hoist #(\d+) before #(\d+)(?: lookahead (\d+))?$`),
		pipelines: reordering,
		check: func(e expectation, o outcome) error {
			return want(e, find(o.graph, e.id(0)).at > find(o.graph, e.id(1)).at, "it moved up")
		},
		holds:  asScheduled,
		breaks: hoisted,
	},
	{
		form:      regexp.MustCompile(`^moved (\d+)$`),
		pipelines: always("annotate,reorder,barriers"),
		check: func(e expectation, o outcome) error {
			for _, r := range o.reports {
				if name, _, _ := strings.Cut(r.Pass, "{"); name == "reorder" {
					return want(e, r.Changed == e.number(0), "the report says %d", r.Changed)
				}
			}
			return want(e, false, "there is no report of reorder")
		},
		holds: func(e expectation, _, s *ir.Graph) outcome {
			return outcome{s, []*passes.Report{{Pass: "reorder{lookahead=64}", Changed: e.number(0)}}}
		},
		breaks: func(e expectation, _, s *ir.Graph) outcome {
			return outcome{s, []*passes.Report{{Pass: "reorder", Changed: e.number(0) + 2}}}
		},
	},
	{
		form:      regexp.MustCompile(`^splits #(\d+) #(\d+)$`),
		pipelines: always("annotate,barriers,split"),
		check: func(e expectation, o outcome) error {
			return want(e, find(o.graph, e.id(0)).buffer < find(o.graph, e.id(1)).buffer, "they are in one command buffer")
		},
		holds: func(e expectation, r, _ *ir.Graph) outcome {
			g := r.Clone()
			g.Nodes = slices.Insert(g.Nodes, find(g, e.id(1)).at, ir.Node(&ir.Commit{Order: ir.OrderEvent}))
			return outcome{graph: g}
		},
		breaks: asScheduled,
	},
	{
		form:      regexp.MustCompile(`^wrap-ordered #(\d+) before #(\d+)$`),
		pipelines: always(everyOrder...),
		check: func(e expectation, o outcome) error {
			return want(e, wraps(o.graph, find(o.graph, e.id(0)), find(o.graph, e.id(1))), "nothing orders them")
		},
		holds:  asScheduled,
		breaks: loosened,
	},
}

func want(e expectation, ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s: "+format, append([]any{e.line}, args...)...)
}

// barrierCount counts the barriers between commands: one behind the last
// command is for the next replay.
func barrierCount(e expectation, o outcome) error {
	n := o.graph.Stats().Barriers
	if k := len(o.graph.Nodes); k > 0 {
		if _, ok := o.graph.Nodes[k-1].(*ir.Barrier); ok {
			n--
		}
	}
	return want(e, n == e.number(0), "there are %d", n)
}

// place says where the command that implements a recorded one stands.
type place struct {
	node    ir.Node
	at      int // index among the nodes
	epoch   int // barriers before it
	buffer  int // commits before it
	ordered int // commits before it that order
}

// before reports whether the graph orders p before q.
func (p place) before(q place) bool {
	if p.at >= q.at {
		return false
	}
	if p.buffer == q.buffer {
		return p.epoch < q.epoch
	}
	return p.ordered < q.ordered
}

// wraps reports whether the graph orders p of one replay before q of the next,
// whose commands follow the last ones in the same command buffer.
func wraps(g *ir.Graph, p, q place) bool {
	var end place
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			end.epoch++
		case *ir.Commit:
			end.buffer++
			if n.Order != ir.OrderNone {
				end.ordered++
			}
		}
	}
	if p.buffer == end.buffer && q.buffer == 0 {
		return p.epoch < end.epoch || q.epoch > 0
	}
	return p.ordered < end.ordered || q.ordered > 0
}

func implements(n ir.Node, id ir.ID) bool {
	c, ok := n.(ir.Command)
	if !ok {
		return false
	}
	if c.Origin() == nil {
		return c.Num() == id
	}
	return slices.Contains(c.Origin(), id)
}

// find returns the place of the command that implements id. A command that is
// gone is a bug of the test's graph, whose commands are all live.
func find(g *ir.Graph, id ir.ID) place {
	var p place
	for i, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			p.epoch++
		case *ir.Commit:
			p.buffer++
			if n.Order != ir.OrderNone {
				p.ordered++
			}
		}
		if implements(n, id) {
			p.node, p.at = n, i
			return p
		}
	}
	panic(fmt.Sprintf("graph %s: nothing implements %s", g.Name, id))
}

func effectsOf(g *ir.Graph, id ir.ID) *ir.Effects { return find(g, id).node.(ir.Command).Touches() }

// parseDefect reads and checks one archive.
func parseDefect(t *testing.T, path string) defect {
	a, err := txtar.ParseFile(path)
	require.NoError(t, err)
	require.Len(t, a.Files, 2, path)
	require.Equal(t, "recorded.mlxt", a.Files[0].Name, path)
	require.Equal(t, "expect.txt", a.Files[1].Name, path)
	require.NotEmpty(t, strings.TrimSpace(string(a.Comment)), "%s: the comment says what the graph is", path)
	m, err := mlxt.Parse(context.Background(), path+"/recorded.mlxt", a.Files[0].Data)
	require.NoError(t, err)
	require.NoError(t, m.Check(), path)
	if text := mlxt.Format(m); *update && string(a.Files[0].Data) != text {
		a.Files[0].Data = []byte(text)
		require.NoError(t, os.WriteFile(path, txtar.Format(a), 0o644))
	} else {
		require.Equal(t, text, string(a.Files[0].Data), "%s: recorded.mlxt is not in canonical form", path)
	}
	require.Len(t, m.Graphs, 1, path)
	d := defect{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), graph: m.Graphs[0]}
	require.Equal(t, d.name, d.graph.Name, "%s: the graph has the archive's name", path)
	seen := map[string]bool{}
	for _, line := range strings.Split(strings.TrimRight(string(a.Files[1].Data), "\n"), "\n") {
		require.False(t, seen[line], "%s: %q stands twice", path, line)
		seen[line] = true
		d.expects = append(d.expects, parseExpectation(t, d, line))
	}
	return d
}

func parseExpectation(t *testing.T, d defect, line string) expectation {
	for _, w := range vocabulary {
		if m := w.form.FindStringSubmatch(line); m != nil {
			e := expectation{line: line, word: w, args: m[1:]}
			for _, id := range regexp.MustCompile(`#\d+`).FindAllString(line, -1) {
				require.True(t, slices.ContainsFunc(d.graph.Nodes, func(n ir.Node) bool {
					c, ok := n.(ir.Command)
					return ok && c.Num().String() == id
				}), "%s: %q: the graph has no %s", d.name, line, id)
			}
			return e
		}
	}
	t.Fatalf("%s: %q is no word of testdata/defects/README.md", d.name, line)
	return expectation{}
}

// defectRows are the rows of the list of defects that archives are about. A row
// may have several: F8, F8ok.
var defectRows = strings.Fields("F1 F2 F3 F4 F5 F6 F7 F8 F9a F9b F9c F10 F11 F12 F13 R1 R2 R3 R4 R5 R6 B1 B2 B3 B4 B5 B7 B8 B9 B10")

func defects(t *testing.T) []defect {
	files, err := filepath.Glob("../testdata/defects/*.txtar")
	require.NoError(t, err)
	var out []defect
	names := map[string]bool{}
	for _, path := range files {
		d := parseDefect(t, path)
		out = append(out, d)
		names[d.name] = true
	}
	for _, row := range defectRows {
		require.True(t, names[row], "testdata/defects/%s.txtar is missing", row)
	}
	return out
}

// decidedNow are the archives about barriers, commits and unknown effects, of
// which annotate and barriers decide every line.
var decidedNow = regexp.MustCompile(`^B\d+(ok|far|user|event)?$`)

// missing returns the passes of a pipeline that do not exist.
func missing(pipeline string) (out []string) {
	bare := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(pipeline, "")
	for _, name := range strings.Split(bare, ",") {
		if !slices.ContainsFunc(passes.All(), func(p passes.Pass) bool { return p.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

// transform runs a pipeline on a copy of g and looks at what no pass may leave
// behind.
func transform(t *testing.T, g *ir.Graph, pipeline string) outcome {
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(t, err)
	o := outcome{graph: g.Clone()}
	o.reports, err = passes.Run(context.Background(), o.graph, p, passes.Options{})
	require.NoError(t, err)
	if strings.Contains(pipeline, "barriers") {
		idle := true // nothing to order since the begin of the command buffer or the last barrier
		for _, n := range o.graph.Nodes {
			switch n.(type) {
			case *ir.Barrier:
				require.False(t, idle, "%s: a barrier at the head of a command buffer, or after another", pipeline)
				idle = true
			case *ir.Commit:
				idle = true
			default:
				if _, ok := n.(ir.Command); ok {
					idle = false
				}
			}
		}
	}
	return o
}

// Each expectation that the existing passes decide holds. The others are
// listed with what they wait for; when that exists they are checked here.
func TestDefects(t *testing.T) {
	checked, waiting := 0, map[string][]string{}
	for _, d := range defects(t) {
		t.Run(d.name, func(t *testing.T) {
			for _, e := range d.expects {
				wait := func(what string) {
					waiting[what] = append(waiting[what], d.name+": "+e.line)
					require.False(t, decidedNow.MatchString(d.name), "%s: %s waits for %s", d.name, e.line, what)
				}
				if e.word.waits != "" {
					wait(e.word.waits)
					continue
				}
				if e.word.check == nil {
					continue // TestDefectsReplay
				}
				now := 0
				for _, p := range e.word.pipelines(e) {
					if m := missing(p); len(m) > 0 {
						if len(e.word.pipelines(e)) == 1 {
							wait("pass " + m[0])
						}
						continue
					}
					now++
					if fusesAlone(p) && !d.ordered() {
						continue
					}
					if err := e.word.check(e, transform(t, d.graph, p)); err != nil {
						t.Errorf("%s: %v", p, err)
					}
				}
				checked += min(now, 1)
			}
		})
	}
	whats := make([]string, 0, len(waiting))
	for what := range waiting {
		whats = append(whats, what)
	}
	slices.Sort(whats)
	t.Logf("%d expectations checked", checked)
	for _, what := range whats {
		t.Logf("%d expectations wait for %s:\n\t%s", len(waiting[what]), what, strings.Join(waiting[what], "\n\t"))
	}
	require.Greater(t, checked, 100)
}

// Each check can accept and refuse: it accepts an output that was made to satisfy the line, and
// refuses one that was made to violate it.
func TestDefectChecksCanFail(t *testing.T) {
	used := map[*word]bool{}
	for _, d := range defects(t) {
		s := transform(t, d.graph, scheduled).graph
		for _, e := range d.expects {
			used[e.word] = true
			if e.word.check == nil {
				continue
			}
			require.NoError(t, e.word.check(e, e.word.holds(e, d.graph.Clone(), s.Clone())), d.name)
			require.Error(t, e.word.check(e, e.word.breaks(e, d.graph.Clone(), s.Clone())), "%s: %s", d.name, e.line)
		}
	}
	readme, err := os.ReadFile("../testdata/defects/README.md")
	require.NoError(t, err)
	for _, w := range vocabulary {
		require.True(t, used[w], "no archive uses %s", w.form)
		name := regexp.MustCompile(`[a-z-]+`).FindString(w.form.String())
		require.Regexp(t, "`"+name+"[ `]", string(readme), "the README does not explain %s", name)
	}
}

func asScheduled(_ expectation, _, s *ir.Graph) outcome { return outcome{graph: s} }

// loosened drops every barrier and every order of a commit.
func loosened(_ expectation, _, s *ir.Graph) outcome {
	g := s.Clone()
	g.Ordering = ir.ByBarriers
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n ir.Node) bool {
		_, ok := n.(*ir.Barrier)
		return ok
	})
	for _, n := range g.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			c.Order = ir.OrderNone
		}
	}
	return outcome{graph: g}
}

// bareBarriers has as many barriers as the line says, wherever they stand.
func bareBarriers(e expectation, r, _ *ir.Graph) outcome {
	o := loosened(e, r, r)
	for range e.number(0) {
		o.graph.Nodes = slices.Insert(o.graph.Nodes, 0, ir.Node(&ir.Barrier{}))
	}
	return o
}

// fenced has a barrier before and after every command and an order in every commit.
func fenced(_ expectation, r, _ *ir.Graph) outcome {
	g := r.Clone()
	g.Nodes = []ir.Node{&ir.Barrier{}}
	for _, n := range r.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			n = &ir.Commit{Order: ir.OrderEvent, Label: c.Label}
		}
		if _, ok := n.(*ir.Barrier); ok {
			continue
		}
		g.Nodes = append(g.Nodes, n)
		if _, ok := n.(ir.Command); ok {
			g.Nodes = append(g.Nodes, &ir.Barrier{})
		}
	}
	return outcome{graph: g}
}

// merged lets the second command stand for both.
func merged(e expectation, _, s *ir.Graph) outcome {
	a, b := find(s, e.id(0)), find(s, e.id(1))
	b.node.(*ir.Dispatch).From = []ir.ID{e.id(0), e.id(1)}
	s.Nodes = slices.Delete(s.Nodes, a.at, a.at+1)
	return outcome{graph: s}
}

// hoisted moves the first command up before the second.
func hoisted(e expectation, _, s *ir.Graph) outcome {
	a, b := find(s, e.id(0)), find(s, e.id(1))
	s.Nodes = slices.Insert(slices.Delete(s.Nodes, a.at, a.at+1), b.at, a.node)
	return outcome{graph: s}
}

func setEffects(g *ir.Graph, id ir.ID, f *ir.Effects) outcome {
	find(g, id).node.(*ir.Dispatch).Effects = f
	return outcome{graph: g}
}

// A graph of builtin kernels computes the same after every pipeline, three
// replays in a row, over garbage in scratch and outputs: in the written order,
// and in the most adverse order that its barriers and commits allow. The
// reference is the recording, one command after another.
func TestDefectsReplay(t *testing.T) {
	ran := 0
	for _, d := range defects(t) {
		builtin := !slices.ContainsFunc(d.graph.Kernels, func(k ir.Kernel) bool { return k.Library.Kind != ir.Builtin })
		runs := slices.ContainsFunc(d.expects, func(e expectation) bool { return e.line == "runs" })
		require.Equal(t, builtin, runs, "%s: 'runs' is said of graphs of builtin kernels, and of all of them", d.name)
		if !runs {
			continue
		}
		ran++
		t.Run(d.name, func(t *testing.T) {
			reference := threeReplays(t, d.graph)
			require.NotEqual(t, reference[0], reference[1], "inputs differ from replay to replay, so should results")
			for _, p := range everyOrder {
				if len(missing(p)) > 0 || fusesAlone(p) && !d.ordered() {
					continue
				}
				g := transform(t, d.graph, p).graph
				require.Equal(t, reference, threeReplays(t, g), "%s, as written", p)
				require.Equal(t, reference, threeReplays(t, adverse(g)), "%s, in adverse order", p)
			}
		})
	}
	t.Logf("%d graphs replayed", ran)
	require.Greater(t, ran, 20)
}

// The adverse order notices every barrier that is needed: without barriers and
// orders of commits, at least one graph of each row about barriers computes
// something else.
func TestAdverseOrderShowsMissingBarriers(t *testing.T) {
	for _, d := range defects(t) {
		runs, ordered := false, false
		for _, e := range d.expects {
			runs = runs || e.line == "runs"
			ordered = ordered || strings.HasPrefix(e.line, "order ")
		}
		if !runs || !ordered {
			continue
		}
		g := adverse(loosened(expectation{}, nil, d.graph).graph)
		found, err := meaning.Of(context.Background(), g)
		require.NoError(t, err)
		if found.Err() == nil { // else it reads what comes later
			require.NotEqual(t, threeReplays(t, d.graph), threeReplays(t, g), d.name)
		}
	}
}

// adverse writes down another order that g allows: the commands of each epoch
// backwards, and command buffers that no commit orders last one first.
func adverse(g *ir.Graph) *ir.Graph {
	out := g.Clone()
	out.Ordering = ir.Serial
	var all, free, buffer, epoch []ir.Node
	endEpoch := func() {
		slices.Reverse(epoch)
		buffer, epoch = append(buffer, epoch...), nil
	}
	endBuffer := func() {
		endEpoch()
		free, buffer = append(buffer, free...), nil
	}
	for _, n := range out.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			endEpoch()
		case *ir.Commit:
			endBuffer()
			if n.Order != ir.OrderNone {
				all, free = append(all, free...), nil
			}
		default:
			if _, ok := n.(ir.Command); ok {
				epoch = append(epoch, n)
			}
		}
	}
	endBuffer()
	out.Nodes = append(all, free...)
	return out
}

// threeReplays runs g three times with new inputs each time and returns the
// bytes of all outputs and states after each.
func threeReplays(t *testing.T, g *ir.Graph) (out []map[string][]byte) {
	device := cpu.New(1)
	defer func() { require.NoError(t, device.Close()) }()
	s, err := replay.Open(device, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	p, err := s.Graph(context.Background(), g.Name)
	require.NoError(t, err)
	for i := range 3 {
		for j, m := range g.Memories {
			if m.Kind == ir.Input && m.Alias == ir.NoMem {
				random := ir.Memory{Size: m.Size, DType: ir.F32, Init: ir.Init{Kind: ir.InitRandom, Seed: uint64(100*i + j)}}
				if m.DType == ir.F16 {
					random.DType = ir.U8 // raw bits, of which numbers below 2 are made
				}
				data := make([]byte, m.Size)
				require.NoError(t, random.WriteInit(data))
				for k := 1; m.DType == ir.F16 && k < len(data); k += 2 {
					data[k] &^= 0x40
				}
				require.NoError(t, p.SetInput(m.Name, data))
			}
		}
		_, err := p.Run(context.Background())
		require.NoError(t, err)
		result := map[string][]byte{}
		for _, m := range g.Memories {
			switch {
			case m.Alias != ir.NoMem:
			case m.Kind == ir.Output:
				result[m.Name], err = p.Output(m.Name)
			case m.Kind == ir.State:
				result[m.Name], err = p.State(m.Name)
			}
			require.NoError(t, err)
		}
		out = append(out, result)
	}
	return out
}
