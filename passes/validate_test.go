package passes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

func validate(pipeline string, o passes.Options) error {
	p, err := passes.ParsePipeline(pipeline)
	if err != nil {
		return err
	}
	return p.Validate(o)
}

func TestValidateFindsWrongSettings(t *testing.T) {
	all := ""
	for _, p := range passes.All() {
		if p.Name != "reorder" {
			all += "," + p.Name
		}
	}
	require.NoError(t, validate(all[1:], passes.Options{Chip: "m1", Profile: ""}))
	for pipeline, want := range map[string]string{
		"rename{budget=x}":         "budget",
		"schedule{chip=m0}":        `there is no chip "m0"`,
		"split{n=0}":               "n=0: want a number from 1",
		"split{profile=none.json}": "none.json",
		"reorder{lookahead=x}":     "lookahead",
		"fuse{max-threads=0}":      "max-threads",
		"constants{align=3}":       "align",
	} {
		require.ErrorContains(t, validate(pipeline, passes.Options{}), want, pipeline)
	}
	_, err := cost.Chip("m0")
	require.ErrorContains(t, validate("split", passes.Options{Chip: "m0"}), err.Error())
	// A step that names a chip takes it, whatever the run models.
	require.NoError(t, validate("split{chip=m1}", passes.Options{Profile: "nobody.json"}))
	require.NoError(t, validate("schedule{profile=none}", passes.Options{Chip: "m0"}))
}

func TestAPassOfOnesOwn(t *testing.T) {
	ran := false
	p := passes.New("mine", "", func(ctx context.Context, g *ir.Graph, o passes.Values, r *passes.Report) error {
		ran = true
		r.About("%x", "seen")
		return nil
	})
	rs, err := passes.Run(context.Background(), small(t), passes.Pipeline{{Pass: p}}, passes.Options{})
	require.NoError(t, err)
	require.True(t, ran)
	require.Equal(t, "%x: done: seen", rs[0].Remarks[0].String())
}
