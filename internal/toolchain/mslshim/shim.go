// Package mslshim holds what stands in for Metal's headers, and runs clang on sources that include
// them: check.h for checking (clang's vectors, true address spaces if wished, functions without
// bodies), metal.h for compiling (vectors as classes, no address spaces, functions of AIR).
// Both take the scalar types, the traits and the list of functions from the same files.
package mslshim

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/internal/toolchain/cage"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

//go:embed *.h
var headers embed.FS

// Own are the files of this package, on all of which depends what is compiled.
//
//go:embed *.h *.go
var Own embed.FS

// metal are the names under which sources include Metal's library. All of them are empty, because
// the rewritten source includes the shim.
var metal = []string{
	"metal_stdlib", "metal_atomic", "metal_common", "metal_compute", "metal_geometric", "metal_integer", "metal_logging", "metal_math",
	"metal_matrix", "metal_relational", "metal_simdgroup", "metal_simdgroup_matrix", "metal_types", "metal_vector",
}

// Folder is where a source is compiled, with the shim beside it.
type Folder struct {
	Dir   string
	Name  string // of the source
	Clang clang.Compiler
	// Limits are what a run of the compiler may take.
	Limits cage.Limits

	reads []string // the folders of headers
}

// New makes a temporary folder for source, which messages call by the last part of name.
func New(ctx context.Context, name, source string) (*Folder, error) {
	c, err := clang.Find(ctx)
	if err != nil {
		return nil, err
	}
	if err := directives(filepath.Base(name), source); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "msl")
	if err != nil {
		return nil, err
	}
	f := &Folder{Dir: dir, Name: filepath.Base(name), Clang: c}
	if err := f.lay(source); err != nil {
		f.Remove()
		return nil, err
	}
	return f, nil
}

// Remove removes the folder.
func (f *Folder) Remove() { os.RemoveAll(f.Dir) }

// lay writes the shim, the empty headers and the source.
func (f *Folder) lay(source string) error {
	if err := os.CopyFS(filepath.Join(f.Dir, "shim"), headers); err != nil {
		return err
	}
	include := filepath.Join(f.Dir, "include")
	if err := os.Mkdir(include, 0o700); err != nil {
		return err
	}
	for _, h := range metal {
		if err := os.WriteFile(filepath.Join(include, h), nil, 0o600); err != nil {
			return err
		}
	}
	path := filepath.Join(f.Dir, f.Name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a source cannot be called %s", f.Name)
	}
	return os.WriteFile(path, []byte(source), 0o600)
}

// Write writes a file into the folder.
func (f *Folder) Write(name, text string) error {
	return os.WriteFile(filepath.Join(f.Dir, name), []byte(text), 0o600)
}

// sourceBytes is how long a source may be when it is preprocessed. The longest known have two million.
const sourceBytes = 64 << 20

// Preprocess returns the source with its own headers, which include and define (-I, -D) lead to. A file that
// lies neither in these folders nor in that of the source is an error, which names the line.
func (f *Folder) Preprocess(ctx context.Context, include, define []string) (string, error) {
	args := []string{
		"-E", "-x", "c++", "-std=c++17", "-I", "include", "-nostdinc", "-nostdinc++", "-ffreestanding",
		"-D__METAL__=1", "-D__METAL_VERSION__=310", "-D__METAL_MACOS__=1", "-D__HAVE_BFLOAT__=1",
	}
	for _, dir := range include {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-I", abs)
		f.reads = append(f.reads, abs)
	}
	for _, d := range define {
		args = append(args, "-D"+d)
	}
	const list = ".files" // of all that was read
	limits := f.Limits
	if f.Limits.Output == 0 {
		f.Limits.Output = sourceBytes
	}
	out, err := f.Run(ctx, append(args, "-MD", "-MF", list, "-MT", "files", f.Name)...)
	f.Limits = limits
	if err != nil {
		return "", err
	}
	return string(out), f.within(string(out), filepath.Join(f.Dir, list))
}

// Run runs the compiler in the folder and returns what it prints. The error contains the
// compiler's messages.
func (f *Folder) Run(ctx context.Context, args ...string) ([]byte, error) {
	args = append([]string{"-fno-color-diagnostics", "-fno-caret-diagnostics", "-ferror-limit=20"}, args...)
	out, err := f.Clang.Run(ctx, clang.Job{Args: args, Folder: f.Dir, Reads: f.reads, Limits: f.Limits})
	if err == nil || ctx.Err() != nil {
		return out, err
	}
	if text := clang.Messages(err); text != "" {
		return nil, errors.New(text)
	}
	return nil, fmt.Errorf("%s: %w", f.Name, err)
}
