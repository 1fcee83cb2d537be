package mlxlib

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Version is that of MLX whose names and arguments of kernels are those of package msl.
const Version = "0.32.4"

// file is where a package's folder has the library.
var file = filepath.Join("lib", "mlx.metallib")

// Find returns the path of the library in a Python environment, and the version of MLX that it is of, ""
// if that is not known. python is the interpreter of the environment; "" looks at the environments that
// are active ($VIRTUAL_ENV, $CONDA_PREFIX), then asks the python3 on the path.
func Find(ctx context.Context, python string) (path, version string, err error) {
	var looked []string
	if python == "" {
		for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
			dir := os.Getenv(name)
			if dir == "" {
				continue
			}
			if path, version = in(dir); path != "" {
				return path, version, nil
			}
			looked = append(looked, fmt.Sprintf("$%s: %s has no %s", name, dir, filepath.Join("lib", "python3.*", "site-packages", "mlx", file)))
		}
	}
	path, version, err = ask(ctx, cmp.Or(python, "python3"))
	if err == nil {
		return path, version, nil
	}
	if ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	looked = append(looked, err.Error())
	return "", "", fmt.Errorf("the kernels of MLX (mlx.metallib) are not found:\n\t%s\ninstall MLX in one of these environments (on a Mac: pip install mlx==%s), activate the one that has it, or name the file itself",
		strings.Join(looked, "\n\t"), Version)
}

// in looks into the folder of an environment.
func in(dir string) (path, version string) {
	libraries := filepath.Join(dir, "lib")
	for _, python := range slices.Backward(names(libraries, "python3", "")) { // an environment has one, as a rule
		site := filepath.Join(libraries, python, "site-packages")
		path := filepath.Join(site, "mlx", file)
		if i, err := os.Stat(path); err != nil || !i.Mode().IsRegular() {
			continue
		}
		for _, name := range []string{"mlx_metal-", "mlx-"} {
			if found := names(site, name, ".dist-info"); len(found) > 0 {
				return path, strings.TrimSuffix(strings.TrimPrefix(found[len(found)-1], name), ".dist-info")
			}
		}
		return path, ""
	}
	return "", ""
}

// names are the entries of a folder that begin and end with something, sorted.
func names(dir, prefix, suffix string) (out []string) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			out = append(out, e.Name())
		}
	}
	return out
}

// question is what a Python is asked. The folder in which it runs is none that it looks into: what lies
// there by the name mlx is not meant.
const question = `
import importlib.metadata, importlib.util, json, sys
sys.path = [p for p in sys.path if p]
spec = importlib.util.find_spec("mlx")
version = ""
for name in ("mlx-metal", "mlx"):
    try:
        version = importlib.metadata.version(name)
        break
    except importlib.metadata.PackageNotFoundError:
        pass
print()
print(json.dumps({"folders": list(spec.submodule_search_locations or []) if spec else [], "version": version, "python": sys.executable}))
`

const (
	patience    = 20 * time.Second
	answerBytes = 1 << 20
)

// ask asks an interpreter. The error says of which one what.
func ask(ctx context.Context, python string) (path, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-c", question)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &bounded{to: &said}
	var answer bytes.Buffer
	cmd.Stdout = &bounded{to: &answer}
	if err := cmd.Run(); err != nil {
		switch {
		case ctx.Err() != nil:
			return "", "", fmt.Errorf("%s: it has not answered for %v", python, patience)
		case errors.Is(err, exec.ErrNotFound):
			return "", "", fmt.Errorf("%s: there is no such program on the path", python)
		}
		if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); lines[len(lines)-1] != "" {
			err = fmt.Errorf("%w: %.200s", err, lines[len(lines)-1])
		}
		return "", "", fmt.Errorf("%s: %w", python, err)
	}
	var found struct {
		Folders         []string `json:"folders"`
		Version, Python string
	}
	lines := strings.Split(strings.TrimSpace(answer.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &found); err != nil {
		return "", "", fmt.Errorf("%s: its answer is not understood: %.200q", python, lines[len(lines)-1])
	}
	if found.Python != "" && found.Python != python {
		python = fmt.Sprintf("%s (%s)", python, found.Python)
	}
	if len(found.Folders) == 0 {
		return "", "", fmt.Errorf("%s: it has no package mlx", python)
	}
	for _, dir := range found.Folders {
		path := filepath.Join(dir, file)
		if i, err := os.Stat(path); err == nil && i.Mode().IsRegular() {
			return path, found.Version, nil
		}
	}
	return "", "", fmt.Errorf("%s: its package mlx %s has no %s (MLX for Linux has none)", python, found.Version, filepath.Join(found.Folders[0], file))
}

// bounded keeps the first bytes of what is written to it.
type bounded struct{ to *bytes.Buffer }

// Write implements [io.Writer].
func (b *bounded) Write(p []byte) (int, error) {
	if n := answerBytes - b.to.Len(); n < len(p) {
		b.to.Write(p[:n])
		return n, io.ErrShortWrite
	}
	return b.to.Write(p)
}
