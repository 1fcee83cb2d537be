package mlxreplay

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// deviceFlags choose where a graph runs.
type deviceFlags struct {
	Device  string `default:"cpu" placeholder:"NAME" help:"Device to run on: cpu, or softmetal, which executes Metal kernels (mlxreplay devices says more)."`
	Library string `placeholder:"FILE" help:"Take builtin kernels from this .metallib, such as MLX's own, and not from their Metal source (softmetal)."`
	Threads int    `short:"t" placeholder:"N" help:"Threads of the device (default: all cores)."`
	Memory  string `placeholder:"SIZE" help:"Most memory that the device may take, as 900MiB or 8GiB (default: what the machine has and its control group allows)."`

	MaxWork time.Duration `name:"max-work" default:"1h" help:"Refuse what is modelled to take one core longer than this."`
}

func (f deviceFlags) open(ctx context.Context) (backend.Device, func(), error) {
	if f.Threads < 0 || f.Threads > cpu.MaxWorkers {
		return nil, nil, cli.BadUsage("--threads is %d, want 1 to %d", f.Threads, cpu.MaxWorkers)
	}
	if f.Library != "" && f.Device != "softmetal" {
		return nil, nil, cli.BadUsage("--library is for --device softmetal: device %q has kernels of its own", f.Device)
	}
	memory, err := sizeOf(f.Memory)
	if err != nil {
		return nil, nil, cli.BadUsage("--memory: %v", err)
	}
	if f.MaxWork <= 0 {
		return nil, nil, cli.BadUsage("--max-work is %v, want more than 0", f.MaxWork)
	}
	switch f.Device {
	case "cpu":
		d := cpu.NewLimited(f.Threads, memory)
		return d, func() { d.Close() }, nil
	case "softmetal":
		if memory == 0 {
			memory = cpu.MachineMemory()
		}
		d, err := softmetal.New(ctx, softmetal.Options{Workers: f.Threads, Memory: memory, Library: f.Library})
		if err != nil {
			return nil, nil, err
		}
		return d, func() { d.Close() }, nil
	}
	return nil, nil, cli.BadUsage("there is no device %q (there are cpu and softmetal; mlxreplay devices says more)", f.Device)
}

// sizeOf parses a number of bytes with a unit; "" is 0.
func sizeOf(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	digits := strings.TrimRight(s, "KMGTiB")
	units := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
	unit, ok := units[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size (want bytes, or KiB, MiB, GiB, TiB, as 8GiB)", s)
	}
	return n * unit, nil
}

// allowed refuses work that is modelled to take longer than --max-work.
func (f deviceFlags) allowed(what string, seconds float64) error {
	if seconds <= f.MaxWork.Seconds() {
		return nil
	}
	return fmt.Errorf("%s: the model says %s on one core, --max-work allows %v (say --max-work=%s to run it)", what, coreTime(seconds), f.MaxWork, enough(seconds))
}

// affordable refuses replays of a graph that are modelled to take longer than
// --max-work.
func (f deviceFlags) affordable(g *replay.Graph, replays int) error {
	seconds, ok, err := g.Work()
	if err != nil || !ok {
		return err
	}
	return f.allowed(fmt.Sprintf("%d replay(s) of graph %s", replays, ir.QuoteName(g.IR().Name)), seconds*float64(replays))
}

// compiled opens a module on a device and compiles one of its graphs ("" is the first),
// with a progress bar, and prints what replay remarks about it. The instance must be
// closed.
func compiled(env *cli.Env, d backend.Device, m *ir.Module, name string, o replay.Options) (*replay.Instance, *replay.Graph, error) {
	bar := cli.StartProgress(env.Stderr, "compiling")
	defer bar.End()
	o.Progress = bar.Graph
	s, err := replay.Open(d, m, o)
	if err != nil {
		return nil, nil, err
	}
	g, err := s.Graph(env.Context, name)
	if err != nil {
		_ = s.Close() // the error of compiling matters, not this one
		return nil, nil, err
	}
	bar.End()
	remarks(env, s)
	return s, g, nil
}

// remarks prints what replay did that the user may not expect.
func remarks(env *cli.Env, s *replay.Instance) {
	for _, r := range s.Remarks() {
		fmt.Fprintf(env.Stderr, "remark: %s\n", r)
	}
}

// coreTime formats seconds in a unit that suits them.
func coreTime(s float64) string {
	switch {
	case s >= 365*86400:
		return fmt.Sprintf("%.3g years", s/(365*86400))
	case s >= 2*86400:
		return fmt.Sprintf("%.3g days", s/86400)
	case s >= 2*3600:
		return fmt.Sprintf("%.3g hours", s/3600)
	case s >= 120:
		return fmt.Sprintf("%.3g minutes", s/60)
	}
	return fmt.Sprintf("%.3g s", s)
}

// enough returns a value of --max-work that allows so many seconds, or the greatest
// possible value.
func enough(s float64) string {
	return fmt.Sprintf("%dh", int64(min(math.Ceil(s/3600), 2_500_000)))
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
		Unavailable      string `json:"unavailable,omitempty"` // why it cannot be used here
	}
	var rows []row
	t := cli.Table{Header: []string{"device", "description", "threads"}}
	for _, name := range []string{"cpu", "softmetal"} {
		d, end, err := deviceFlags{Device: name, MaxWork: time.Hour}.open(env.Context)
		if err != nil {
			if env.Context.Err() != nil {
				return err
			}
			rows = append(rows, row{Name: name, Unavailable: err.Error()})
			first, _, _ := strings.Cut(err.Error(), "\n")
			t.Add(name, "unavailable: "+first, "")
			continue
		}
		i := d.Info()
		rows = append(rows, row{name, i.Description, i.Threads, i.MaxThreadgroup, i.ThreadgroupBytes, i.Alignment, ""})
		t.Add(name, i.Description, i.Threads)
		end()
	}
	if c.JSON {
		return cli.JSON(env.Stdout, rows)
	}
	if err := t.Print(env.Stdout); err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	return nil
}
