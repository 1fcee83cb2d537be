//go:build unix

package softmetal_test

import (
	"context"
	"testing"
	"path/filepath"
	"os"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testkit/kernelcases"
	"github.com/mlxc/mlxc/ir"
)

func ggmlRun(t *testing.T, check bool) {
	ctx := context.Background()
	spare := int64(1<<16); if check {spare=0}
	cases, err := kernelcases.Load(filepath.Join("..", "..", "testdata", "ggml"))
	require.NoError(t, err)
	library := ir.Library{Kind: ir.SourceFile, Path: filepath.Join("..", "..", "out", "metal-sources", "ggml-0.13.1", "ggml-metal.metal")}
	d, err := softmetal.New(ctx, softmetal.Options{Check: check, Cache: os.Getenv("GGMLCACHE")})
	require.NoError(t, err)
	defer d.Close()
	all, err := kernelcases.StepGraph(library, spare, cases...)
	require.NoError(t, err)
	x, err := d.Compile(ctx, &backend.Program{Graph: all, Places: make([]backend.Place, len(all.Memories))})
	if err != nil { t.Log(err) } else {
	defer x.Close() }
	for _, c := range cases {
		g, err := kernelcases.StepGraph(library, spare, c)
		require.NoError(t, err)
		p, err := c.Prepare(ctx, d, g)
		if err != nil { t.Error(err); continue }
		q, err := d.NewQueue()
	require.NoError(t, err)
		used, err := p.Run(ctx, q)
		q.Close()
		if err != nil { t.Error(err) }
		fmt.Printf("USED %.3g %s\n", used, c.Name)
		if check {
			for _, o := range d.Observed() {
				for _, f := range o.Findings {
					fmt.Printf("FOUND %s: %v\n", c.Name, &f)
				}
			}
		}
		p.Close()
	}
}
func TestGGMLa(t *testing.T) { ggmlRun(t, false) }
func TestGGMLb(t *testing.T) { ggmlRun(t, true) }
