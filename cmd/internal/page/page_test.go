package page_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
)

var update = flag.Bool("update", false, "write the data of pages into testdata")

// The types below are what page.js reads.
type (
	document struct {
		Title, Model, Cut string
		Texts             []string
		Memories          [][]int64
		Graphs            []graph
	}
	graph struct {
		Name, Faults, Differs string
		Sides                 []side
		Links                 [][]int
		Remarks               [][]int
		Changes               []json.RawMessage
		Proof                 *struct {
			Verdict, Text string
			Terms         []int
		}
	}
	side struct {
		Name, Ordering, Ends, Kind, Family string
		Commands, All                      int
		Figures                            []int64
		Memories, First, X, From, To       []int
		Ranges                             []int64
		ID                                 []ir.ID
		Kernel, Op, Label, Grid            []int
		NS, Bytes                          []int64
		Args                               [][]json.RawMessage
		Waits, Joins                       [][]int
		Values                             []int
		Scratch                            int64
		Known                              bool
	}
)

func html(t require.TestingT, p *page.Page) string {
	var b bytes.Buffer
	require.NoError(t, p.Write(context.Background(), &b))
	return b.String()
}

var between = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// read returns the data of a page as a browser finds it.
func read(t require.TestingT, p *page.Page) (d document) {
	m := between.FindStringSubmatch(html(t, p))
	require.NotNil(t, m)
	require.NoError(t, json.Unmarshal([]byte(m[1]), &d))
	return d
}

// alone is the page of one graph.
func alone(g *ir.Graph) *page.Page {
	return &page.Page{Title: "g.mlxg", Graphs: []page.Graph{{Before: g}}}
}

// behind returns the commands that one reason is about.
func (s *side) behind(to int, reason []int) []int {
	if reason[1] < 8 {
		return []int{to - reason[0]}
	}
	var out []int
	var walk func(j int)
	walk = func(j int) {
		for _, m := range s.Joins[j][1:] {
			if m < 0 {
				walk(-1 - m)
			} else {
				out = append(out, m)
			}
		}
	}
	walk(reason[0])
	return out
}

// A page has all commands of a graph, each once, in the epochs that the graph says it has.
func inOrder(t require.TestingT, g *ir.Graph, s *side) {
	var ids []ir.ID
	for _, n := range g.Nodes {
		if _, join := n.(*ir.Join); join {
			continue
		}
		if c, ok := n.(ir.Command); ok {
			ids = append(ids, c.Num())
		}
	}
	require.Equal(t, len(ids), s.Commands)
	require.ElementsMatch(t, ids, s.ID)
	if g.Ordering != ir.ByEdges {
		require.Equal(t, ids, append([]ir.ID(nil), s.ID...), "the list is the order")
	}
	want := g.Stats().Epochs
	if g.Ordering == ir.Serial {
		want = len(ids)
	}
	if g.Ordering == ir.ByEdges {
		want = len(g.Levels())
	}
	require.Len(t, s.Ends, want)
	require.Len(t, s.First, want+1)
	require.Len(t, s.X, want+1)
	for e := range want {
		size := s.First[e+1] - s.First[e]
		require.Positive(t, size)
		require.Equal(t, (size+7)/8, s.X[e+1]-s.X[e], "eight commands stand in a column")
	}
	for _, n := range []int{len(s.Kind), len(s.Family), len(s.Kernel), len(s.Op), len(s.Label), len(s.Grid), len(s.NS), len(s.Bytes), len(s.Args), len(s.Waits)} {
		require.Equal(t, len(ids), n)
	}
}

// aligned checks where epochs stand under those that they were made of.
func aligned(t require.TestingT, g *graph) (exact int) {
	b, a := &g.Sides[0], &g.Sides[1]
	at := func(s *side, c int) int { i, _ := slices.BinarySearch(s.First, c+1); return i - 1 }
	end := 0
	for e := range a.Ends {
		require.GreaterOrEqual(t, a.From[e], end, "epochs keep their order")
		require.GreaterOrEqual(t, a.To[e]-a.From[e], a.X[e+1]-a.X[e], "an epoch has its columns")
		end = a.To[e]
	}
	require.LessOrEqual(t, end, b.X[len(b.X)-1]+a.X[len(a.X)-1], "no more columns than both graphs have")
	// Where the order of a recording was kept, an epoch stands exactly under what it was made of.
	n := len(a.Ends)
	lo, hi, behind := make([]int, n), make([]int, n), 1<<30
	for e := n - 1; e >= 0; e-- {
		lo[e], hi[e] = 1<<30, -1
		for c := a.First[e]; c < a.First[e+1]; c++ {
			for _, j := range g.Links[c] {
				lo[e], hi[e] = min(lo[e], b.X[at(b, j)]), max(hi[e], b.X[at(b, j)+1])
			}
		}
		if (e == 0 || a.To[e-1] <= lo[e]) && hi[e] <= behind && hi[e]-lo[e] >= a.X[e+1]-a.X[e] {
			require.Equal(t, []int{lo[e], hi[e]}, []int{a.From[e], a.To[e]}, "epoch %d", e)
			exact++
		}
		behind = min(behind, lo[e])
	}
	return exact
}

// waitsFor requires that a page gives the reasons to wait that the analysis of hazards finds, and no others.
func waitsFor(t require.TestingT, g *ir.Graph, s *side) {
	full := optimize.Annotated(context.Background(), g)
	var ids []ir.ID
	for _, n := range full.Nodes {
		if c, ok := n.(ir.Command); ok {
			ids = append(ids, c.Num())
		}
	}
	at := map[ir.ID]int{} // joins are at −1
	for _, id := range ids {
		at[id] = slices.Index(s.ID, id)
	}
	table := hazard.NewTable(context.Background(), full)
	type pair struct {
		from, to int
		kind     hazard.Kind
	}
	want := map[pair][]hazard.Hazard{}
	order := table.Hazards(func(hazard.Hazard) {})
	members := make([][]int, order.Nodes)
	for i := range order.Nodes {
		for _, j := range order.Successors(int32(i)) {
			members[j] = append(members[j], i)
		}
	}
	var expand func(node int) []int
	expand = func(node int) (out []int) {
		if node < len(ids) {
			return []int{at[ids[node]]}
		}
		for _, m := range members[node] {
			out = append(out, expand(m)...)
		}
		return out
	}
	table.Hazards(func(h hazard.Hazard) {
		for _, from := range expand(int(h.From)) {
			p := pair{from, at[ids[h.To]], h.Kind}
			if p.from < 0 || p.to < 0 {
				continue // it touches nothing
			}
			want[p] = append(want[p], h)
		}
	})
	got := map[pair]bool{}
	for to, w := range s.Waits {
		require.Zero(t, len(w)%3, "nothing is left out of so small a graph")
		for k := 0; k < len(w); k += 3 {
			kind := hazard.Kind(w[k+1] & 7)
			if int(kind) > int(hazard.Unknown) {
				require.Equal(t, ir.ByEdges, g.Ordering)
				continue
			}
			for _, from := range s.behind(to, w[k:k+3]) {
				p := pair{from, to, kind}
				require.Contains(t, want, p)
				got[p] = true
			}
			if kind == hazard.Unknown {
				continue
			}
			// The bytes of the reason are those of what was found, together.
			r := s.Ranges[3*w[k+2] : 3*w[k+2]+3]
			lo, end := int64(1)<<62, int64(0)
			for _, from := range s.behind(to, w[k:k+3]) {
				for _, h := range want[pair{from, to, kind}] {
					if int64(h.Mem) == r[0] && h.Lo >= r[1] && h.End <= r[2] {
						lo, end = min(lo, h.Lo), max(end, h.End)
					}
				}
			}
			require.Equal(t, []int64{lo, end}, r[1:], "the bytes of the reason")
		}
	}
	for p, hs := range want {
		require.True(t, got[p], "%v: %v", p, hs)
	}
}

// The pages of the recordings say what the analyses say of them, before and after.
func TestPagesSayWhatAnalysesSay(t *testing.T) {
	pairs, exact := 0, 0
	for _, g := range recorded.Graphs(t) {
		d := read(t, alone(g))
		inOrder(t, g, &d.Graphs[0].Sides[0])
		waitsFor(t, g, &d.Graphs[0].Sides[0])
		one := optimized(t, g)
		d = read(t, &page.Page{Title: "g", Graphs: []page.Graph{one}})
		x := &d.Graphs[0]
		require.Len(t, x.Sides, 2)
		for k, h := range []*ir.Graph{one.Before, one.Result.Optimized} {
			inOrder(t, h, &x.Sides[k])
			waitsFor(t, h, &x.Sides[k])
		}
		exact += aligned(t, x)
		require.Equal(t, "proved", x.Proof.Verdict)
		require.Len(t, x.Proof.Terms, one.Result.Proof.Fused)
		// Links are the provenance that commands carry.
		number := map[ir.ID]int{}
		for k, id := range x.Sides[0].ID {
			number[id] = k
		}
		for _, n := range one.Result.Optimized.Nodes {
			c, ok := n.(ir.Command)
			if !ok {
				continue
			}
			from := c.Origin()
			if from == nil {
				from = []ir.ID{c.Num()}
			}
			var want []int
			for _, id := range from {
				want = append(want, number[id])
			}
			slices.Sort(want)
			require.Equal(t, want, x.Links[slices.Index(x.Sides[1].ID, c.Num())])
			pairs += len(want)
		}
	}
	require.Greater(t, pairs, 100)
	require.Greater(t, exact, 30)
}

// lifetimes says, by bytes, when a list of commands with constant contiguous effects last reads what
// it wrote to scratch: by writer and range, the last reader.
func lifetimes(g *ir.Graph) map[[4]int64]int64 {
	type of struct {
		value [4]int64
		ok    bool
	}
	owner := map[[2]int64]of{} // by memory and byte
	last := map[[4]int64]int64{}
	i := int64(-1)
	for _, n := range g.Nodes {
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		i++
		e := c.Touches()
		each := func(r *ir.Region, f func(b [2]int64, v [4]int64)) {
			root, off := g.Root(r.Mem)
			if g.Memories[root].Kind != ir.Scratch {
				return
			}
			lo, end := off+r.Off.Const, off+r.Off.Const+r.Run.Const
			for b := lo; b < end; b++ {
				f([2]int64{int64(root), b}, [4]int64{i, int64(root), lo, end})
			}
		}
		for k := range e.Reads {
			each(&e.Reads[k], func(b [2]int64, _ [4]int64) {
				if o := owner[b]; o.ok {
					last[o.value] = max(last[o.value], i)
				}
			})
		}
		for k := range e.Writes {
			each(&e.Writes[k].Region, func(b [2]int64, v [4]int64) { owner[b] = of{v, true}; last[v] = i })
		}
	}
	return last
}

// The picture of scratch memory has each value from its writer to the last command that reads a byte of it.
func TestScratchMemoryByBytes(t *testing.T) {
	seen := 0
graphs:
	for _, g := range recorded.Graphs(t) {
		full := optimize.Annotated(context.Background(), g)
		for _, n := range full.Nodes {
			c, ok := n.(ir.Command)
			if !ok {
				continue
			}
			e := c.Touches()
			if !e.Known() {
				continue graphs
			}
			for _, r := range e.Reads {
				if full.Memories[r.Mem].Kind == ir.Scratch && (!r.IsConst() || len(r.Dims) > 0) {
					continue graphs
				}
			}
			for _, w := range e.Writes {
				if full.Memories[w.Mem].Kind == ir.Scratch && (!w.IsConst() || len(w.Dims) > 0 || !w.Must) {
					continue graphs
				}
			}
		}
		d := read(t, alone(g))
		s := &d.Graphs[0].Sides[0]
		got := map[[4]int64]int64{}
		for k := 0; k < len(s.Values); k += 3 {
			r := s.Ranges[3*s.Values[k+2] : 3*s.Values[k+2]+3]
			got[[4]int64{int64(s.Values[k]), r[0], r[1], r[2]}] = int64(s.Values[k] + s.Values[k+1])
		}
		require.Equal(t, lifetimes(full), got, "graph %s", g.Name)
		seen += len(got)
	}
	require.Greater(t, seen, 50)
}

// Graphs with everything that a graph can have become pages: no name ends an element, and the page
// has its two scripts and no more.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := irtest.Module(t)
		for _, g := range m.Graphs {
			p := alone(g)
			text := html(t, p)
			require.Equal(t, 2, strings.Count(text, "<script"))
			require.Equal(t, 2, strings.Count(text, "</script"))
			d := read(t, p)
			inOrder(t, g, &d.Graphs[0].Sides[0])
			waitsFor(t, g, &d.Graphs[0].Sides[0])
		}
	})
}

// Commands that write parts, many that read them all, and one that waits for these through a join.
func TestJoins(t *testing.T) {
	b := ir.NewBuilder("g")
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 80})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 800})
	for i := range int64(10) {
		b.Fill(ir.ViewOf(s, 8*i, 8), byte(i), "")
	}
	for i := range int64(10) {
		b.Copy(ir.ViewOf(y, 80*i, 80), ir.ViewOf(s, 0, 80), "")
	}
	b.Fill(ir.ViewOf(s, 0, 80), 1, "")
	g, err := b.Graph()
	require.NoError(t, err)
	d := read(t, alone(g))
	x := &d.Graphs[0].Sides[0]
	waitsFor(t, g, x)
	joined := 0
	for last := x.Waits[20]; len(last) > 0; last = last[3:] {
		if last[1] == 8+int(hazard.WAR) {
			joined++
			require.ElementsMatch(t, []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, x.behind(20, last[:3]))
			require.Equal(t, []int64{0, 0, 80}, x.Ranges[3*last[2]:][:3], "the parts of one range are one reason")
		}
	}
	require.Equal(t, 1, joined)
}

// hostile is a graph whose names want to be more than names.
func hostile(t testing.TB) *ir.Graph {
	b := ir.NewBuilder(`</script><script>alert(1)</script>`)
	x := b.Memory(ir.Memory{Name: `<img src=x onerror=alert(1)>`, Kind: ir.Input, Size: 64})
	s := b.Memory(ir.Memory{Name: `{{data}}{{script}}`, Kind: ir.Scratch, Size: 64})
	y := b.Memory(ir.Memory{Name: strings.Repeat("y", 255), Kind: ir.Output, Size: 64})
	b.Copy(ir.ViewOf(s, 0, 64), ir.ViewOf(x, 0, 64), "a\u2028b\u2029c\u202edef\x00\x1b[31m<!--<script>")
	b.Barrier()
	b.Copy(ir.ViewOf(y, 0, 64), ir.ViewOf(s, 0, 64), strings.Repeat("界", 1365)) // 4,095 bytes
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestHostileNames(t *testing.T) {
	p := alone(hostile(t))
	p.Title = `{{data}}</title><script>alert(1)</script>"'&`
	text := html(t, p)
	assert.Equal(t, 2, strings.Count(text, "<script"))
	assert.Equal(t, 2, strings.Count(text, "</script"))
	assert.Equal(t, 1, strings.Count(text, "</title"))
	assert.NotContains(t, text, "<img")
	for _, r := range text {
		if r < ' ' && r != '\n' || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Fatalf("the page has %U", r)
		}
	}
	d := read(t, p)
	assert.Equal(t, `</script><script>alert(1)</script>`, d.Graphs[0].Name)
	assert.Equal(t, p.Title, d.Title)
	assert.Contains(t, d.Texts, `a\u2028b\u2029c\u202edef\x00\x1b[31m<!--<script>`)
	for _, s := range d.Texts {
		assert.LessOrEqual(t, len(s), 500)
	}
}

// The page allows its own style and script, by digests that are right, and nothing else.
func TestPolicy(t *testing.T) {
	text := html(t, alone(hostile(t)))
	for tag, pattern := range map[string]string{"style-src": `(?s)<style>(.*?)</style>`, "script-src": `(?s)<script>(.*?)</script>`} {
		sum := sha256.Sum256([]byte(regexp.MustCompile(pattern).FindStringSubmatch(text)[1]))
		assert.Contains(t, text, tag+" 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	assert.Contains(t, text, "default-src 'none'")
	assert.NotContains(t, text, "unsafe-inline")
	// What a page is made of asks for nothing, and makes no elements of text.
	for _, word := range []string{"http:", "https:", "url(", "@import", "fetch(", "XMLHttp", "import(", "WebSocket", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "setAttribute(\"on"} {
		assert.NotContains(t, html(t, &page.Page{}), word)
	}
}

// The page of the demonstration model is small, the same each time, and has its figures.
func TestDemonstrationModel(t *testing.T) {
	p := demonstration(t)
	text := html(t, p)
	t.Logf("%d bytes", len(text))
	assert.Less(t, len(text), 500_000)
	assert.Equal(t, text, html(t, p))
	d := read(t, p)
	x := d.Graphs[0]
	assert.Equal(t, "decode", x.Name)
	assert.EqualValues(t, 606, x.Sides[0].Figures[0])
	assert.EqualValues(t, 153, x.Sides[1].Figures[0])
	assert.Equal(t, 154, aligned(t, &x), "every epoch stands under what it was made of")
}

// What is behind the limit is left out, and the page says so.
func TestLimit(t *testing.T) {
	g := recorded.Graph(t, "llama_layer_decode")
	whole := read(t, &page.Page{Graphs: []page.Graph{optimized(t, g)}})
	require.Empty(t, whole.Cut)
	n := whole.Graphs[0].Sides[0].Commands
	for _, limit := range []int{1, 5, n - 1, n, n + 3} {
		d := read(t, &page.Page{Limit: limit, Graphs: []page.Graph{optimized(t, g)}})
		b, a := d.Graphs[0].Sides[0], d.Graphs[0].Sides[1]
		assert.Contains(t, d.Cut, "the first "+itoa(limit)+" commands")
		assert.Equal(t, min(limit, n), b.Commands)
		assert.Equal(t, limit, b.Commands+a.Commands)
		assert.Equal(t, n, b.All)
		assert.Equal(t, whole.Graphs[0].Sides[0].ID[:b.Commands], b.ID)
		for _, s := range []side{a, b} {
			assert.Equal(t, s.Commands, s.First[len(s.First)-1])
			for k := 0; k < len(s.Values); k += 3 {
				assert.Less(t, s.Values[k]+s.Values[k+1], s.Commands)
			}
		}
		for _, l := range d.Graphs[0].Links {
			for _, j := range l {
				assert.Less(t, j, b.Commands)
			}
		}
	}
}

// A page takes memory and bytes in proportion to its commands, whatever these do to one another.
func TestPagesAreLinear(t *testing.T) {
	cost := func(g *ir.Graph) (allocated, size float64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		size = float64(len(html(t, alone(g))))
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc), size
	}
	for name, of := range map[string]func(int) *ir.Graph{"decode": benchgraphs.Decode, "pieces": benchgraphs.Pieces, "nested": benchgraphs.Nested, "ping-pong": benchgraphs.PingPong, "one epoch": wide} {
		a, s := cost(of(2_000))
		b, u := cost(of(8_000))
		t.Logf("%s: %.0f and %.0f bytes a command allocated, %.0f and %.0f written", name, a/2_000, b/8_000, s/2_000, u/8_000)
		assert.Less(t, b/a, 6.0, "%s: four times the commands", name)
		assert.Less(t, u/s, 5.0, "%s: four times the commands", name)
	}
}

// wide returns a graph of fills that may all run at once.
func wide(n int) *ir.Graph {
	b := ir.NewBuilder("wide")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: int64(4 * n)})
	for i := range n {
		b.Fill(ir.ViewOf(y, int64(4*i), 4), byte(i), "")
	}
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	return g
}

// An ended context ends a page.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var b bytes.Buffer
	require.ErrorIs(t, alone(benchgraphs.Decode(2_000)).Write(ctx, &b), context.Canceled)
	require.Zero(t, b.Len())
}

// The data of two small pages, for eyes: go test ./cmd/internal/page -run Golden -update.
func TestGolden(t *testing.T) {
	for _, name := range []string{"norm_residual", "copies_and_fills"} {
		m := between.FindStringSubmatch(html(t, &page.Page{Title: name, Graphs: []page.Graph{optimized(t, recorded.Graph(t, name))}}))
		var pretty bytes.Buffer
		require.NoError(t, json.Indent(&pretty, []byte(m[1]), "", " "))
		// A list of numbers stands on one line.
		short := regexp.MustCompile(`\[[\s\d,\-]*\]`).ReplaceAllStringFunc(pretty.String(), func(s string) string {
			return strings.Join(strings.Fields(s), "")
		}) + "\n"
		path := filepath.Join("testdata", name+".json")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, []byte(short), 0o644))
			continue
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), short, "if that is right: go test ./cmd/internal/page -run Golden -update")
	}
}
