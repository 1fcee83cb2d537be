package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// The effects that a dispatch of a declared kernel stores may be absent or too wide,
// but not too narrow.
func TestStoredEffects(t *testing.T) {
	before := recorded.Graph(t, "norm_residual")
	for _, n := range before.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			e, err := msl.Describe(before, d)
			require.NoError(t, err)
			d.Effects = e
		}
	}
	for _, x := range []struct {
		name   string
		edit   func(*ir.Effects)
		want   judge.Verdict
		reason string
	}{
		{"unknown", func(e *ir.Effects) { e.Complete = false }, judge.Harmless, ""},
		{"a read is shorter", func(e *ir.Effects) { e.Reads[0].Run = ir.Const(256) }, judge.Harmful, "#0: stored effects leave out bytes that the kernel reads"},
		{"no write", func(e *ir.Effects) { e.Writes = nil }, judge.Harmful, "#0: stored effects leave out bytes that the kernel writes"},
		{"a write of more", func(e *ir.Effects) { e.Writes[0].Run = ir.Const(1024) }, judge.Harmful, "#0: stored effects call a must-write what the kernel may leave alone"},
		{"a may-write", func(e *ir.Effects) { e.Writes[0].Must = false }, judge.Harmless, "#0: stored effects are wider than those of the kernel's declaration"},
	} {
		after := before.Clone()
		x.edit(after.Nodes[0].(*ir.Dispatch).Effects)
		require.NoError(t, after.Check())
		j := judge.Judge(before, after, judge.Options{})
		require.Equal(t, x.want, j.Verdict, "%s: %s", x.name, j.Reason)
		if x.want == judge.Harmful {
			require.Equal(t, x.reason, j.Reason, x.name)
		} else if x.reason != "" {
			require.Contains(t, j.Remarks, x.reason, x.name)
		}
	}
}
