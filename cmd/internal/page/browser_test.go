package page_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/chromium"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
)

var pictures = flag.String("page.pictures", "", "a folder for screenshots of the pages")

// written writes a page to a file.
func written(t *testing.T, p *page.Page) string {
	path := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, p.Write(context.Background(), f))
	require.NoError(t, f.Close())
	return path
}

// tab is a page of this package in a browser.
type tab struct{ *chromium.Tab }

func newTab(t *testing.T, width, height int) *tab { return &tab{chromium.New(t, width, height)} }

// state is what a page says of itself.
type state struct {
	Graph    string
	Sides    int
	Selected *struct {
		Side int
		ID   int
	}
	Scale, X                      float64
	Hits, Frames                  int
	Aligned, Memory, Beside, Dark bool
}

func (b *tab) state() (s state) {
	b.T.Helper()
	b.Settle()
	b.Eval("mlxcPage.state()", &s)
	return s
}

// spot is where a command is drawn.
type spot struct {
	Side        int
	X, Y        float64
	Left, Right float64
}

func (b *tab) where(side, id int) (s spot) {
	b.T.Helper()
	b.Settle()
	b.Eval(fmt.Sprintf("mlxcPage.where(%d, %d)", side, id), &s)
	return s
}

func (b *tab) panel() (s string) {
	b.Eval(`document.getElementById("panel").textContent`, &s)
	return s
}

// shoot writes a screenshot where the flag asks for them.
func (b *tab) shoot(name string) {
	if *pictures != "" {
		b.Picture(filepath.Join(*pictures, name+".png"))
	}
}

// The page of the demonstration model opens from a file without a network and without a complaint of
// the browser, and does what its keys, buttons and the mouse ask for.
func TestPageInABrowser(t *testing.T) {
	sample.Seldom(t)
	chromium.Find(t)
	path := written(t, demonstration(t))
	b := newTab(t, 1440, 900)
	b.Open(path, "")
	s := b.state()
	assert.Equal(t, "decode", s.Graph)
	assert.Equal(t, 2, s.Sides)
	assert.True(t, s.Aligned)
	b.shoot("first")

	// A click on a command of the recording says what it became.
	at := b.where(0, 11)
	b.Click(at.X, at.Y)
	s = b.state()
	require.NotNil(t, s.Selected)
	assert.Equal(t, 0, s.Selected.Side)
	assert.Equal(t, 11, s.Selected.ID)
	text := b.panel()
	for _, want := range []string{"#11 quantized_matmul", "Fused into", "#12 quantized_matmul+elementwise_add", "Proved by terms", "RAW", "%scratch[", "fused #11 #12 into", "%blk.0.attn_output.weight"} {
		assert.Contains(t, text, want)
	}
	b.shoot("recorded")
	b.Key("x", "x")
	s = b.state()
	assert.Equal(t, 1, s.Selected.Side)
	assert.Equal(t, 12, s.Selected.ID)
	assert.Contains(t, b.panel(), "Made of 2")
	// Aligned, a fused command stands under what it was made of.
	fused, first, last := b.where(1, 12), b.where(0, 11), b.where(0, 12)
	assert.InDelta(t, first.Left, fused.Left, 1)
	assert.InDelta(t, last.Right, fused.Right, 1)
	b.shoot("fused")
	b.Key("ArrowRight", "")
	assert.Equal(t, 18, b.state().Selected.ID)
	b.Key("ArrowUp", "")
	assert.Equal(t, 0, b.state().Selected.Side, "over the edge to the other side")

	// Search.
	b.Key("/", "/")
	b.Write("sdpa")
	assert.Equal(t, 60, b.state().Hits, "thirty layers, twice")
	b.Key("Enter", "\r")
	b.Key("Enter", "\r")
	s = b.state()
	assert.Equal(t, 30, s.Selected.ID, "the second hit")
	b.Key("Escape", "")
	assert.Zero(t, b.state().Hits)
	b.Key("/", "/")
	b.Write("blk.29.ffn_down.weight")
	b.shoot("search")
	assert.Equal(t, 2, b.state().Hits)
	b.Key("Enter", "\r")
	assert.Equal(t, 599, b.state().Selected.ID)
	b.shoot("hit")
	b.Key("Escape", "")
	b.Key("Escape", "")

	// Zoom, by the wheel about the pointer, and by keys.
	before := b.state()
	b.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": 500, "y": 300, "deltaX": 0, "deltaY": -200, "modifiers": 2}, nil)
	assert.Greater(t, b.state().Scale, 1.2*before.Scale)
	b.Key("0", "0")
	s = b.state()
	assert.Less(t, s.Scale*457, 1440.0, "the whole graph")
	b.shoot("whole")
	for range 8 {
		b.Key("+", "+")
	}
	assert.Greater(t, b.state().Scale, 10*s.Scale)
	b.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": 500, "y": 300, "deltaX": 0, "deltaY": 300}, nil)
	assert.Greater(t, b.state().X, s.X, "panned")

	// Themes, views, the other graph, an epoch.
	dark := b.state().Dark
	b.Key("t", "t")
	assert.NotEqual(t, dark, b.state().Dark)
	b.Eval(`location.hash = "#0/after/8"`, nil)
	b.shoot("dark")
	assert.Equal(t, 8, b.state().Selected.ID)
	b.Key("s", "s")
	assert.True(t, b.state().Beside)
	b.shoot("beside")
	b.Key("s", "s")
	b.Key("a", "a")
	assert.False(t, b.state().Aligned)
	b.shoot("compact")
	b.Key("a", "a")
	b.Key("m", "m")
	assert.False(t, b.state().Memory)
	b.shoot("commands")
	b.Key("m", "m")
	b.Key("t", "t")
	b.Key("h", "h")
	b.Key("0", "0")
	b.shoot("times")
	b.Key("h", "h")
	b.Key("g", "g")
	assert.Equal(t, "prefill", b.state().Graph)
	b.Eval(`location.hash = "#1/after/9"`, nil)
	assert.Contains(t, b.panel(), "moved into epoch 2 of its command buffer")
	b.shoot("prefill")
	b.Key("?", "?")
	b.shoot("keys")
	b.Key("Escape", "")
	assert.Empty(t, b.Complaints())
	if *pictures != "" {
		b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1360, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
		b.Call("Page.navigate", map[string]any{"url": "about:blank"}, nil)
		b.Open(path, "#0/after/8")
		b.shoot("page") // the picture of docs/page.md and README
		b.Call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
		b.Eval(`dispatchEvent(new Event("beforeprint"))`, nil)
		b.Picture(filepath.Join(*pictures, "print.png"))
	}
}

// Pages of odd graphs open too: hostile names, no commands, commands ordered by edges, of unknown
// effects, all in one epoch, and more than one graph without a result.
func TestOddPagesInABrowser(t *testing.T) {
	sample.Seldom(t)
	chromium.Find(t)
	edges := optimized(t, recorded.Graph(t, "two_streams"))
	ordered, err := passes.ParsePipeline("annotate,edges")
	require.NoError(t, err)
	r, err := optimize.Run(context.Background(), edges.Before, optimize.Options{Pipeline: ordered})
	require.NoError(t, err)
	require.NotNil(t, r.Optimized)
	b := newTab(t, 1200, 800)
	for name, p := range map[string]*page.Page{
		"hostile":  alone(hostile(t)),
		"empty":    alone(&ir.Graph{Name: "empty"}),
		"edges":    {Title: "edges", Graphs: []page.Graph{{Before: edges.Before, Result: r}}},
		"unknown":  alone(recorded.Graph(t, "unannotated")),
		"wide":     alone(wide(20_000)),
		"pieces":   alone(benchgraphs.Pieces(2_000)),
		"commits":  {Title: "commits", Graphs: []page.Graph{optimized(t, recorded.Graph(t, "commits")), {Before: recorded.Graph(t, "moe_layer"), Faults: "a race,\nand another"}}},
		"nothing":  {Title: "nothing"},
		"one side": {Title: "x", Limit: 30, Graphs: []page.Graph{optimized(t, recorded.Graph(t, "moe_layer"))}},
	} {
		t.Run(name, func(t *testing.T) {
			b.T, b.Events = t, nil
			path := written(t, p)
			if len(p.Graphs) == 0 {
				b.Call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
				time.Sleep(300 * time.Millisecond)
				assert.Empty(t, b.Complaints())
				return
			}
			b.Open(path, "")
			for _, key := range []string{"ArrowRight", "ArrowRight", "ArrowDown", "x", "a", "m", "s", "h", "0", "+", "n", "g", "ArrowRight", "x", "t", "c", "ArrowLeft", "?", "Escape", "Escape"} {
				b.Key(key, map[bool]string{true: key}[len(key) == 1])
				b.Eval(`for (const q of document.querySelectorAll("#panel button.link")) if (q.textContent.startsWith("epoch")) { q.click(); break; }`, nil)
			}
			b.Key("/", "/")
			b.Write("a")
			b.Key("Enter", "\r")
			b.state()
			b.shoot("odd-" + strings.ReplaceAll(name, " ", "-"))
			assert.Empty(t, b.Complaints())
		})
	}
}
