package mlxreplay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// deviceFlags choose where a graph runs.
type deviceFlags struct {
	Device       string `default:"cpu" placeholder:"NAME" help:"Device to run on: cpu, metal (a GPU of Apple's), cuda (a GPU of NVIDIA's), softmetal (executes Metal kernels on the CPU), or auto: metal or cuda where it works, else cpu (mlxreplay devices says more)."`
	Library      string `placeholder:"FILE" help:"Take builtin kernels from this .metallib, such as MLX's own, and not from their Metal source (metal, cuda, softmetal)."`
	MLX          bool   `name:"mlx" help:"Take builtin kernels from the mlx.metallib of the Python environment that is active (metal, cuda, softmetal)."`
	GPU          string `name:"gpu" placeholder:"NAME" help:"GPU to run on, by a part of its name (default: the one that the system prefers; of NVIDIA's the first)."`
	Plan         string `name:"metal-plan" placeholder:"PLAN" help:"How replays are encoded for a GPU: concurrent (the default), serial, parallel, indirect, indirect-barriers, or auto: the fastest by --metal-profile."`
	Measured     string `name:"metal-profile" placeholder:"FILE" help:"What mlxreplay doctor has measured of the GPU: plans are chosen by it."`
	Buffers      int    `name:"metal-encoders" placeholder:"N" help:"Command buffers that --metal-plan parallel encodes side by side, 2 to 8."`
	CUDAPlan     string `name:"cuda-plan" placeholder:"PLAN" help:"How replays are launched on a GPU of NVIDIA's: stream (one by one), chain (as a CUDA graph, one after another), edges (as a CUDA graph with the edges of the graph's own), or auto (the default): for each graph the fastest by --cuda-profile."`
	CUDAMeasured string `name:"cuda-profile" placeholder:"FILE" help:"What mlxreplay doctor or bench has measured of the GPU of NVIDIA's: --cuda-plan auto chooses by it (default: by what was measured of an H200)."`
	CUDANoMMA    bool   `name:"cuda-no-mma" help:"On a GPU of NVIDIA's nothing is multiplied by tensor cores: sums of products have the order of the inner index, and one rounding a term."`
	CUDAFull     bool   `name:"cuda-full" help:"On a GPU of NVIDIA's every launch begins when those before it have ended, also where the GPU could begin it earlier."`
	Threads      int    `short:"t" placeholder:"N" help:"Threads of the device (cpu, softmetal; default: all cores)."`
	Trust        bool   `name:"trust-kernels" help:"Run kernels of others, which a graph or --library names, also where this system has no way to confine them and the compiler (softmetal, cuda; SECURITY.md)."`
	Memory       string `placeholder:"SIZE" help:"Most memory that the device may take, as 900MiB or 8GiB (default: what the machine has and its control group allows; of a GPU, what it has or the system recommends)."`

	known *cost.Model // measured costs of the NVIDIA GPU, see learn; nil if there are none

	MaxWork time.Duration `name:"max-work" default:"1h" help:"Refuse what is modelled to take one core longer than this; end what takes software Metal longer."`
}

// Names of devices.
const (
	onCPU       = "cpu"
	onMetal     = "metal"
	onCUDA      = "cuda"
	onSoftMetal = "softmetal"
	onAuto      = "auto"
)

// reads declares the files that the device will read.
func (f deviceFlags) reads(files *output.Files) error {
	for _, r := range []struct{ path, what string }{
		{f.Library, "the library"}, {f.Measured, "what was measured of the GPU"}, {f.CUDAMeasured, "what was measured of the GPU"},
	} {
		if err := files.Read(r.path, r.what); err != nil {
			return err
		}
	}
	return nil
}

// compiles reports whether the device compiles, or may compile, kernels from files with our own compiler.
func (f deviceFlags) compiles() bool {
	return f.Device == onSoftMetal || f.Device == onCUDA || f.Device == onAuto
}

// check returns an error if a flag is invalid or does not fit the others.
func (f deviceFlags) check() error {
	of := func(devices ...string) bool { return slices.Contains(devices, f.Device) }
	switch {
	case !of(onCPU, onMetal, onCUDA, onSoftMetal, onAuto):
		return cli.BadUsage("there is no device %q (there are cpu, metal, cuda and softmetal; mlxreplay devices says more)", f.Device)
	case f.Threads < 0 || f.Threads > cpu.MaxWorkers:
		return cli.BadUsage("--threads is %d, want 1 to %d", f.Threads, cpu.MaxWorkers)
	case f.Threads > 0 && of(onMetal, onCUDA):
		return cli.BadUsage("--threads is for --device cpu or softmetal: a GPU has its own")
	case f.Library != "" && of(onCPU):
		return cli.BadUsage("--library is for --device metal, cuda or softmetal: device %q has kernels of its own", f.Device)
	case f.MLX && of(onCPU):
		return cli.BadUsage("--mlx is for --device metal, cuda or softmetal: device %q has kernels of its own", f.Device)
	case f.MLX && f.Library != "":
		return cli.BadUsage("--mlx and --library are two ways to say the same: give one of them")
	case f.GPU != "" && of(onCPU, onSoftMetal):
		return cli.BadUsage("--gpu is for --device metal or cuda")
	case f.Trust && !f.compiles():
		return cli.BadUsage("--trust-kernels is for --device softmetal or cuda: device %q runs no kernels of files, or the system confines them", f.Device)
	case f.Plan != "" && of(onCPU, onSoftMetal, onCUDA):
		return cli.BadUsage("--metal-plan is for --device metal")
	case f.Measured != "" && of(onCPU, onSoftMetal, onCUDA):
		return cli.BadUsage("--metal-profile is for --device metal")
	case f.Plan == "auto" && f.Measured == "":
		return cli.BadUsage("--metal-plan auto needs a --metal-profile, which mlxreplay doctor writes")
	case f.Plan != "" && !slices.Contains(gpu.Plans, f.Plan):
		return cli.BadUsage("--metal-plan is %q, want one of %s", f.Plan, strings.Join(gpu.Plans, ", "))
	case f.Buffers != 0 && f.Plan != "parallel":
		return cli.BadUsage("--metal-encoders is for --metal-plan parallel")
	case f.Buffers != 0 && (f.Buffers < 2 || f.Buffers > 8):
		return cli.BadUsage("--metal-encoders is %d, want 2 to 8", f.Buffers)
	case f.CUDAPlan != "" && !of(onCUDA, onAuto):
		return cli.BadUsage("--cuda-plan is for --device cuda")
	case f.CUDAPlan != "" && !slices.Contains(gpu.CUDAPlans, f.CUDAPlan):
		return cli.BadUsage("--cuda-plan is %q, want one of %s", f.CUDAPlan, strings.Join(gpu.CUDAPlans, ", "))
	case f.CUDAMeasured != "" && !of(onCUDA, onAuto):
		return cli.BadUsage("--cuda-profile is for --device cuda")
	case f.CUDAMeasured != "" && f.CUDAPlan != "" && f.CUDAPlan != gpu.Auto:
		return cli.BadUsage("--cuda-profile is for --cuda-plan auto: --cuda-plan is %q", f.CUDAPlan)
	case f.CUDANoMMA && !of(onCUDA, onAuto):
		return cli.BadUsage("--cuda-no-mma is for --device cuda")
	case f.CUDAFull && !of(onCUDA, onAuto):
		return cli.BadUsage("--cuda-full is for --device cuda")
	case f.MaxWork <= 0:
		return cli.BadUsage("--max-work is %v, want more than 0", f.MaxWork)
	}
	return nil
}

// open opens the device and calls use with it. --device auto opens a GPU; if there is none, or use fails with it, it
// prints a remark with the reason and opens the CPU instead. The function that it returns closes the device.
func (f deviceFlags) open(env *cli.Env, use func(backend.Device) error) (func(), error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	f, err := f.withMLX(env)
	if err != nil {
		return nil, err
	}
	if f.Device != onAuto {
		return f.on(env, f.Device, use)
	}
	var why []string
	for _, name := range automatic {
		end, err := f.on(env, name, func(d backend.Device) error {
			fmt.Fprintf(env.Stderr, "remark: --device auto: %s, %s\n", name, d.Info().Description)
			return use(d)
		})
		if err == nil || env.Context.Err() != nil || cli.IsUsage(err) {
			return end, err
		}
		reason, _, _ := strings.Cut(err.Error(), ": use --device") // --device auto does that by itself
		why = append(why, reason)
	}
	fmt.Fprintf(env.Stderr, "remark: --device auto: cpu, because %s\n", strings.Join(why, "; and "))
	return f.on(env, onCPU, use)
}

// automatic lists the devices that --device auto prefers to the CPU.
var automatic = []string{onMetal, onCUDA}

// on is open for the device of the given name.
func (f deviceFlags) on(env *cli.Env, name string, use func(backend.Device) error) (func(), error) {
	d, end, err := f.device(env, name)
	if err != nil {
		return nil, err
	}
	if err := use(d); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// device opens the device of the given name.
func (f deviceFlags) device(env *cli.Env, name string) (backend.Device, func(), error) {
	memory, err := sizeOf(f.Memory)
	if err != nil {
		return nil, nil, cli.BadUsage("--memory: %v", err)
	}
	switch name {
	case onMetal:
		o := gpu.Options{Name: f.GPU, Library: f.Library, Plan: f.Plan, Encoders: f.Buffers, Memory: memory}
		o.Warn = func(text string) { fmt.Fprintf(env.Stderr, "remark: %s\n", text) }
		if f.Measured != "" {
			m, err := cost.LoadProfile(f.Measured)
			if err != nil {
				return nil, nil, err
			}
			o.Measured = &m
		}
		return gpu.Metal.Open(o)
	case onCUDA:
		o := gpu.CUDAOptions{Name: f.GPU, Library: f.Library, Trust: f.Trust, Plan: f.CUDAPlan, Full: f.CUDAFull, NoMMA: f.CUDANoMMA, Memory: memory}
		if f.CUDAMeasured != "" {
			m, err := cost.LoadProfile(f.CUDAMeasured)
			if err != nil {
				return nil, nil, err
			}
			o.Measured = &m
		} else {
			o.Measured = f.known
		}
		d, end, err := gpu.CUDA.Open(env.Context, o)
		if err != nil {
			return nil, nil, err
		}
		return d, func() {
			if err := end(); err != nil {
				fmt.Fprintf(env.Stderr, "remark: %v\n", err) // the results are not affected
			}
		}, nil
	case onSoftMetal:
		if memory == 0 {
			memory = cpu.MachineMemory()
		}
		d, err := softmetal.New(env.Context, softmetal.Options{Workers: f.Threads, Memory: memory, Work: f.MaxWork, Library: f.Library, Trust: f.Trust})
		if err != nil {
			return nil, nil, err
		}
		return d, func() { d.Close() }, nil
	}
	d := cpu.NewLimited(f.Threads, memory)
	return d, func() { d.Close() }, nil
}

// sizeOf parses a number of bytes with an optional unit; "" is 0.
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

// enough returns a value for --max-work that allows the given number of seconds, or the max value.
func enough(s float64) string {
	return fmt.Sprintf("%dh", int64(min(math.Ceil(s/3600), 2_500_000)))
}
