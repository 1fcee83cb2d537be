//go:build unix

package infer

import (
	"cmp"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/internal/testing/kernelcases"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/ir"
)

// memoryDecides is what a proposal says of an argument of which indices or counts in memory decide what is touched: no expression of the
// numbers of a dispatch can be exact.
const memoryDecides = "what is touched depends on what memory holds"

// Of ggml's kernels, dispatched as ggml does, four of five are described exactly, on five shapes that the description was not made from:
// all that they touch, but for arguments of which memory decides what is touched.
func TestGGMLKernels(t *testing.T) {
	sample.Seldom(t)
	cases, err := kernelcases.Load(filepath.Join("..", "..", "testdata", "ggml"))
	require.NoError(t, err)
	of := map[string]*kernelcases.Case{} // the first case of each kernel, with its first dispatch of that alone
	var functions []string
	for _, c := range cases {
		for i := range c.Steps {
			if f := c.Steps[i].Kernel; of[f] == nil {
				one := *c
				one.Steps = c.Steps[i : i+1]
				of[f], functions = &one, append(functions, f)
			}
		}
	}
	family := func(f string) string {
		parts := strings.Split(f, "_")
		return strings.Join(parts[:min(3, len(parts))], "_")
	}
	slices.SortStableFunc(functions, func(a, b string) int { return cmp.Compare(hash(a), hash(b)) })
	if sample.Whole() {
		functions = sample.Parted(functions)
	} else {
		functions = sample.Of(t, "effects of ggml", functions, sample.Runs)
	}
	path := metallibs.GGML(t)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	library := ir.Library{Kind: ir.SourceFile, Path: path, Digest: sha256.Sum256(source)}
	tables := map[string]*air.Kernel{}
	for some := range slices.Chunk(functions, 32) {
		u, err := mslc.Compile(t.Context(), path, string(source), mslc.Options{Kernels: some})
		require.NoError(t, err)
		for i := range u.Kernels {
			tables[u.Kernels[i].Name] = &u.Kernels[i]
		}
	}
	x := observer(t, Options{Shapes: 24, HeldOut: 5, Seed: 1})
	exact, skipping, possible, tried := 0, 0, 0, 0
	why := map[string][]string{}
	var times []time.Duration
	for _, f := range functions {
		g, err := kernelcases.StepGraph(library, 1<<16, of[f])
		require.NoError(t, err)
		k := &g.Kernels[0]
		table, err := bind.Kernel(tables[f], library)
		require.NoError(t, err)
		d := g.Nodes[0].(*ir.Dispatch)
		k.Args = slices.DeleteFunc(table.Args, func(a ir.Arg) bool {
			if a.Kind == ir.ThreadgroupArg {
				return !slices.ContainsFunc(d.ThreadgroupMemory, func(m ir.ThreadgroupMemory) bool { return m.Slot == a.Slot })
			}
			return d.Binding(a.Slot) == nil
		})
		k.Constants = slices.DeleteFunc(k.Constants, func(c ir.FunctionConstant) bool {
			return !slices.ContainsFunc(table.Constants, func(o ir.FunctionConstant) bool { return o.Index == c.Index })
		})
		for i := range k.Constants {
			j := slices.IndexFunc(table.Constants, func(o ir.FunctionConstant) bool { return o.Index == k.Constants[i].Index })
			k.Constants[i].Name = table.Constants[j].Name
		}
		for i := range d.Bindings { // views with the room that ggml's buffers have behind them
			b := &d.Bindings[i]
			if a, ok := k.Arg(b.Slot); ok && b.Kind == ir.BindBytes && a.Count > 0 { // as the importer does: ggml gives more than there is
				b.Bytes = b.Bytes[:min(int64(len(b.Bytes)), int64(a.Count)*a.Type.Size())]
			}
			if b.Kind == ir.BindView {
				b.View.Len = ir.Const(g.Memories[b.View.Mem].Size).Sub(b.View.Off)
			}
		}
		start := time.Now()
		r, err := x.Propose(t.Context(), []*ir.Graph{g}, every)
		took := time.Since(start)
		tried++
		times = append(times, took)
		if err != nil || len(r.Proposals) == 0 {
			reason := "nothing is proposed"
			if err != nil {
				reason = err.Error()
			} else if len(r.Left) > 0 {
				reason = r.Left[0].Why
			}
			why[reason] = append(why[reason], f)
			t.Logf("%s: %.1f s: NONE %s", f, took.Seconds(), reason)
			continue
		}
		all, but, skips := true, true, false
		for _, p := range r.Proposals {
			if p.Counts.HeldOut < 5 {
				all, but = false, false
				why["too few shapes to hold out"] = append(why["too few shapes to hold out"], f)
			}
			for _, a := range p.Fits {
				if skips = skips || a.Skips; a.Exact {
					continue
				}
				if all = false; a.Why != memoryDecides {
					but = false
				}
				why[a.Why] = append(why[a.Why], f+" "+a.Argument)
				t.Logf("%s: %.1f s: %s %s %s: %s (%d of %d bytes)", f, took.Seconds(), a.Argument, a.Access, a.Shape, a.Why, a.Touched, a.Declared)
			}
			t.Logf("%s: %.1f s: %d real, %d made, %d refused, %d held out, exact %v", f, took.Seconds(), p.Counts.Real, p.Counts.Made, p.Counts.Refused, p.Counts.HeldOut, p.Exact)
		}
		exact, skipping, possible = exact+int(boolBit(all)), skipping+int(boolBit(all && skips)), possible+int(boolBit(but))
	}
	slices.Sort(times)
	t.Logf("%d kernels of %d families: %d exact, %d of which skip bytes, %d exact but for what memory decides; median %.1f s, greatest %.1f s", tried, len(families(functions, family)), exact, skipping, possible, times[len(times)/2].Seconds(), times[len(times)-1].Seconds())
	for reason, list := range why {
		t.Logf("%d %s: %s", len(list), reason, strings.Join(list, ", "))
	}
	if sample.Whole() {
		assert.GreaterOrEqual(t, 5*possible, 4*tried)
		assert.Less(t, times[len(times)/2], 10*time.Second)
	}
}

func boolBit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func families(list []string, of func(string) string) map[string]bool {
	out := map[string]bool{}
	for _, f := range list {
		out[of(f)] = true
	}
	return out
}

func hash(s string) (h uint32) {
	for _, c := range []byte(s) {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
