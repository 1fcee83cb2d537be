package mlxc

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/ir"
)

// tracedFlags are for functions that MLX has exported.
type tracedFlags struct {
	Function int      `placeholder:"N" help:"Of a function that MLX has exported: which of its traces, counted from 1 (default: the only one)."`
	Weights  string   `placeholder:"FILE.safetensors" help:"Of an exported function: contents for arguments with names (keywords). Others are inputs."`
	State    []string `placeholder:"ARG=OUT" help:"Of an exported function: an argument that is, in the next run, what a result is in this one, such as arg2=out1. Repeatable."`
	States   bool     `default:"true" negatable:"" help:"Of an exported function: make states of arguments that it updates, such as caches, without being told."`
	Library  string   `placeholder:"FILE" help:"Of an exported function: take kernels of this compiled library of MLX's (.metallib) where there are none of our own. Such a graph does not run on the device cpu."`

	sources map[string][]byte // of kernels that the function brings along, by the names of their files
}

// kernelFolder is where libraries of a graph are written.
func kernelFolder(graph string) string {
	return strings.TrimSuffix(graph, filepath.Ext(graph)) + ".kernels"
}

// plainName is a name with underscores for all but letters, digits and some signs.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-' || r == '_') {
			return r
		}
		return '_'
	}, name)
}

// writeSources writes the sources of kernels that a graph refers to.
func (f *tracedFlags) writeSources(files *output.Files, graph string) error {
	if len(f.sources) == 0 {
		return nil
	}
	folder := kernelFolder(graph)
	if err := files.Folder(folder); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.sources)) {
		file, err := files.Write("library", filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if err := file.Data(func(w io.Writer) error {
			_, err := w.Write(f.sources[name])
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// reads notes the files that the flags name.
func (f *tracedFlags) reads(files *output.Files) error {
	if err := files.Read(f.Weights, "the weights"); err != nil {
		return err
	}
	return files.Read(f.Library, "the library")
}

// traced adds the flags to the options of a recording into a graph file. closeLibrary releases the library.
func (f *tracedFlags) traced(m frontend.Model, name, graph string, o *frontend.Options) (closeLibrary func(), err error) {
	closeLibrary = func() {}
	if _, ok := m.(frontend.Trace); !ok {
		if f.Function != 0 || f.Weights != "" || len(f.State) > 0 || !f.States || f.Library != "" {
			return nil, cli.BadUsage("--function, --weights, --state, --no-states and --library are for functions that MLX has exported, but %s is none", cli.Quote(name))
		}
		return closeLibrary, nil
	}
	o.Traced = &frontend.Traced{Function: f.Function, Weights: f.Weights, NoStates: !f.States, Source: func(name string, text []byte) ir.Library {
		digest := ir.Digest(sha256.Sum256(text))
		at := path.Join(filepath.Base(kernelFolder(graph)), fmt.Sprintf("%.40s-%.12s.metal", plainName(name), digest))
		if f.sources == nil {
			f.sources = map[string][]byte{}
		}
		f.sources[path.Base(at)] = text
		return ir.Library{Kind: ir.SourceFile, Path: at, Digest: digest}
	}}
	for _, s := range f.State {
		in, out, ok := strings.Cut(s, "=")
		if !ok {
			return nil, cli.BadUsage("--state wants ARG=OUT, not %q", s)
		}
		o.Traced.States = append(o.Traced.States, frontend.StatePair{In: in, Out: out})
	}
	if f.Library == "" {
		return closeLibrary, nil
	}
	lib, err := inputs.OpenLibrary(f.Library)
	if err != nil {
		return nil, fmt.Errorf("--library: %w", err)
	}
	at, err := output.Relative(filepath.Dir(graph), f.Library)
	if err != nil {
		lib.Close()
		return nil, err
	}
	of := ir.Library{Kind: ir.Metallib, Path: at, Digest: sha256.Sum256(lib.Data)}
	o.Traced.Compiled = func(function string) (ir.Kernel, bool) {
		k, err := lib.Describe(function)
		if err != nil {
			return ir.Kernel{}, false
		}
		out, err := bind.Kernel(k, of)
		return out, err == nil
	}
	return func() { lib.Close() }, nil
}
