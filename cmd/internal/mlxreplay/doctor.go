package mlxreplay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/doctor"
	"github.com/mlxc/mlxc/cmd/internal/output"
)

type doctorCmd struct {
	Device  string `default:"auto" placeholder:"NAME" help:"Device to examine, perhaps with options (NAME:OPTION=VALUE,…): ${devices}, or auto: ${gpus} where there is a GPU, else cpu."`
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
		r, ended = doctor.Examine(env.Context, c.options(env, flags, d, log))
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

// tested is a device that litmus tests can run on.
type tested interface {
	Litmus(ctx context.Context, o verdict.Options) ([]verdict.Result, error)
}

// one runs one litmus test, in this process.
func (c *doctorCmd) one(env *cli.Env, flags deviceFlags) error {
	var results []verdict.Result
	end, err := flags.open(env, func(d backend.Device) (err error) {
		t, ok := d.(tested)
		if !ok {
			return cli.BadUsage("--litmus needs --device metal")
		}
		results, err = t.Litmus(env.Context, verdict.Options{Trials: c.Trials, Only: c.Litmus})
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
func (c *doctorCmd) options(env *cli.Env, flags deviceFlags, d backend.Device, log io.Writer) doctor.Options {
	o := doctor.Options{Log: log, Program: cli.Version("mlxreplay"), Device: d, Quick: c.Quick, Only: c.Only}
	o.Begin = func(what string) (func(float64), func()) {
		bar := cli.StartProgress(env.Stderr, what)
		return bar.Set, bar.End
	}
	_, own, _ := flags.chosen()                                                               // without an error: the device is open
	own = slices.DeleteFunc(own, func(g backend.Given) bool { return g.Option == "profile" }) // the examination makes one
	driver := driverOf(d.Name())
	o.Plans = variants(env, driver, func(more []backend.Given) (backend.Settings, error) { return flags.settings(driver, own, more...) })
	t, ok := d.(tested)
	if !ok {
		return o
	}
	trials := c.Trials
	if trials == 0 && c.Quick {
		trials = 60
	}
	o.Litmus = func(ctx context.Context, begin func(string, float64)) ([]verdict.Result, error) {
		how := verdict.Options{Trials: trials, Begin: begin}
		if program, err := os.Executable(); err == nil { // otherwise the tests run in this process
			args := []string{"doctor", "--device", d.Name()}
			if c.GPU != "" {
				args = append(args, "--gpu", c.GPU)
			}
			how.Apart = doctor.Apart(program, append(args, "--litmus")...)
		}
		return t.Litmus(ctx, how)
	}
	return o
}
