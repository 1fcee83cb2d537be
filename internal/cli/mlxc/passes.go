package mlxc

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/cli"
	"github.com/mlxc/mlxc/passes"
)

type passesCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *passesCmd) Run(env *cli.Env) error {
	type option struct{ Name, Default, Help string }
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
		for _, o := range p.Options {
			r.Options = append(r.Options, option(o))
			t.Add("  "+o.Name+"="+o.Default, "", o.Help)
		}
		rows = append(rows, r)
	}
	if c.JSON {
		return cli.JSON(env.Stdout, rows)
	}
	if err := t.Print(env.Stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(env.Stdout, "The default pipeline runs in this order. Choose another: mlxc optimize --passes=annotate,barriers\n")
	return err
}
