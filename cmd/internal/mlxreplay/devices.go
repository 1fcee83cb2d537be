package mlxreplay

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
)

type devicesCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// deviceRow is the JSON form of a device.
type deviceRow struct {
	Name             string               `json:"name"`
	Description      string               `json:"description"`
	Threads          int                  `json:"threads"`
	MaxThreadgroup   int                  `json:"max_threadgroup"`
	ThreadgroupBytes int                  `json:"threadgroup_bytes"`
	Alignment        int64                `json:"alignment"`
	GPU              *gpu.Description     `json:"gpu,omitempty"`
	CUDA             *gpu.CUDADescription `json:"cuda,omitempty"`
	Unavailable      string               `json:"unavailable,omitempty"` // why it cannot be used here
}

func (c *devicesCmd) Run(env *cli.Env) error {
	var rows []deviceRow
	for _, name := range []string{onCPU, onSoftMetal, onMetal, onCUDA} {
		var found []deviceRow
		var err error
		switch name {
		case onMetal:
			found, err = gpus()
		case onCUDA:
			found, err = nvidia(env)
		default:
			found, err = opened(env, name)
		}
		if env.Context.Err() != nil {
			return err
		}
		if err != nil {
			found = []deviceRow{{Name: name, Unavailable: err.Error()}}
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
		case r.GPU != nil, r.CUDA != nil:
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

// opened returns the row of a device whose availability shows only by opening it.
func opened(env *cli.Env, name string) ([]deviceRow, error) {
	d, end, err := deviceFlags{}.device(env, name)
	if err != nil {
		return nil, err
	}
	defer end()
	i := d.Info()
	return []deviceRow{{Name: name, Description: i.Description, Threads: i.Threads, MaxThreadgroup: i.MaxThreadgroup, ThreadgroupBytes: i.ThreadgroupBytes, Alignment: i.Alignment}}, nil
}

// gpus returns the rows of the machine's Apple GPUs. It opens one, because a listed GPU may still fail to open.
func gpus() ([]deviceRow, error) {
	all, err := gpu.Metal.List()
	if err != nil {
		return nil, err
	}
	d, end, err := gpu.Metal.Open(gpu.Options{})
	if err != nil {
		return nil, err
	}
	defer end()
	i := d.Info()
	var rows []deviceRow
	for _, g := range all {
		rows = append(rows, deviceRow{
			Name: onMetal, Description: describe(&g), MaxThreadgroup: i.MaxThreadgroup, ThreadgroupBytes: g.ThreadgroupBytes, Alignment: i.Alignment, GPU: &g,
		})
	}
	return rows, nil
}

// nvidia returns the rows of the machine's NVIDIA GPUs. It opens the first one.
func nvidia(env *cli.Env) ([]deviceRow, error) {
	all, err := gpu.CUDA.List()
	if err != nil {
		return nil, err
	}
	d, end, err := gpu.CUDA.Open(env.Context, gpu.CUDAOptions{})
	if err != nil {
		return nil, err
	}
	i := d.Info()
	if err := end(); err != nil {
		return nil, err
	}
	var rows []deviceRow
	for _, g := range all {
		what := fmt.Sprintf("%s: compute capability %s, %d multiprocessors, %s of memory", g.Name, g.Capability, g.Multiprocessors, size(g.Memory))
		if g.Default {
			what += " (default)"
		}
		rows = append(rows, deviceRow{Name: onCUDA, Description: what, MaxThreadgroup: i.MaxThreadgroup, ThreadgroupBytes: i.ThreadgroupBytes, Alignment: i.Alignment, CUDA: &g})
	}
	return rows, nil
}

// describe returns a one-line description of a GPU.
func describe(g *gpu.Description) string {
	family := "none of Apple's families"
	if g.Family > 0 {
		family = fmt.Sprintf("Apple family %d", g.Family)
	}
	of := "memory of its own"
	if g.Unified {
		of = "the host's memory"
	}
	s := fmt.Sprintf("%s: %s, %s, of it %s in use at most, buffers to %s, %s for a threadgroup",
		g.Name, family, of, size(g.Memory), size(g.MaxBuffer), size(int64(g.ThreadgroupBytes)))
	if g.Families != "" {
		s += fmt.Sprintf("; %s, %s", g.Families, g.Architecture)
	}
	if g.Default {
		s += " (default)"
	}
	return s
}

// size formats a number of bytes in a unit that suits them.
func size(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
