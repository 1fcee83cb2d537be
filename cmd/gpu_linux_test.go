package cmd_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// devices are those of the commands for Linux and for Macs.
var devices = []backend.Driver{cpu.Driver, metal.Driver, cuda.Driver, softmetal.Driver}

// withGPU runs a command. If the environment has STAND_IN=metal, this process plays a Mac: a
// stand-in for Apple's libraries answers the command's messages. If the command broke a rule of
// Metal's, the exit code is 99.
func withGPU(command func() int) (code int) {
	if os.Getenv("STAND_IN") != "metal" {
		return command()
	}
	t := &process{}
	defer func() {
		if r := recover(); r != nil && r != any(t) {
			panic(r)
		}
		t.end()
		if t.failed {
			code = 99
		}
	}()
	l := fakemetal.Build(t)
	if err := objc.Load(l.Path); err != nil {
		t.Errorf("%v", err)
		return
	}
	l.Serve(t, fakemetal.Options{Seed: 3})
	return command()
}

// process is a test as far as the stand-in needs one: the process that a script runs.
type process struct {
	testing.TB
	failed bool
	last   []func()
}

func (*process) Helper() {}

func (*process) Name() string { return "stand-in" }

func (t *process) Errorf(format string, args ...any) {
	t.failed = true
	fmt.Fprintln(os.Stderr, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (t *process) FailNow() { panic(t) }

func (t *process) Cleanup(f func()) { t.last = append(t.last, f) }

func (t *process) TempDir() string {
	dir, err := os.MkdirTemp("", "stand-in")
	if err != nil {
		panic(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (t *process) end() {
	for _, f := range slices.Backward(t.last) {
		f()
	}
	t.last = nil
}
