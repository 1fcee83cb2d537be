package mlxc

import (
	"context"
	"io"
	"strings"

	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
)

// meaningless returns, by graph, the reports of those graphs that have no meaning. A
// command that only shows a graph shows such a graph too, with its faults.
func meaningless(ctx context.Context, graphs []*ir.Graph) (map[*ir.Graph]*meaning.Report, error) {
	out := map[*ir.Graph]*meaning.Report{}
	for _, g := range graphs {
		r, err := meaning.Of(ctx, g)
		if err != nil {
			return nil, err
		}
		if len(r.Faults) > 0 {
			out[g] = r
		}
	}
	return out, nil
}

// comments formats the faults of the graphs as lines that begin with mark.
func comments(mark string, graphs []*ir.Graph, found map[*ir.Graph]*meaning.Report) string {
	out := ""
	for _, g := range graphs {
		if r := found[g]; r != nil {
			out += mark + strings.ReplaceAll(r.Err().Error(), "\n", "\n"+mark) + "\n"
		}
	}
	return out
}

// comment writes the lines of comments.
func comment(w io.Writer, mark string, graphs []*ir.Graph, found map[*ir.Graph]*meaning.Report) error {
	_, err := io.WriteString(w, comments(mark, graphs, found))
	return err
}
