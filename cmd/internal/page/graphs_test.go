package page_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

func itoa(n int) string { return strconv.Itoa(n) }

// optimized returns a graph and what the default pipeline makes of it. A graph whose commands race
// runs in the order of its list.
func optimized(t testing.TB, g *ir.Graph) page.Graph {
	o := optimize.Options{Pipeline: passes.DefaultPipeline()}
	r, err := optimize.Run(context.Background(), g, o)
	if errors.Is(err, optimize.ErrNoMeaning) {
		g = g.Clone()
		g.SetOrdering(ir.Serial)
		r, err = optimize.Run(context.Background(), g, o)
	}
	require.NoError(t, err)
	require.Equal(t, prove.Proved, r.Proof.Verdict)
	return page.Graph{Before: g, Result: r}
}

var model struct {
	sync.Once
	page *page.Page
}

// demonstration returns the page of the demonstration model, as mlxc optimize --html writes it.
func demonstration(t *testing.T) *page.Page {
	model.Do(func() {
		path := os.Getenv("MODEL")
		if path == "" {
			path = "../../../testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf"
		}
		m, err := gguf.Load(path)
		require.NoError(t, err, "the demonstration model is missing: run scripts/fetch-model.sh")
		defer func() { require.NoError(t, m.Close()) }()
		module, err := m.Record(context.Background(), frontend.Options{Mapped: true, Advance: true})
		require.NoError(t, err)
		p := &page.Page{Title: "SmolLM2-135M.mlxg"}
		for _, g := range module.Graphs {
			p.Graphs = append(p.Graphs, optimized(t, g))
		}
		model.page = p
	})
	require.NotNil(t, model.page)
	return model.page
}

// layer is the page of one layer.
func layer(t testing.TB) *page.Page {
	return &page.Page{Title: "layer.mlxg", Graphs: []page.Graph{optimized(t, recorded.Graph(t, "llama_layer_decode"))}}
}
