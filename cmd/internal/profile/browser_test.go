package profile_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/profile"
	"github.com/mlxc/mlxc/internal/testing/chromium"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

var pictures = flag.String("profile.pictures", "", "a folder for screenshots of the pages")

// written writes a page to a file.
func written(t *testing.T, r *profile.Report) string {
	path := filepath.Join(t.TempDir(), "run.html")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, r.Page(context.Background(), f))
	require.NoError(t, f.Close())
	return path
}

// state is what a page says of itself.
type state struct {
	Graph    string
	Epochs   int
	Dark     bool
	Chart    float64 // its width
	Scale    float64
	Selected *struct{ Epoch, Kernel *int }
}

// The page of a run opens from a file without a network and without a complaint of the browser, and does what its keys and the
// mouse ask for.
func TestRunInABrowser(t *testing.T) {
	sample.Seldom(t)
	chromium.Find(t)
	r := measured(t, layers(t, 12), 40)
	b := chromium.New(t, 1440, 1400)
	shoot := func(name string) {
		if *pictures != "" {
			b.Picture(filepath.Join(*pictures, name+".png"))
		}
	}
	now := func() (s state) { b.Settle(); b.Eval("mlxcPage.state()", &s); return s }
	text := func(id string) (s string) {
		b.Eval(`document.getElementById("`+id+`").textContent`, &s)
		return s
	}
	path := written(t, r)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(page), "Copyright (c) 2022 Leon Sorokin", "the licence of what draws the chart goes with it")
	b.Open(path, "")
	s := now()
	require.Equal(t, "layers", s.Graph)
	require.Positive(t, s.Epochs)
	assert.Positive(t, s.Chart, "the replays are a series")
	width := s.Chart
	all := r.Summaries()[0]
	for _, k := range all.Kernels {
		assert.Contains(t, text("kernels"), k.Name)
	}
	for _, want := range []string{"times by commands", "busy", "idle", "fitted to these replays", "median"} {
		assert.Contains(t, text("panel"), want)
	}
	shoot("run")

	// A click on a bar selects its epoch, arrow keys go on from there.
	var at struct{ X, Y float64 }
	b.Eval("mlxcPage.where(1)", &at)
	b.Click(at.X, at.Y)
	s = now()
	require.NotNil(t, s.Selected)
	require.NotNil(t, s.Selected.Epoch)
	assert.Equal(t, 1, *s.Selected.Epoch)
	assert.Contains(t, text("panel"), "epoch 1")
	b.Key("ArrowRight", "")
	assert.Equal(t, 2, *now().Selected.Epoch)
	shoot("epoch")

	// A click on a row of the table selects the kernel; the head of a column sorts by it.
	var first string
	b.Eval(`document.querySelector("#kernels tbody tr").click(); document.querySelector("#panel h2").textContent`, &first)
	assert.Equal(t, all.Kernels[0].Name, first)
	require.NotNil(t, now().Selected.Kernel)
	shoot("kernel")
	b.Eval(`document.querySelectorAll("#kernels th button")[0].click(); document.querySelector("#kernels tbody tr td").textContent.trim()`, &first)
	smallest := all.Kernels[0].Name
	for _, k := range all.Kernels {
		smallest = min(smallest, k.Name)
	}
	assert.Equal(t, smallest, first)

	before := now()
	b.Key("+", "+")
	assert.Greater(t, now().Scale, before.Scale)
	b.Key("0", "0")
	assert.InDelta(t, before.Scale, now().Scale, 1e-9)
	b.Key("t", "t")
	assert.NotEqual(t, before.Dark, now().Dark)
	assert.Equal(t, width, now().Chart)
	shoot("dark")
	// Paper is light, and has the figures of the panel too.
	dark := now().Dark
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	b.Eval(`dispatchEvent(new Event("beforeprint"))`, nil)
	assert.False(t, now().Dark)
	for _, id := range []string{"tiles", "panel", "kernels"} {
		var height float64
		b.Eval(`document.getElementById("`+id+`").getBoundingClientRect().height`, &height)
		assert.Positive(t, height, id)
	}
	shoot("print")
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": ""}, nil)
	b.Eval(`dispatchEvent(new Event("afterprint"))`, nil)
	assert.Equal(t, dark, now().Dark)
	b.Key("?", "?")
	b.Key("Escape", "")
	b.Key("Escape", "")
	assert.Nil(t, now().Selected)
	assert.Empty(t, b.Complaints())
}

// Pages of odd reports open too: of nothing, of a graph of which commands have no times, by ablation, and of one without commands.
func TestOddRunsInABrowser(t *testing.T) {
	sample.Seldom(t)
	chromium.Find(t)
	b := chromium.New(t, 1200, 900)
	for name, r := range map[string]*profile.Report{
		"nothing":  {Title: "nothing", Device: "cpu"},
		"hostile":  hostile(t),
		"ablation": ablated(t),
		"empty":    empty(t),
	} {
		t.Run(name, func(t *testing.T) {
			b.T, b.Events = t, nil
			if path := written(t, r); len(r.Graphs) > 0 {
				b.Open(path, "")
				for _, key := range []string{"ArrowRight", "ArrowLeft", "+", "-", "0", "g", "t", "?", "Escape", "Escape"} {
					b.Key(key, map[bool]string{true: key}[len(key) == 1])
				}
				b.Eval(`(q => q && q.click())(document.querySelector("#kernels tbody tr"))`, nil)
				if *pictures != "" {
					b.Picture(filepath.Join(*pictures, "odd-"+name+".png"))
				}
			} else {
				b.Call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
				time.Sleep(200 * time.Millisecond)
			}
			assert.Empty(t, b.Complaints())
		})
	}
}
