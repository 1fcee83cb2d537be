// Package gpu knows the GPU of this machine without opening it, and keeps what was measured of GPUs.
package gpu

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/environ"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
)

// Machine identifies a GPU of this machine, with its driver, in the profiles that are kept: what was measured of
// another GPU, or with another driver, does not apply to it.
type Machine struct{ GPU, Driver string }

// proc is the file system in which Linux drivers describe themselves; tests have one of their own.
var proc = "/proc"

// Here returns the GPU of this machine without opening it: on Linux the first of NVIDIA's. ok is
// false if there is none, or it is hidden from programs, or the system does not describe it.
func Here() (m Machine, ok bool) {
	if shown, _ := environ.Text("CUDA_VISIBLE_DEVICES"); shown == "-1" {
		return m, false
	}
	all, err := filepath.Glob(filepath.Join(proc, "driver/nvidia/gpus/*/information"))
	if err != nil || len(all) == 0 {
		return m, false
	}
	text, err := os.ReadFile(all[0])
	if err != nil {
		return m, false
	}
	_, rest, ok := bytes.Cut(text, []byte("Model:"))
	if !ok {
		return m, false
	}
	name, _, _ := bytes.Cut(rest, []byte("\n"))
	m.GPU, m.Driver = strings.TrimSpace(string(name)), driver()
	return m, m.GPU != ""
}

// Named returns the machine with the GPU of a name, as its driver calls it.
func Named(name string) Machine { return Machine{name, driver()} }

// driver is the version of NVIDIA's driver, "" if the system does not say.
func driver() string {
	text, err := os.ReadFile(filepath.Join(proc, "driver/nvidia/version"))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for _, f := range strings.Fields(line) { // NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159  …
		if f[0] >= '0' && f[0] <= '9' && strings.Contains(f, ".") {
			return f
		}
	}
	return ""
}

// path is where the profile of a machine is kept.
func (m Machine) path() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	safe := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
				return r
			}
			return '-'
		}, s)
	}
	return filepath.Join(dir, "mlxc", "profiles", safe(m.GPU)+"_"+safe(cmp.Or(m.Driver, runtime.GOOS))+".json"), nil
}

// Profile returns what was measured of the machine and kept; ok is false if nothing was, or it cannot be read.
func (m Machine) Profile() (p cost.Model, ok bool) {
	path, err := m.path()
	if err != nil {
		return p, false
	}
	p, err = cost.LoadProfile(path)
	return p, err == nil
}

// Keep keeps what was measured of the machine, for this program and mlxc optimize.
func (m Machine) Keep(p cost.Model) error {
	path, err := m.path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(path, func(f *os.File) error { return p.WriteProfile(f) })
}

// Model is how the machine's GPU is modelled: by what was measured of it, else by its name.
func (m Machine) Model() (p cost.Model, ok bool) {
	if p, ok = m.Profile(); ok {
		return p, true
	}
	p, err := cost.Chip(m.GPU)
	return p, err == nil
}
