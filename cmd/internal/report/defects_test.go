package report_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/report"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
)

// What the checker found comes first, each defect once, and only of the graph that it was found in.
func TestDefects(t *testing.T) {
	g := recorded.Graph(t, "norm_residual")
	var d *ir.Dispatch
	for _, n := range g.Nodes {
		if x, ok := n.(*ir.Dispatch); ok {
			d = x
		}
	}
	kernel := g.Kernels[d.Kernel].Name
	finding := func(id ir.ID, kernel, kind string) string {
		return fmt.Sprintf(`{"command":%d,"kernel":%q,"kind":"%s","argument":"x","offset":4,"line":12,"times":3,"text":"…"}`, id, kernel, kind)
	}
	read := func(graph, findings, order string) error {
		of, err := report.ParseDefects(fmt.Appendf(nil, `{"graph":%q,"findings":[%s],"order":[%s],"dropped":0}`, graph, findings, order))
		require.NoError(t, err)
		return (&report.Report{}).Add(g, of)
	}
	r := of(t, g)
	before := len(r.Findings)
	same := finding(d.ID, kernel, "out of bounds")
	found, err := report.ParseDefects(fmt.Appendf(nil, `{"graph":%q,"findings":[%s,%s,%s],"order":["#1 and #2"],"dropped":7}`, g.Name, same, same, finding(d.ID, kernel, "race")))
	require.NoError(t, err)
	require.NoError(t, r.Add(g, found))
	require.Len(t, r.Findings, before+4)
	assert.Equal(t, 5, r.Defects)
	assert.Equal(t, report.Defect, r.Findings[0].Kind)
	assert.Contains(t, r.Findings[0].What, "out of bounds of x, line 12")
	assert.Equal(t, 2, r.Findings[0].Count)
	assert.Equal(t, d.ID, r.Findings[0].Examples[0][0].ID)
	assert.Equal(t, "#1 and #2", r.Findings[2].What)
	assert.Contains(t, r.Findings[3].What, "7 more")

	assert.ErrorContains(t, read("other", same, ""), "graph other, not of")
	assert.ErrorContains(t, read(g.Name, finding(d.ID, "another", "race"), ""), "another graph of this name")
	assert.ErrorContains(t, read(g.Name, finding(1<<30, kernel, "race"), ""), "another graph of this name")
	assert.ErrorContains(t, read(g.Name, finding(d.ID, kernel, `\u001b[2J`), ""), "cannot be printed")
	assert.ErrorContains(t, read(g.Name, "", `"a\nb"`), "cannot be printed")
	for _, text := range []string{"", "{}", "[]", `{"graph":"decode"}`, `{"graph":"decode","findings":[{"command":"x"}]}`, "dispatches 3"} {
		_, err := report.ParseDefects([]byte(text))
		assert.ErrorContains(t, err, "not what mlxreplay check --json prints", text)
	}
}
