package mlxc

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/internal/cli"
	"github.com/mlxc/mlxc/internal/modfile"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

type verifyCmd struct {
	Graphs []string `arg:"" name:"graph" help:"Graph files (.mlxg or .mlxt)."`
	Full   bool     `name:"verify" help:"Read every byte: checksums of weights, digests of external files."`
	JSON   bool     `name:"json" help:"Print the result as JSON."`
}

// verdict is what verify found about one file.
type verdict struct {
	File    string   `json:"file"`
	Valid   bool     `json:"valid"`
	Errors  []string `json:"errors,omitempty"`
	Unknown []string `json:"undescribed,omitempty"` // dispatches that no declaration describes
}

func (c *verifyCmd) Run(env *cli.Env) error {
	var out []verdict
	bad := 0
	for _, path := range c.Graphs {
		v := c.check(path)
		if !v.Valid {
			bad++
		}
		out = append(out, v)
	}
	if c.JSON {
		if err := cli.JSON(env.Stdout, out); err != nil {
			return err
		}
	} else {
		for _, v := range out {
			state := "valid"
			if !v.Valid {
				state = "NOT valid"
			}
			fmt.Fprintf(env.Stdout, "%s: %s\n", v.File, state)
			for _, e := range v.Errors {
				fmt.Fprintf(env.Stdout, "  %s\n", e)
			}
			for _, u := range v.Unknown {
				fmt.Fprintf(env.Stdout, "  note: %s\n", u)
			}
		}
	}
	if bad > 0 {
		return cli.Fail(fmt.Errorf("%d of %d file(s) are not valid", bad, len(out)))
	}
	return nil
}

// check opens the file, which checks its form, and asks for every dispatch of a
// builtin kernel whether a declaration describes it and allows its aliasing.
func (c *verifyCmd) check(path string) verdict {
	v := verdict{File: path}
	f, err := modfile.Open(path, modfile.Options{Verify: c.Full})
	if err != nil {
		var list ir.Errors
		if errors.As(err, &list) {
			for _, e := range list {
				v.Errors = append(v.Errors, e.Error())
			}
		} else {
			v.Errors = []string{err.Error()}
		}
		return v
	}
	defer f.Close()
	for _, g := range f.Module.Graphs {
		for _, n := range g.Nodes {
			d, ok := n.(*ir.Dispatch)
			if !ok {
				continue
			}
			at := fmt.Sprintf("graph %s: ", ir.QuoteName(g.Name))
			in, err := msl.Bind(g, d)
			if err != nil {
				v.Unknown = append(v.Unknown, at+err.Error())
				continue
			}
			if err := in.CheckAliasing(); err != nil {
				v.Errors = append(v.Errors, at+err.Error())
			}
		}
	}
	v.Valid = len(v.Errors) == 0
	return v
}
