package mlxc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
)

// drawing writes a digraph for Graphviz: a row for each epoch, a box for each command,
// a word for each commit between the rows, and an arrow for each conflict that the
// order of the commands keeps. Rows that no arrow connects are kept in order by an
// invisible edge. An arrow is solid if the later command reads what the earlier one
// wrote, dashed if it only must not overtake it (WAR, WAW), and dotted if one of the
// two may touch anything. Where many readers meet many writers, a point stands between
// them.
type drawing struct {
	w      *bufio.Writer
	prefix string // prefix of the names of nodes
	indent string
}

// writeDot draws graphs. A single graph becomes a digraph of its name. Several become
// clusters of one digraph called title, so that the file holds a single digraph.
func writeDot(ctx context.Context, to io.Writer, title string, graphs []*ir.Graph) (err error) {
	defer interrupt.Catch(&err)
	d := drawing{w: bufio.NewWriter(to), indent: "  "}
	const style = "rankdir=TB; node [shape=box, fontname=\"Helvetica\", fontsize=10];"
	if len(graphs) == 1 {
		fmt.Fprintf(d.w, "digraph %s {\n  %s\n", dotString(graphs[0].Name), style)
		d.graph(ctx, graphs[0])
	} else {
		fmt.Fprintf(d.w, "digraph %s {\n  newrank=true; %s\n", dotString(title), style)
		for i, g := range graphs {
			d.prefix, d.indent = fmt.Sprintf("g%d_", i), "    "
			fmt.Fprintf(d.w, "  subgraph cluster_%d {\n    label=%s;\n", i, dotString(g.Name))
			d.graph(ctx, g)
			d.w.WriteString("  }\n")
		}
	}
	d.w.WriteString("}\n")
	return d.w.Flush()
}

// dotString quotes s for Graphviz. Its strings know no escapes but \" and, in labels,
// \n and the like; every other character stands for itself.
func dotString(s string) string {
	s = strings.NewReplacer("\n", " ", "\t", " ").Replace(cli.Escape(s))
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func (d *drawing) graph(ctx context.Context, g *ir.Graph) {
	// A recording may store no effects, so those that its kernels declare are used.
	full := optimize.Annotated(ctx, g)
	if g.Ordering == ir.ByEdges {
		d.byEdges(ctx, full)
		return
	}
	epoch, open := 0, false
	var names []string // by command: the name of its node
	var rows []string  // by row: the name of its first node
	var of []int       // by command: its row
	commits := 0
	for i, n := range g.Nodes {
		interrupt.Poll(ctx)
		switch n.(type) {
		case *ir.Barrier, *ir.Commit:
			if open {
				fmt.Fprintf(d.w, "%s}\n", d.indent)
			}
			open = false
			epoch++
			if c, ok := n.(*ir.Commit); ok {
				at := fmt.Sprintf("%sc%d", d.prefix, commits)
				commits++
				fmt.Fprintf(d.w, "%s%s [shape=plaintext, label=%s];\n", d.indent, at, dotString(commitLabel(c)))
				rows = append(rows, at)
			}
			continue
		}
		c, command := n.(ir.Command)
		if !command {
			continue
		}
		if open && g.Ordering == ir.Serial { // in a serial graph every command is an epoch
			fmt.Fprintf(d.w, "%s}\n", d.indent)
			open = false
			epoch++
		}
		name := d.name(c.Num())
		if !open {
			rows = append(rows, name)
			fmt.Fprintf(d.w, "%ssubgraph %sepoch%d { rank=same;\n", d.indent, d.prefix, epoch)
			open = true
		}
		names, of = append(names, name), append(of, len(rows)-1)
		d.box(full, full.Nodes[i].(ir.Command))
	}
	if open {
		fmt.Fprintf(d.w, "%s}\n", d.indent)
	}
	linked := make([]bool, len(rows)+1) // by row: an arrow leads to it from the row above
	d.edges(ctx, full, names, func(from, to int32) { linked[of[to]] = linked[of[to]] || of[from] == of[to]-1 })
	for k := 1; k < len(rows); k++ {
		if !linked[k] {
			fmt.Fprintf(d.w, "%s%s -> %s [style=invis];\n", d.indent, rows[k-1], rows[k])
		}
	}
}

// commitLabel returns a commit as the text form writes it.
func commitLabel(c *ir.Commit) string {
	s := "commit"
	if c.Order != ir.OrderNone {
		s += " " + c.Order.String()
	}
	if c.Label != "" {
		s += " " + c.Label
	}
	return s
}

func (d *drawing) name(id ir.ID) string { return fmt.Sprintf("%sn%d", d.prefix, uint32(id)) }

// box draws a command of a graph that has effects wherever they are known.
func (d *drawing) box(g *ir.Graph, c ir.Command) {
	label := dotString(g.Describe(c))
	if s := ir.LabelOf(c); s != "" {
		label = strings.TrimSuffix(label, `"`) + `\n` + dotString(s)[1:]
	}
	style := ""
	if !c.Touches().Known() {
		style = ", style=dashed"
	}
	fmt.Fprintf(d.w, "%s  %s [label=%s%s];\n", d.indent, d.name(c.Num()), label, style)
}

// byEdges draws a graph that is ordered by edges. Commands with equally long paths to
// them stand in one row, joins are points, and edges from the replay before are dashed.
func (d *drawing) byEdges(ctx context.Context, g *ir.Graph) {
	for i, level := range g.Levels() {
		fmt.Fprintf(d.w, "%ssubgraph %slevel%d { rank=same;\n", d.indent, d.prefix, i)
		for _, k := range level {
			d.box(g, g.Nodes[k].(ir.Command))
		}
		fmt.Fprintf(d.w, "%s}\n", d.indent)
	}
	for _, n := range g.Nodes {
		if j, ok := n.(*ir.Join); ok {
			fmt.Fprintf(d.w, "%s%s [shape=point];\n", d.indent, d.name(j.ID))
		}
	}
	for _, e := range g.Edges {
		interrupt.Poll(ctx)
		style := ""
		if e.Previous {
			style = " [style=dashed, constraint=false]"
		}
		fmt.Fprintf(d.w, "%s%s -> %s%s;\n", d.indent, d.name(e.From), d.name(e.To), style)
	}
}

// edges draws the conflicts of g, whose commands have nodes called names. It calls
// drawn for each conflict between two commands.
func (d *drawing) edges(ctx context.Context, g *ir.Graph, names []string, drawn func(from, to int32)) {
	table := hazard.NewTable(ctx, g)
	name := func(node int32) string {
		if int(node) < len(names) {
			return names[node]
		}
		return fmt.Sprintf("%sj%d", d.prefix, int(node)-len(names))
	}
	// The reasons for which one command waits are grouped by the node that it waits
	// for, in the order in which they were found.
	to := int32(-1)
	var from []int32
	kinds := map[int32]hazard.Kind{}
	flush := func() {
		for _, f := range from {
			style := ""
			switch kinds[f] {
			case hazard.WAR, hazard.WAW:
				style = " [style=dashed]"
			case hazard.Unknown:
				style = " [style=dotted]"
			}
			fmt.Fprintf(d.w, "%s%s -> %s%s;\n", d.indent, name(f), name(to), style)
			if int(f) < len(names) {
				drawn(f, to)
			}
		}
		from = from[:0]
		clear(kinds)
	}
	order := table.Hazards(func(h hazard.Hazard) {
		interrupt.Poll(ctx)
		if h.To != to {
			flush()
			to = h.To
		}
		k, seen := kinds[h.From]
		if !seen {
			from = append(from, h.From)
		}
		if !seen || k != hazard.RAW && h.Kind == hazard.RAW {
			kinds[h.From] = h.Kind
		}
	})
	flush()
	// Joins have no box of their own.
	for j := len(names); j < order.Nodes; j++ {
		fmt.Fprintf(d.w, "%s%s [shape=point];\n", d.indent, name(int32(j)))
	}
	for i := range order.Nodes {
		for _, next := range order.Successors(int32(i)) {
			if int(next) >= len(names) {
				fmt.Fprintf(d.w, "%s%s -> %s [arrowhead=none];\n", d.indent, name(int32(i)), name(next))
			}
		}
	}
}
