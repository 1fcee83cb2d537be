package optimize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/ir"
)

// Fused counts how often dispatches of the same operations were fused.
type Fused struct {
	Ops   string `json:"ops"` // the operations in the order of the recording: "rms_norm+mul"
	Count int    `json:"count"`
}

// fusedOf counts the dispatches of out that implement several commands of the recording, by
// operations, the most frequent first. A command of the recording may itself implement several
// commands of an earlier recording; that does not count.
func fusedOf(recorded, out *ir.Graph) []Fused {
	type command struct {
		id ir.ID
		op string
	}
	owner := map[ir.ID]command{} // by ID in From: the command of the recording that implements it
	for _, n := range recorded.Nodes {
		switch n := n.(type) {
		case *ir.Dispatch:
			c := command{n.ID, cmp.Or(n.Op, recorded.Kernels[n.Kernel].Function)}
			owner[n.ID] = c
			for _, id := range n.From {
				owner[id] = c
			}
		case *ir.Copy:
			owner[n.ID] = command{n.ID, "copy"}
		case *ir.Fill:
			owner[n.ID] = command{n.ID, "fill"}
		}
	}
	counts := map[string]int{}
	var ops []string
	seen := map[ir.ID]bool{}
	for _, n := range out.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok || len(d.From) < 2 {
			continue
		}
		ops = ops[:0]
		clear(seen)
		for _, id := range d.From {
			c, ok := owner[id]
			if !ok {
				c = command{id, id.String()}
			}
			if !seen[c.id] {
				seen[c.id], ops = true, append(ops, c.op)
			}
		}
		if len(ops) > 1 {
			counts[strings.Join(ops, "+")]++
		}
	}
	return sorted(counts)
}

func sorted(counts map[string]int) []Fused {
	out := make([]Fused, 0, len(counts))
	for _, ops := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, Fused{ops, counts[ops]})
	}
	slices.SortStableFunc(out, func(a, b Fused) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// shownOps is how many operations of one dispatch a text for people lists.
const shownOps = 16

// FusedText writes the counts on one line for people: "61 rms_norm+mul, 60 add+rms_norm". Of many operations it names
// the first few and how many there are.
func FusedText(all []Fused) string {
	var b strings.Builder
	for i, f := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", f.Count, shortOps(f.Ops))
	}
	return cmp.Or(b.String(), "nothing")
}

func shortOps(ops string) string {
	end := 0
	for range shownOps {
		n := strings.IndexByte(ops[end:], '+')
		if n < 0 {
			return ops
		}
		end += n + 1
	}
	return fmt.Sprintf("%s… (%d operations)", ops[:end], strings.Count(ops, "+")+1)
}

var process struct {
	sync.Mutex
	counts map[string]int
}

// countFused adds to the counts of the whole process.
func countFused(all []Fused) {
	process.Lock()
	defer process.Unlock()
	if process.counts == nil {
		process.counts = map[string]int{}
	}
	for _, f := range all {
		process.counts[f.Ops] += f.Count
	}
}

// ProcessFused returns what all optimizers of the process have fused so far ([Optimizer.Optimize]).
func ProcessFused() []Fused {
	process.Lock()
	defer process.Unlock()
	return sorted(process.counts)
}
