package mlxreplay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/doctor"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cost"
)

type doctorCmd struct {
	Device  string `default:"auto" placeholder:"NAME" help:"Device to examine: metal (a GPU of Apple's), cuda (of NVIDIA's), softmetal, cpu, or auto: metal or cuda where there is a GPU, else cpu."`
	GPU     string `name:"gpu" placeholder:"NAME" help:"GPU to examine, by a part of its name (default: the one that the system prefers)."`
	Library string `placeholder:"FILE" help:"Take builtin kernels from this .metallib, such as MLX's own, and not from their Metal source (metal, cuda, softmetal)."`
	Trust   bool   `name:"trust-kernels" help:"Compile and run kernels of files, the doctor's own and those of --library, also where this system has no way to confine them and the compiler (softmetal, cuda; SECURITY.md)."`
	JSON    string `name:"json" placeholder:"FILE" help:"Write the report as JSON too, to attach to an issue."`
	Profile string `placeholder:"FILE" help:"Write what was measured as a profile for mlxc optimize --profile, with the orders that the GPU was seen to keep."`
	Log     string `placeholder:"FILE" help:"Write each step there before it begins: if the program dies, the last line says where."`
	Quick   bool   `help:"Take fewer random dispatches and repetitions: a tenth of the time."`
	Trials  int    `placeholder:"N" help:"Run each litmus test so often (default: 300, with --quick 60)."`
	Litmus  string `hidden:"" placeholder:"NAME" help:"Run one litmus test alone, and write its result as JSON: what another doctor asks for."`
	Only    string `placeholder:"PATTERN" help:"Of the kernels and the conformance suite, run the tests whose name matches: 'kernel/*', 'order/*'."`
}

// Help implements kong's HelpProvider.
func (c *doctorCmd) Help() string {
	return "Exit code 1 says that something failed which must not; docs/metal.md explains the report. What a GPU does not keep, and nothing relies on, is no failure."
}

func (c *doctorCmd) Run(env *cli.Env) error {
	if _, err := path.Match(c.Only, ""); err != nil {
		return cli.BadUsage("--only: %q is no pattern", c.Only)
	}
	if c.Trials < 0 {
		return cli.BadUsage("--trials is %d, want 1 or more", c.Trials)
	}
	var files output.Files
	if err := files.Read(c.Library, "the library"); err != nil {
		return err
	}
	var report, profile *output.File
	var err error
	if c.JSON != "" {
		if report, err = files.Write("--json", c.JSON); err != nil {
			return err
		}
	}
	if c.Profile != "" {
		if profile, err = files.Write("--profile", c.Profile); err != nil {
			return err
		}
	}
	var log io.Writer
	if c.Log != "" {
		out, err := files.Write("--log", c.Log)
		if err != nil {
			return err
		}
		f, err := out.Log()
		if err != nil {
			return err
		}
		defer f.Close()
		log = f
	}
	flags := deviceFlags{Device: c.Device, GPU: c.GPU, Library: c.Library, Trust: c.Trust, MaxWork: time.Hour}
	if flags.Device == onAuto && c.Library != "" {
		return cli.BadUsage("--library needs --device metal, cuda or softmetal")
	}
	if c.Litmus != "" {
		return c.one(env, flags)
	}
	var r *doctor.Report
	cores := 0
	var ended error
	end, err := flags.open(env, func(d backend.Device) error {
		cores = d.Info().Threads
		r, ended = doctor.Examine(env.Context, c.options(env, d, log))
		return nil
	})
	if err != nil {
		return err
	}
	if ended != nil {
		return ended // a test that was abandoned may still use the device
	}
	if !r.Stuck {
		end()
	}
	if err := r.WriteText(env.Stdout); err != nil {
		return err
	}
	if report != nil {
		err = report.Data(func(w io.Writer) error { return cli.JSON(env.Context, w, r) })
	}
	if err == nil && profile != nil {
		err = profile.Data(r.Profile(cores).WriteProfile)
	}
	switch {
	case err != nil:
		return err
	case !r.OK():
		return cli.Fail(errors.New(failed(len(r.Failures))))
	}
	return nil
}

// one runs one litmus test, in this process.
func (c *doctorCmd) one(env *cli.Env, flags deviceFlags) error {
	var results []verdict.Result
	end, err := flags.open(env, func(d backend.Device) (err error) {
		if d.Name() != onMetal {
			return cli.BadUsage("--litmus needs --device metal")
		}
		results, err = gpu.Metal.Litmus(env.Context, d, gpu.Litmus{Trials: c.Trials, Only: c.Litmus})
		if err == nil && len(results) != 1 {
			err = cli.BadUsage("--litmus: there is no test %q", c.Litmus)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !results[0].Hangs { // if it hangs, the GPU may still use the device
		end()
	}
	return cli.JSON(env.Context, env.Stdout, results[0])
}

func failed(n int) string {
	if n == 1 {
		return "1 failure: the report says what and what to do"
	}
	return fmt.Sprintf("%d failures: the report says which and what to do", n)
}

// options returns the options of an examination.
func (c *doctorCmd) options(env *cli.Env, d backend.Device, log io.Writer) doctor.Options {
	o := doctor.Options{Log: log, Program: cli.Version("mlxreplay"), Device: d, Quick: c.Quick, Only: c.Only}
	o.Begin = func(what string) (func(float64), func()) {
		bar := cli.StartProgress(env.Stderr, what)
		return bar.Set, bar.End
	}
	switch d.Name() {
	case onMetal:
	case onCUDA:
		o.Plans = launched(env, c.GPU, c.Library)
		return o
	default:
		return o
	}
	trials := c.Trials
	if trials == 0 && c.Quick {
		trials = 60
	}
	o.Litmus = func(ctx context.Context, begin func(string, float64)) ([]verdict.Result, error) {
		how := gpu.Litmus{Trials: trials, Begin: begin}
		if program, err := os.Executable(); err == nil { // otherwise the tests run in this process
			args := []string{"doctor", "--device", onMetal}
			if c.GPU != "" {
				args = append(args, "--gpu", c.GPU)
			}
			how.Apart = doctor.Apart(program, append(args, "--litmus")...)
		}
		return gpu.Metal.Litmus(ctx, d, how)
	}
	plan := func(name string, x gpu.Options) {
		x.Name, x.Library = c.GPU, c.Library
		o.Plans = append(o.Plans, doctor.Plan{Name: name, Open: func(r *doctor.Report) (backend.Device, func(), error) {
			x.Measured = &cost.Model{Device: r.Name, Litmus: r.Seen()}
			return gpu.Metal.Open(x)
		}})
	}
	for _, name := range gpu.Plans {
		if name != gpu.Auto { // the automatic choice is one of the other plans
			plan(name, gpu.Options{Plan: name})
		}
	}
	plan("concurrent, by fences", gpu.Options{Plan: gpu.Plans[0], Fences: true})
	return o
}

// launched returns the plans by which an NVIDIA GPU can launch replays, under their names in profiles. The first is the
// default for most graphs without a profile.
func launched(env *cli.Env, name, library string) (out []doctor.Plan) {
	for _, p := range gpu.CUDAMeasured {
		out = append(out, doctor.Plan{Name: p.Name, Launched: true, Edges: p.Edges, Open: func(*doctor.Report) (backend.Device, func(), error) {
			d, end, err := gpu.CUDA.Open(env.Context, gpu.CUDAOptions{Name: name, Library: library, Plan: p.Plan, Full: p.Full})
			if err != nil {
				return nil, nil, err
			}
			return d, func() { _ = end() }, nil // the measurements are not affected
		}})
	}
	return out
}
