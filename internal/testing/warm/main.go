// Command warm compiles the kernels that a run of the tests takes, in each way that tests compile them, into the
// cache that all tests share (package store), on all cores. make test does so before the tests: test programs that
// start at the same time would otherwise compile the same kernels, one by one.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/ir"
)

// quiet discards the messages of package sample, which the tests print again.
type quiet struct{}

func (quiet) Helper()             {}
func (quiet) Logf(string, ...any) {}

func main() {
	store.Use()
	for name, way := range map[string]struct {
		options softmetal.Options
		choose  func([]string, func(string) string) []string
	}{
		"plain":   {softmetal.Options{}, sample.Choose(quiet{}, "plain")},
		"checked": {softmetal.Options{Check: true}, sample.Checked(quiet{}, sample.UnderChecker)},
	} {
		start := time.Now()
		n, err := warm(context.Background(), name, way.options, way.choose)
		if err != nil {
			fmt.Fprintf(os.Stderr, "warm: %s: %v\n", name, err)
			os.Exit(1)
		}
		fmt.Printf("%d kernels, %s: %.0f s\n", n, name, time.Since(start).Seconds())
	}
}

// warm compiles kernels in one way, as those of one graph, and returns their number.
func warm(ctx context.Context, name string, o softmetal.Options, choose func([]string, func(string) string) []string) (int, error) {
	g := &ir.Graph{Name: name}
	seen := map[string]bool{}
	err := conformance.Sample(1, 7, choose, func(c *conformance.Case) error {
		k := c.Graph.Kernels[0]
		if key := fmt.Sprint(k.Function, k.Constants); !seen[key] {
			seen[key] = true
			g.Nodes = append(g.Nodes, &ir.Dispatch{ID: ir.ID(len(g.Kernels)), Kernel: ir.KernelID(len(g.Kernels))})
			g.Kernels = append(g.Kernels, k)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	o.Workers = runtime.GOMAXPROCS(0)
	d, err := softmetal.New(ctx, o)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	// The dispatches bind nothing, which is an error, but only after all kernels are compiled. One that does not
	// compile fails the tests that run it.
	_, _ = d.Compile(ctx, &backend.Program{Graph: g})
	return len(g.Kernels), nil
}
