package passes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

func validate(pipeline string) error {
	p, err := passes.ParsePipeline(pipeline)
	if err != nil {
		return err
	}
	return p.Validate(passes.Options{})
}

func TestValidateFindsWrongSettings(t *testing.T) {
	all := ""
	for _, p := range passes.All() {
		if p.Name != "reorder" {
			all += "," + p.Name
		}
	}
	require.NoError(t, validate(all[1:]))
	for pipeline, want := range map[string]string{
		"rename{budget=x}":             "pass rename{budget=x}: budget=x: want bytes (4096, 64KiB, 64MiB, 1GiB), a multiple of the recording's scratch (1x, 0.5x) or unlimited",
		"rename{budget=-1x}":           "budget=-1x: want",
		"rename{budget=9999999GiB}x":   "{ without }",
		"rename{budget=9999999999GiB}": "budget=9999999999GiB: want",
		"schedule{chip=m0}":            `pass schedule{chip=m0}: chip=m0: there is no chip "m0" (there are m1, `,
		"split{n=0}":                   "pass split{n=0}: n=0: want a number from 1 to 64",
		"split{first=0}":               "first=0: want a number from 1 on",
		"split{max-ms=0}":              "max-ms=0: want a number of milliseconds above 0",
		"split{profile=none.json}":     "open none.json",
		"reorder{lookahead=x}":         "lookahead=x: want a number from 0 on",
		"fuse{max-threads=0}":          "max-threads=0: want a number from 1 on",
		"fuse{generate=x}":             "generate=x: want true or false",
		"fuse{allow=x}":                `allow=x: there is no rewrite "x" (there are round)`,
		"constants{align=3}":           "align=3: want a power of two from 16 to 4096",
	} {
		require.ErrorContains(t, validate(pipeline), want, pipeline)
	}
	p := passes.Pipeline{{Pass: passes.All()[0], Values: passes.Values{"z": "1", "a": "2"}}}
	require.EqualError(t, p.Validate(passes.Options{}), `pass annotate has no option "a"`)
}

// A step that names a chip or a profile takes it, whatever the run models; one that names
// neither takes that of the run.
func TestModelOfAStep(t *testing.T) {
	run, err := cost.Chip("m4")
	require.NoError(t, err)
	for pipeline, want := range map[string]string{
		"annotate,schedule":               "modelled on m4:",
		"annotate,schedule{chip=m1}":      "modelled on m1:",
		"annotate,schedule{profile=none}": "modelled on m3-max:",
	} {
		p, err := passes.ParsePipeline(pipeline)
		require.NoError(t, err)
		rs, err := passes.Run(context.Background(), small(t), p, passes.Options{Model: run})
		require.NoError(t, err)
		require.Contains(t, rs[1].Remarks[len(rs[1].Remarks)-1].Text, want, pipeline)
	}
}

// The table lists each pass once, in an order that its constraints allow, and its constraints name
// existing passes.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	var all passes.Pipeline
	for _, p := range passes.All() {
		require.False(t, names[p.Name], p.Name)
		names[p.Name] = true
		all = append(all, passes.Step{Pass: p})
	}
	require.NoError(t, all.Validate(passes.Options{}))
	for _, c := range passes.Constraints() {
		require.True(t, names[c.Before] && names[c.After], "%v", c)
	}
}

type mine struct {
	often  int
	loudly bool
}

// A pass of a program's own has typed options, constraints on its order, and a place in a
// table from which pipelines are read.
func TestAPassOfOnesOwn(t *testing.T) {
	var got mine
	p := passes.New(passes.Pass{Name: "mine", Summary: "nothing", Order: []passes.Constraint{{Before: "annotate", After: "mine", Reason: "it looks at effects"}}},
		func(ctx context.Context, s *passes.State, o mine) error {
			got = o
			s.About("%x", "seen in %d commands", s.Graph.Stats().Dispatches)
			s.Did(s.Graph.Nodes[0].(ir.Command), "looked at")
			return nil
		},
		passes.Int("often", 3, 1, 9, "how often", func(o *mine) *int { return &o.often }),
		passes.Bool("loudly", false, "how", func(o *mine) *bool { return &o.loudly }))
	require.Equal(t, []passes.Option{{"often", "3", "how often"}, {"loudly", "false", "how"}}, p.Options())
	table := append(passes.All(), p)
	pipeline, err := table.Parse("annotate,mine{loudly=true},barriers")
	require.NoError(t, err)
	rs, err := passes.Run(context.Background(), small(t), pipeline, passes.Options{})
	require.NoError(t, err)
	require.Equal(t, mine{3, true}, got)
	require.Equal(t, "%x: done: seen in 3 commands", rs[1].Remarks[0].String())
	require.Equal(t, "#0 rms_norm: done: looked at", rs[1].Remarks[1].String())
	require.Equal(t, 1, rs[1].Changed)
	require.Equal(t, "mine{loudly=true}", rs[1].Pass)

	_, err = table.Parse("mine,annotate")
	require.EqualError(t, err, "pass annotate must run before mine: it looks at effects")
	_, err = passes.ParsePipeline("mine")
	require.ErrorContains(t, err, `there is no pass "mine"`)
	pipeline, err = table.Parse("mine{often=10}")
	require.NoError(t, err)
	_, err = passes.Run(context.Background(), small(t), pipeline, passes.Options{})
	require.EqualError(t, err, "pass mine{often=10}: often=10: want a number from 1 to 9")
	require.Panics(t, func() {
		passes.New(passes.Pass{Name: "bad"}, func(context.Context, *passes.State, mine) error { return nil },
			passes.Int("often", 0, 1, 9, "", func(o *mine) *int { return &o.often }))
	})
}
