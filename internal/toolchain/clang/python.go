package clang

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// executable returns the path of this program; tests have another one.
var executable = os.Executable

// machine is the prefix of packages that were installed for all users; tests have another one.
var machine = "/usr/local"

// inPython returns the programs of the PyPI package ziglang in the Python environments that a user has: the active one, that
// in which this program lies (pip install mlxc puts it there), that of the first python3 on PATH, his own packages, and the
// machine's. No Python is run.
func inPython() (paths []string) {
	var prefixes []string
	add := func(p string) {
		if p != "" && filepath.IsAbs(p) && !slices.Contains(prefixes, p) {
			prefixes = append(prefixes, p)
		}
	}
	add(os.Getenv("VIRTUAL_ENV"))
	add(os.Getenv("CONDA_PREFIX"))
	if program, err := executable(); err == nil && filepath.Base(filepath.Dir(program)) == "bin" {
		add(filepath.Dir(filepath.Dir(program)))
	}
	if python, err := exec.LookPath("python3"); err == nil {
		add(filepath.Dir(filepath.Dir(python)))
		if real, err := filepath.EvalSymlinks(python); err == nil {
			add(filepath.Dir(filepath.Dir(real)))
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		add(filepath.Join(home, ".local"))
	}
	add(machine)
	for _, prefix := range prefixes {
		for _, packages := range []string{"site-packages", "dist-packages"} {
			found, _ := filepath.Glob(filepath.Join(prefix, "lib", "python3*", packages, "ziglang", "zig")) // the pattern is valid, but for a prefix with brackets
			for _, p := range slices.Backward(found) {
				if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
					paths = append(paths, p)
				}
			}
		}
	}
	return paths
}
