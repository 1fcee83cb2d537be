package clang

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/toolchain/cage"
)

// Job is a run of the compiler on input that may be untrusted.
type Job struct {
	Args []string
	// Folder is its working folder, and the only one that it may write. Names of files are relative to it.
	Folder string
	// Reads are other files and folders that it may read.
	Reads []string
	// Link makes it link a shared object from others, and from nothing else: Args are then `-o OUT IN…`.
	Link bool
	// Limits are its resource limits; zeros stand for those of [cage.Default].
	Limits cage.Limits
}

// Run runs the compiler in a cage ([cage.Run]) and returns its standard output. Where no cage is available it runs
// only if c is trusted. Everything is compiled this way except programs of our own ([Compiler.Program]).
func (c Compiler) Run(ctx context.Context, j Job) ([]byte, error) {
	cmd := c.Command(ctx, j.Args...)
	var executes []string
	if j.Link {
		cmd = c.Link(ctx, j.Args...)
		executes = append(executes, systemPrograms...) // the driver starts the system's linker
	}
	installed := installationOf(c.Path)
	job := cage.Job{
		Path: c.Path, Args: cmd.Args[1:], Folder: j.Folder, Limits: j.Limits, Trust: c.Trust,
		Reads: append(slices.Clone(installed.reads), j.Reads...), Executes: append(executes, installed.executes...),
	}
	// The user's compiler may find its libraries by this variable.
	if paths := os.Getenv("LD_LIBRARY_PATH"); paths != "" {
		job.Env = []string{"LD_LIBRARY_PATH=" + paths}
		job.Reads = append(job.Reads, filepath.SplitList(paths)...)
	}
	return cage.Run(ctx, job)
}

// systemPrograms are the folders in which systems have their programs.
var systemPrograms = []string{"/usr/bin", "/bin", "/usr/local/bin", "/usr/libexec"}

// installation is what a compiler needs besides its program: libraries in the folders named lib beside it and beside
// its folder, or where the program itself says. Its folder is not readable as such, since it may hold anybody's
// files. A script also executes other programs, with what they need of the system.
type installation struct{ reads, executes []string }

var installations sync.Map // by path

func installationOf(path string) installation {
	if i, ok := installations.Load(path); ok {
		return i.(installation)
	}
	var i installation
	paths := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		paths = append(paths, real)
	}
	for _, p := range paths {
		dir := filepath.Dir(p)
		i.reads = append(i.reads, filepath.Join(dir, "lib"), filepath.Join(filepath.Dir(dir), "lib"), filepath.Join(filepath.Dir(dir), "pyvenv.cfg"))
		i.reads = append(i.reads, libraries(p)...)
		i.executes = append(i.executes, p)
		if isScript(p) {
			i.executes = append(append(i.executes, dir), systemPrograms...)
		}
		for _, store := range []string{"/nix/store", "/gnu/store"} { // stores of packages, which everybody may read
			if strings.HasPrefix(p, store+"/") {
				i.executes = append(i.executes, store)
			}
		}
	}
	if runtime.GOOS == "darwin" {
		i.reads = append(i.reads, "/opt/homebrew", "/usr/local", "/Library/Developer/CommandLineTools")
	}
	installations.Store(path, i)
	return i
}

// libraries returns the folders in which an ELF program says that its shared libraries are.
func libraries(path string) (out []string) {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		lists, _ := f.DynString(tag)
		for _, list := range lists {
			for _, dir := range strings.Split(list, ":") {
				dir = strings.NewReplacer("${ORIGIN}", filepath.Dir(path), "$ORIGIN", filepath.Dir(path)).Replace(dir)
				if dir = filepath.Clean(dir); filepath.IsAbs(dir) && dir != "/" && dir != filepath.Dir(path) {
					out = append(out, dir)
				}
			}
		}
	}
	return out
}

// isScript reports whether a program is a script for an interpreter.
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

// Messages returns what the compiler has printed about its input, if it failed because of that; otherwise "".
func Messages(err error) string {
	var failed *cage.Failed
	if errors.As(err, &failed) {
		return failed.Messages
	}
	return ""
}
