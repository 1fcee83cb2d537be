// Package capture is what puts a log of a program's Metal calls (.mlxtrace) on disk: shim.c, a library that is loaded into programs
// which know nothing of it, and mlxrec.h and mlxrec.rs, with which engines write logs by themselves. docs/capture.md says how
// they are used; package [github.com/mlxc/mlxc/frontend/trace] makes graphs of logs.
package capture

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

//go:embed shim.c mlxrec.h
var sources embed.FS

// Env names the environment variable with the path of the log, which a loaded shim reads.
const Env = "MLXC_CAPTURE"

// Build compiles the shim for this machine, by a command of a C compiler's arguments, and returns its path. Remove deletes it.
func Build(compiler func(args ...string) *exec.Cmd) (path string, remove func(), err error) {
	folder, err := os.MkdirTemp("", "mlxc-capture-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(folder) }
	defer func() {
		if err != nil {
			os.RemoveAll(folder)
		}
	}()
	for _, name := range []string{"shim.c", "mlxrec.h"} {
		text, err := sources.ReadFile(name)
		if err != nil {
			return "", nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return "", nil, err
		}
	}
	path = filepath.Join(folder, "mlxcapture.so")
	if runtime.GOOS == "darwin" {
		path = filepath.Join(folder, "mlxcapture.dylib")
	}
	text, err := compiler("-std=gnu11", "-O2", "-fvisibility=hidden", "-fPIC", "-shared", "-pthread", filepath.Join(folder, "shim.c"), "-o", path).CombinedOutput()
	if err != nil {
		return "", nil, fmt.Errorf("the library that captures does not compile: %w\n%s", err, text)
	}
	return path, remove, nil
}

// Insert returns the environment variable with which the system's loader puts a library into a program, and its value; a value
// that it has already is kept.
func Insert(library string) (name, value string, err error) {
	switch runtime.GOOS {
	case "darwin":
		name = "DYLD_INSERT_LIBRARIES"
	case "linux": // with a library in place of Metal
		name = "LD_PRELOAD"
	default:
		return "", "", fmt.Errorf("programs are captured on macOS, and on Linux with a library in place of Metal; this is %s", runtime.GOOS)
	}
	if old := os.Getenv(name); old != "" {
		library += ":" + old
	}
	return name, library, nil
}
