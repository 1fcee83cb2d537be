package mlxc

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// dot draws a graph for Graphviz: one row an epoch, one box a command, an
// arrow from a write to the next command that reads any of its bytes.
func dot(g *ir.Graph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=TB; node [shape=box, fontname=\"Helvetica\", fontsize=10];\n", g.Name)
	epoch, open := 0, false
	for _, n := range g.Nodes {
		id, command := ir.NodeID(n)
		switch n.(type) {
		case *ir.Barrier, *ir.Commit:
			if open {
				b.WriteString("  }\n")
			}
			open = false
			epoch++
			continue
		}
		if !command {
			continue
		}
		if !open {
			fmt.Fprintf(&b, "  subgraph epoch%d { rank=same;\n", epoch)
			open = true
		}
		label := g.Describe(n)
		if s := nodeLabel(n); s != "" {
			label += "\\n" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s)
		}
		fmt.Fprintf(&b, "    n%d [label=\"%s\"];\n", uint32(id), strings.ReplaceAll(label, `"`, `\"`))
	}
	if open {
		b.WriteString("  }\n")
	}
	writeEdges(&b, g)
	b.WriteString("}\n")
	return b.String()
}

func nodeLabel(n ir.Node) string {
	switch n := n.(type) {
	case *ir.Dispatch:
		return n.Label
	case *ir.Copy:
		return n.Label
	case *ir.Fill:
		return n.Label
	}
	return ""
}

// lastWriters knows, for each root memory, which command wrote which bytes
// last; hulls stand for strided regions, params take all their values.
type lastWriters map[ir.MemID][]written

type written struct {
	lo, end int64
	by      ir.ID
}

func writeEdges(b *strings.Builder, g *ir.Graph) {
	last := lastWriters{}
	hull := func(r ir.Region) (ir.MemID, int64, int64) {
		root, off := g.Root(r.Mem)
		lo, end := r.Hull()
		first, _, _ := g.Range(lo)
		_, until, _ := g.Range(end)
		return root, first + off, until + off
	}
	for _, n := range g.Nodes {
		id, ok := ir.NodeID(n)
		e := ir.NodeEffects(n)
		if !ok || e == nil {
			continue
		}
		seen := map[ir.ID]bool{}
		for _, r := range e.Reads {
			root, lo, end := hull(r)
			for _, w := range last[root] {
				if w.lo < end && lo < w.end && !seen[w.by] {
					seen[w.by] = true
					fmt.Fprintf(b, "  n%d -> n%d;\n", uint32(w.by), uint32(id))
				}
			}
		}
		for _, w := range e.Writes {
			root, lo, end := hull(w.Region)
			kept := []written{}
			for _, o := range last[root] {
				// What the new write covers is gone; the rest stays.
				if o.end <= lo || end <= o.lo || !w.Must || len(w.Dims) > 0 {
					kept = append(kept, o)
					continue
				}
				if o.lo < lo {
					kept = append(kept, written{o.lo, lo, o.by})
				}
				if end < o.end {
					kept = append(kept, written{end, o.end, o.by})
				}
			}
			last[root] = append(kept, written{lo, end, id})
		}
	}
}
