package mlxc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/mlxc/mlxc/capture"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

type captureCmd struct {
	Output  string   `short:"o" required:"" placeholder:"FILE.mlxtrace" help:"Log to write."`
	Library bool     `help:"Write the library that captures to the file instead, for programs that load it by themselves (python/mlxc_capture.py)."`
	Program []string `arg:"" optional:"" passthrough:"" help:"The program to run, and its arguments."`
}

func (c *captureCmd) Help() string {
	return "The program runs as it would without, with its own input and output. It is given a library that logs what it sends to Metal; mlxc import makes graphs of the log."
}

func (c *captureCmd) Run(env *cli.Env) error {
	if len(c.Program) > 0 && c.Program[0] == "--" {
		c.Program = c.Program[1:]
	}
	if c.Library {
		return c.library(env)
	}
	if len(c.Program) == 0 {
		return cli.BadUsage("give the program to run: mlxc capture -o LOG.mlxtrace PROGRAM ARGUMENTS")
	}
	var files output.Files
	program, missing := exec.LookPath(c.Program[0])
	if missing != nil {
		if _, err := os.Stat(c.Program[0]); err != nil {
			return missing
		}
		program = c.Program[0] // it is there and does not run: it is no place for the log either
	}
	if err := files.Read(program, "the program"); err != nil {
		return err
	}
	log, err := files.Write("-o", c.Output)
	if err != nil {
		return err
	}
	if missing != nil {
		return missing
	}
	if runtime.GOOS == "darwin" {
		if why := capture.Refuses(program); why != "" {
			return errors.New(why)
		}
	}
	shim, remove, err := built(env)
	if err != nil {
		return err
	}
	defer remove()
	variable, value, err := capture.Insert(shim)
	if err != nil {
		return err
	}
	var failed error // a log of what the program did before it failed is one too
	err = log.By(func(path string) error {
		cmd := exec.CommandContext(env.Context, program, c.Program[1:]...)
		cmd.Env = append(os.Environ(), capture.Env+"="+path, variable+"="+value)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, env.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 2 * time.Second
		failed = cmd.Run()
		if st, err := os.Stat(path); err != nil || st.Size() == 0 {
			return errors.Join(fmt.Errorf("%s: nothing was captured: it made no device of Metal", cli.Quote(program)), failed)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "wrote %s\n", cli.Quote(c.Output))
	if failed != nil {
		return fmt.Errorf("%s: %w; the log has what it did until then", cli.Quote(program), failed)
	}
	return nil
}

// built compiles the library that captures.
func built(env *cli.Env) (path string, remove func(), err error) {
	compiler, err := clang.Find(env.Context)
	if err != nil {
		return "", nil, err
	}
	return capture.Build(func(args ...string) *exec.Cmd { return compiler.Program(env.Context, args...) })
}

// library writes the library that captures.
func (c *captureCmd) library(env *cli.Env) error {
	if len(c.Program) > 0 {
		return cli.BadUsage("--library runs no program")
	}
	var files output.Files
	to, err := files.Write("-o", c.Output)
	if err != nil {
		return err
	}
	shim, remove, err := built(env)
	if err != nil {
		return err
	}
	defer remove()
	data, err := os.ReadFile(shim)
	if err != nil {
		return err
	}
	return to.Data(func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
