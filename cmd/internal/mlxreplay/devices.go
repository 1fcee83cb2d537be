package mlxreplay

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
)

type devicesCmd struct {
	Options bool `help:"List the options that devices have (--device NAME:OPTION=VALUE,…)."`
	JSON    bool `name:"json" help:"Print JSON."`
}

// deviceRow is the JSON form of a device.
type deviceRow struct {
	Name             string `json:"name"`
	Description      string `json:"description"`
	Threads          int    `json:"threads"`
	MaxThreadgroup   int    `json:"max_threadgroup"`
	ThreadgroupBytes int    `json:"threadgroup_bytes"`
	Alignment        int64  `json:"alignment"`
	GPU              any    `json:"gpu,omitempty"`
	Unavailable      string `json:"unavailable,omitempty"` // why it cannot be used here
}

// optionRow is the JSON form of an option of a device.
type optionRow struct {
	Device  string `json:"device"`
	Option  string `json:"option"`
	Takes   string `json:"takes"`
	Default string `json:"default"`
	Flag    string `json:"flag,omitempty"`
	Help    string `json:"help"`
}

func (c *devicesCmd) Run(env *cli.Env) error {
	if c.Options {
		return c.options(env)
	}
	var rows []deviceRow
	for i := range drivers {
		d := &drivers[i]
		found, err := present(env, d)
		if env.Context.Err() != nil {
			return err
		}
		if err != nil {
			found = []deviceRow{{Name: d.Name, Unavailable: err.Error()}}
		}
		rows = append(rows, found...)
	}
	if c.JSON {
		return cli.JSON(env.Context, env.Stdout, rows)
	}
	t := cli.Table{Header: []string{"device", "description", "threads"}}
	for _, r := range rows {
		switch {
		case r.Unavailable != "":
			first, _, _ := strings.Cut(r.Unavailable, "\n")
			t.Add(r.Name, "unavailable: "+first, "")
		case r.GPU != nil:
			t.Add(r.Name, r.Description, "")
		default:
			t.Add(r.Name, r.Description, r.Threads)
		}
	}
	if err := t.Print(env.Stdout); err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	return nil
}

// present returns the rows of a driver's devices. It opens one, because a device that is listed may still fail to open.
func present(env *cli.Env, d *backend.Driver) ([]deviceRow, error) {
	if d.Missing != nil {
		return nil, fmt.Errorf("%w: %s", d.Missing, d.Instead)
	}
	found := []backend.Found{{}}
	if d.List != nil {
		var err error
		if found, err = d.List(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, d.Instead)
		}
	}
	s, err := d.With()
	if err != nil {
		return nil, err
	}
	on, end, err := opened(env, d, s)
	if err != nil {
		return nil, err
	}
	i := on.Info()
	end()
	var rows []deviceRow
	for _, x := range found {
		r := deviceRow{Name: d.Name, Description: x.Text, MaxThreadgroup: i.MaxThreadgroup, ThreadgroupBytes: x.ThreadgroupBytes, Alignment: i.Alignment, GPU: x.Facts}
		if d.List == nil {
			r.Description, r.Threads = i.Description, i.Threads
		}
		if r.ThreadgroupBytes == 0 {
			r.ThreadgroupBytes = i.ThreadgroupBytes
		}
		if x.Default {
			r.Description += " (default)"
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// options lists the options of all devices.
func (c *devicesCmd) options(env *cli.Env) error {
	rows := []optionRow{}
	t := cli.Table{Header: []string{"device", "option", "takes", "default", "flag", "meaning"}}
	for _, d := range drivers {
		for _, o := range d.Options {
			rows = append(rows, optionRow{d.Name, o.Name, o.Takes(), o.Default, o.Flag, o.Help})
			t.Add(d.Name, o.Name, o.Takes(), o.Default, o.Flag, o.Help)
		}
	}
	if c.JSON {
		return cli.JSON(env.Context, env.Stdout, rows)
	}
	return t.Print(env.Stdout)
}
