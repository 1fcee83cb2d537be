package clang

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mlxc/mlxc/internal/toolchain/cage"
)

// Job is a run of the compiler on what others may have written.
type Job struct {
	Args []string
	// Folder is where it runs, and the only one that it may write: names of files are relative to it.
	Folder string
	// Reads are other files and folders that it may read.
	Reads []string
	// Link has it make a shared object of others, with nothing of its own in it: Args are then
	// `-o OUT IN…`.
	Link bool
	// Limits are what it may take; zeros are those of [cage.Default].
	Limits cage.Limits
}

// Run runs the compiler in a cage ([cage.Run]) and returns what it prints. Where there is no cage it runs
// only if c is trusted. Everything that is compiled goes this way, but for programs of our own
// ([Compiler.Program]).
func (c Compiler) Run(ctx context.Context, j Job) ([]byte, error) {
	cmd := c.Command(ctx, j.Args...)
	var executes []string
	if j.Link {
		cmd = c.Link(ctx, j.Args...)
		executes = append(executes, systemPrograms...) // the driver starts the system's linker
	}
	installed, programs := installation(c.Path)
	return cage.Run(ctx, cage.Job{
		Path: c.Path, Args: cmd.Args[1:], Folder: j.Folder, Limits: j.Limits, Trust: c.Trust,
		Reads: append(installed, j.Reads...), Executes: append(executes, programs...),
	})
}

// systemPrograms is where a system has its programs.
var systemPrograms = []string{"/usr/bin", "/bin", "/usr/local/bin", "/usr/libexec"}

// installation is what a compiler is beside its program: its libraries, which lie beside it or in lib beside
// the folder that it lies in. The folder itself is not read, for it may be anyone's: a script beside which
// other things lie. A script executes others, and reads what it likes of the system.
func installation(path string) (reads, executes []string) {
	paths := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		paths = append(paths, real)
	}
	for _, p := range paths {
		dir := filepath.Dir(p)
		reads = append(reads, filepath.Join(dir, "lib"), filepath.Join(filepath.Dir(dir), "lib"), filepath.Join(filepath.Dir(dir), "pyvenv.cfg"))
		executes = append(executes, p)
		if isScript(p) {
			executes = append(executes, dir)
			executes = append(executes, systemPrograms...)
			executes = append(executes, "/nix/store", "/gnu/store")
		}
	}
	if runtime.GOOS == "darwin" {
		reads = append(reads, "/opt/homebrew", "/usr/local", "/Library/Developer/CommandLineTools")
	}
	return reads, executes
}

// isScript reports whether a program is one that another interprets.
func isScript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	n, _ := f.Read(head[:])
	return n == 2 && string(head[:]) == "#!"
}

// Messages are what the compiler has said of what it compiled, if that is why it failed; else "".
func Messages(err error) string {
	var failed *cage.Failed
	if errors.As(err, &failed) {
		return failed.Messages
	}
	return ""
}
