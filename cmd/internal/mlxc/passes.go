package mlxc

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/passes"
)

type passesCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *passesCmd) Run(env *cli.Env) error {
	type option struct {
		Name    string `json:"name"`
		Default string `json:"default"`
		Help    string `json:"help"`
	}
	type row struct {
		Name    string   `json:"name"`
		Summary string   `json:"summary"`
		Default bool     `json:"default"`
		Options []option `json:"options"`
	}
	var rows []row
	t := cli.Table{Header: []string{"pass", "default", "what it does"}}
	for _, p := range passes.All() {
		r := row{p.Name, p.Summary, p.Default, []option{}}
		def := "no"
		if p.Default {
			def = "yes"
		}
		t.Add(p.Name, def, p.Summary)
		for _, o := range p.Options() {
			r.Options = append(r.Options, option(o))
			t.Add("  "+o.Name+"="+o.Default, "", o.Help)
		}
		rows = append(rows, r)
	}
	if c.JSON {
		return cli.JSON(env.Context, env.Stdout, map[string]any{"passes": rows, "order": passes.Constraints()})
	}
	if err := t.Print(env.Stdout); err != nil {
		return err
	}
	var names []string
	for _, s := range passes.DefaultPipeline() {
		names = append(names, s.String())
	}
	fmt.Fprintf(env.Stdout, "The default pipeline: %s. Choose another: mlxc optimize --passes='annotate,reorder{lookahead=16},barriers'\n", strings.Join(names, ","))
	fmt.Fprintln(env.Stdout, "Where a pipeline has both, the first runs before the second:")
	for _, o := range passes.Constraints() {
		fmt.Fprintf(env.Stdout, "  %s before %s: %s\n", o.Before, o.After, o.Reason)
	}
	return nil
}
