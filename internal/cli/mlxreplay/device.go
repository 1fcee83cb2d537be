package mlxreplay

import (
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/cli"
)

// deviceFlags choose where a graph runs.
type deviceFlags struct {
	Device  string `default:"cpu" placeholder:"NAME" help:"Device to run on; see mlxreplay devices."`
	Threads int    `short:"t" placeholder:"N" help:"Threads of the CPU device (default: all cores)."`
}

func (f deviceFlags) open() (backend.Device, func(), error) {
	if f.Threads < 0 || f.Threads > cpu.MaxWorkers {
		return nil, nil, cli.BadUsage("--threads is %d, want 1 to %d", f.Threads, cpu.MaxWorkers)
	}
	if f.Device != "cpu" {
		return nil, nil, cli.BadUsage("there is no device %q (mlxreplay devices lists them)", f.Device)
	}
	d := cpu.New(f.Threads)
	return d, func() { d.Close() }, nil
}

type devicesCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *devicesCmd) Run(env *cli.Env) error {
	type row struct {
		Name             string `json:"name"`
		Description      string `json:"description"`
		Threads          int    `json:"threads"`
		MaxThreadgroup   int    `json:"max_threadgroup"`
		ThreadgroupBytes int    `json:"threadgroup_bytes"`
		Alignment        int64  `json:"alignment"`
	}
	d := cpu.New(0)
	defer d.Close()
	var rows []row
	t := cli.Table{Header: []string{"device", "description", "threads"}}
	for _, d := range []backend.Device{d} {
		i := d.Info()
		rows = append(rows, row{d.Name(), i.Description, i.Threads, i.MaxThreadgroup, i.ThreadgroupBytes, i.Alignment})
		t.Add(d.Name(), i.Description, i.Threads)
	}
	if c.JSON {
		return cli.JSON(env.Stdout, rows)
	}
	if err := t.Print(env.Stdout); err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	return nil
}
