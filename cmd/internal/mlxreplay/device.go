package mlxreplay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// deviceFlags choose where a graph runs.
type deviceFlags struct {
	Device       string `default:"cpu" placeholder:"NAME" help:"Device to run on, perhaps with options (NAME:OPTION=VALUE,…): ${devices}, or auto: ${gpus} where it works, else cpu, or softmetal for kernels of files (mlxreplay devices says more)."`
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

	known *cost.Model // measured costs of the GPU, see learn; nil if there are none

	MaxWork time.Duration `name:"max-work" default:"1h" help:"Refuse what is modelled to take one core longer than this; end what takes software Metal longer."`
}

// onCPU is the device that is always there; onAuto stands for a GPU or, if none works, the CPU.
const (
	onCPU       = "cpu"
	onSoftMetal = "softmetal" // takes kernels of files where no GPU works
	onAuto      = "auto"
)

// drivers are the kinds of devices of this program: see [Main].
var drivers []backend.Driver

// flag is a flag that sets an option of some devices: the one whose Flag it is.
type flag struct {
	name, value string
	of          string // which devices have it, and perhaps why others do not, for messages
}

// flags lists the flags that were given and set an option.
func (f deviceFlags) flags() []flag {
	on := func(v bool) string {
		if v {
			return "true"
		}
		return ""
	}
	number := func(n int) string {
		if n != 0 {
			return fmt.Sprint(n)
		}
		return ""
	}
	const gpus = "metal, cuda or softmetal: the device cpu has kernels of its own"
	all := []flag{
		{"--threads", number(f.Threads), "cpu or softmetal: a GPU has its own"},
		{"--library", f.Library, gpus},
		{"--gpu", f.GPU, "metal or cuda"},
		{"--trust-kernels", on(f.Trust), "softmetal or cuda: other devices run no kernels of files, or the system confines them"},
		{"--metal-plan", f.Plan, "metal"},
		{"--metal-profile", f.Measured, "metal"},
		{"--metal-encoders", number(f.Buffers), "metal"},
		{"--cuda-plan", f.CUDAPlan, "cuda"},
		{"--cuda-profile", f.CUDAMeasured, "cuda"},
		{"--cuda-no-mma", on(f.CUDANoMMA), "cuda"},
		{"--cuda-full", on(f.CUDAFull), "cuda"},
		{"--memory", f.Memory, "another kind"},
	}
	return slices.DeleteFunc(all, func(x flag) bool { return x.value == "" })
}

// chosen returns the drivers that --device names, those of auto in the order in which they are tried, and the options
// that it sets.
func (f deviceFlags) chosen() (chosen []*backend.Driver, options []backend.Given, err error) {
	name, own, some := strings.Cut(f.Device, ":")
	for i := range drivers {
		if d := &drivers[i]; d.Name == name || name == onAuto && d.GPU {
			chosen = append(chosen, d)
		}
	}
	switch {
	case name == onAuto && some:
		return nil, nil, cli.BadUsage("--device auto has no options: name the device that they are for")
	case name == onAuto:
		return append(chosen, driverOf(onCPU)), nil, nil
	case len(chosen) == 0:
		return nil, nil, cli.BadUsage("there is no device %q (there are %s; mlxreplay devices says more)", name, names("and", func(d *backend.Driver) string { return d.Name }))
	case !some:
		return chosen, nil, nil
	}
	for _, o := range strings.Split(own, ",") {
		key, value, _ := strings.Cut(o, "=")
		options = append(options, backend.Given{Option: key, Value: value})
	}
	return chosen, options, nil
}

// onlyCPU reports whether nothing but the device cpu can be opened, as far as that is known before: --device auto takes it if
// no GPU is found.
func (f deviceFlags) onlyCPU() bool {
	chosen, _, _ := f.chosen() // opening the device will report the error
	for _, d := range chosen {
		if d.Name == onCPU || d.Missing != nil {
			continue
		}
		if d.List == nil {
			return false
		}
		if found, err := d.List(); err == nil && len(found) > 0 {
			return false
		}
	}
	return true
}

// driverOf returns the driver of a name; nil if there is none.
func driverOf(name string) *backend.Driver {
	for i := range drivers {
		if drivers[i].Name == name {
			return &drivers[i]
		}
	}
	return nil
}

// names lists what say returns of each driver, but "".
func names(last string, say func(*backend.Driver) string) string {
	var all []string
	for i := range drivers {
		if s := say(&drivers[i]); s != "" {
			all = append(all, s)
		}
	}
	if n := len(all); n > 1 {
		return strings.Join(all[:n-1], ", ") + " " + last + " " + all[n-1]
	}
	return strings.Join(all, "")
}

// settings returns the settings of one of the chosen drivers, with more options, which replace those
// of --device.
func (f deviceFlags) settings(d *backend.Driver, own []backend.Given, more ...backend.Given) (s backend.Settings, err error) {
	given := slices.DeleteFunc(slices.Clone(own), func(g backend.Given) bool { return sets(more, g.Option) })
	for _, x := range f.flags() {
		switch o := d.FlagOption(x.name); {
		case o != nil:
			given = append(given, backend.Given{Option: o.Name, Value: x.value, As: x.name})
		case f.Device != onAuto:
			return s, cli.BadUsage("%s is for --device %s", x.name, x.of)
		}
	}
	if o := d.FlagOption("--max-work"); o != nil && !sets(own, o.Name) {
		given = append(given, backend.Given{Option: o.Name, Value: f.MaxWork.String(), As: "--max-work"})
	}
	if s, err = d.With(append(given, more...)...); err != nil {
		return s, cli.BadUsage("%v", err)
	}
	if d.Learn {
		s.Measured = f.known
	}
	return s, nil
}

// sets reports whether some given options have one of that name.
func sets(given []backend.Given, option string) bool {
	return slices.ContainsFunc(given, func(g backend.Given) bool { return g.Option == option })
}

// each calls use with each driver that may be opened, and its settings. It returns an error if a flag is invalid or
// does not fit the others. What this program cannot drive is left out.
func (f deviceFlags) each(use func(d *backend.Driver, s backend.Settings) error) error {
	if f.MaxWork <= 0 {
		return cli.BadUsage("--max-work is %v, want more than 0", f.MaxWork)
	}
	chosen, own, err := f.chosen()
	if err != nil {
		return err
	}
	if f.MLX {
		if !slices.ContainsFunc(chosen, func(d *backend.Driver) bool { return d.Missing != nil || d.FlagOption("--library") != nil }) {
			return cli.BadUsage("--mlx is for --device metal, cuda or softmetal: device %q has kernels of its own", f.Device)
		}
		if f.Library != "" {
			return cli.BadUsage("--mlx and --library are two ways to say the same: give one of them")
		}
	}
	for _, d := range chosen {
		if d.Missing != nil {
			continue
		}
		s, err := f.settings(d, own)
		if err == nil {
			err = use(d, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if a flag is invalid or does not fit the others.
func (f deviceFlags) check() error {
	return f.each(func(*backend.Driver, backend.Settings) error { return nil })
}

// takes reports whether a device that may be opened has an option that a flag sets.
func (f deviceFlags) takes(name string) bool {
	chosen, _, _ := f.chosen()
	return slices.ContainsFunc(chosen, func(d *backend.Driver) bool { return d.Missing != nil || d.FlagOption(name) != nil })
}

// reads declares the files that the device will read. With update, a profile is left out, since it may be updated in
// place.
func (f deviceFlags) reads(files *output.Files, update bool) error {
	return f.each(func(d *backend.Driver, s backend.Settings) error {
		for _, o := range d.Options {
			if o.Type != backend.File || update && o.Name == "profile" {
				continue
			}
			if err := files.Read(s.Text(o.Name), o.Contents); err != nil {
				return err
			}
		}
		return nil
	})
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
	chosen, own, err := f.chosen()
	if err != nil {
		return nil, err
	}
	if f.Device != onAuto {
		return f.on(env, chosen[0], own, use)
	}
	var why []string
	for _, d := range chosen[:len(chosen)-1] {
		end, err := f.on(env, d, nil, func(on backend.Device) error {
			fmt.Fprintf(env.Stderr, "remark: --device auto: %s, %s\n", d.Name, on.Info().Description)
			return use(on)
		})
		if err == nil || env.Context.Err() != nil || cli.IsUsage(err) {
			return end, err
		}
		reason, _, _ := strings.Cut(err.Error(), ": use --device") // --device auto does that by itself
		why = append(why, reason)
	}
	fmt.Fprintf(env.Stderr, "remark: --device auto: cpu, because %s\n", strings.Join(why, "; and "))
	end, err := f.on(env, chosen[len(chosen)-1], nil, use)
	if d := driverOf(onSoftMetal); d != nil && errors.Is(err, backend.ErrForeignCode) {
		fmt.Fprintf(env.Stderr, "remark: --device auto: softmetal, because the graph has kernels of files, which the device cpu does not run\n")
		return f.on(env, d, nil, use)
	}
	return end, err
}

// on is open for one driver.
func (f deviceFlags) on(env *cli.Env, d *backend.Driver, own []backend.Given, use func(backend.Device) error) (func(), error) {
	if d.Missing != nil {
		return nil, fmt.Errorf("%w: %s", d.Missing, d.Instead)
	}
	s, err := f.settings(d, own)
	if err != nil {
		return nil, err
	}
	on, end, err := opened(env, d, s)
	if err != nil {
		return nil, err
	}
	if err := use(on); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// opened opens a device. The function that it returns closes it.
func opened(env *cli.Env, d *backend.Driver, s backend.Settings) (backend.Device, func(), error) {
	s.Warn = func(text string) { fmt.Fprintf(env.Stderr, "remark: %s\n", text) }
	on, err := d.Open(env.Context, s)
	switch {
	case err != nil && d.GPU && !s.Given("gpu"):
		return nil, nil, fmt.Errorf("%w: %s", err, d.Instead)
	case err != nil:
		return nil, nil, err
	}
	return on, func() {
		if err := on.Close(); err != nil {
			s.Warn(err.Error()) // the results are not affected
		}
	}, nil
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
