//go:build unix

package infer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/ir"
)

// memoryDecides is what a proposal says of an argument of which indices or counts in memory decide what is touched: no expression of the
// numbers of a dispatch can be exact.
const memoryDecides = "what is touched depends on what memory holds"

// tally counts how well proposals for dispatches of some kernels fit shapes that they were not made from.
type tally struct {
	exact    int // in every argument
	skipping int // of these, the ones with arguments of which bytes are skipped by what memory holds
	none     int // without a proposal
	possible int // in every argument but those of which memory decides what is touched
	why      map[string][]string
	times    []time.Duration
}

// described gives the kernel of a graph with one dispatch the arguments and names of constants that its compiled code has.
func described(t *testing.T, g *ir.Graph, kernel *air.Kernel, library ir.Library) {
	table, err := bind.Kernel(kernel, library)
	require.NoError(t, err)
	k, d := &g.Kernels[0], g.Nodes[0].(*ir.Dispatch)
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
}

// propose makes proposals for the one dispatch of g, of the kernel f, counts how they fit, and returns them.
func (n *tally) propose(t *testing.T, x *Observer, f string, g *ir.Graph) []Proposal {
	if n.why == nil {
		n.why = map[string][]string{}
	}
	start := time.Now()
	r, err := x.Propose(t.Context(), []*ir.Graph{g}, every)
	took := time.Since(start)
	n.times = append(n.times, took)
	if err != nil || len(r.Proposals) == 0 {
		reason := "nothing is proposed"
		if err != nil {
			reason = err.Error()
		} else if len(r.Left) > 0 {
			reason = r.Left[0].Why
		}
		n.none++
		n.why[reason] = append(n.why[reason], f)
		t.Logf("%s: %.1f s: NONE %s", f, took.Seconds(), reason)
		return nil
	}
	all, but, skips := true, true, false
	for _, p := range r.Proposals {
		if p.Counts.HeldOut < 5 {
			all, but = false, false
			n.why["too few shapes to hold out"] = append(n.why["too few shapes to hold out"], f)
		}
		for _, a := range p.Fits {
			if skips = skips || a.Skips; a.Exact {
				continue
			}
			if all = false; a.Why != memoryDecides {
				but = false
			}
			n.why[a.Why] = append(n.why[a.Why], f+" "+a.Argument)
			t.Logf("%s: %.1f s: %s %s %s: %s (%d of %d bytes)", f, took.Seconds(), a.Argument, a.Access, a.Shape, a.Why, a.Touched, a.Declared)
		}
		t.Logf("%s: %.1f s: %d real, %d made, %d refused, %d held out, exact %v", f, took.Seconds(), p.Counts.Real, p.Counts.Made, p.Counts.Refused, p.Counts.HeldOut, p.Exact)
	}
	if all {
		n.exact++
		if skips {
			n.skipping++
		}
	}
	if but {
		n.possible++
	}
	return r.Proposals
}

// log says what was counted. It sorts the times.
func (n *tally) log(t *testing.T, families int) {
	slices.Sort(n.times)
	t.Logf("%d kernels of %d families: %d exact, %d of which skip bytes, %d exact but for what memory decides; median %.1f s, max %.1f s", len(n.times), families, n.exact, n.skipping, n.possible,
		n.times[len(n.times)/2].Seconds(), n.times[len(n.times)-1].Seconds())
	for reason, list := range n.why {
		t.Logf("%d %s: %s", len(list), reason, strings.Join(list, ", "))
	}
}
