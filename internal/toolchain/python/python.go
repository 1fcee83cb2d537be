// Package python finds the Python 3 that tests run programs with.
package python

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Find returns the path of a Python that can import the modules: $PYTHON, else
// the environment that scripts/python.sh makes in the source tree above the
// working folder, else python3.
func Find(modules ...string) (string, error) {
	var candidates []string
	if p := os.Getenv("PYTHON"); p != "" {
		candidates = []string{p}
	} else {
		if root, err := moduleRoot(); err == nil {
			candidates = append(candidates, filepath.Join(root, "out", "python", "bin", "python"))
		}
		candidates = append(candidates, "python3")
	}
	var errs []error
	for _, c := range candidates {
		if filepath.Base(c) != c {
			// Not EvalSymlinks: a virtual environment is known by its own path.
			abs, err := filepath.Abs(c)
			if err != nil {
				return "", err
			}
			c = abs
		}
		// python3 may be a script that needs more of the environment than a test's program has, so the path of the
		// interpreter itself is returned.
		out, err := exec.Command(c, "-s", "-c", "import sys, "+strings.Join(append([]string{"os"}, modules...), ", ")+"; sys.stdout.write(sys.executable)").Output()
		if err == nil {
			return string(out), nil
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
			err = errors.New(lines[len(lines)-1])
		}
		errs = append(errs, fmt.Errorf("%s: %w", c, err))
	}
	return "", fmt.Errorf("no Python with %s: run scripts/python.sh, or set PYTHON: %w", strings.Join(modules, ", "), errors.Join(errs...))
}

// moduleRoot returns the folder of go.mod above the working folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working folder")
		}
		dir = up
	}
}
