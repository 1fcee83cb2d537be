// Package mlxc is the command mlxc, which records, optimizes, proves and prints graphs.
// Each subcommand is one file.
package mlxc

import (
	"github.com/alecthomas/kong"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/manual"
)

type grammar struct {
	Version kong.VersionFlag `help:"Print the version of this program."`

	Record   recordCmd   `cmd:"" help:"Record a language model (${kinds}) into a graph file."`
	Capture  captureCmd  `cmd:"" help:"Run a program and log what it sends to Metal (.mlxtrace)."`
	Import   importCmd   `cmd:"" help:"Make graphs of a log of what a program sent to Metal (.mlxtrace)."`
	Optimize optimizeCmd `cmd:"" help:"Run passes over the graphs of a file and write the result."`
	Verify   verifyCmd   `cmd:"" help:"Check that files are whole and their graphs valid."`
	Diff     diffCmd     `cmd:"" help:"Say what changed between two graph files (exit code 0: nothing, 1: something)."`
	Report   reportCmd   `cmd:"" help:"Say what costs most in the graphs of a file, in the engine's own words: what a kernel of the library would fuse, what nobody reads, barriers that nothing needs, idle cores."`
	Reduce   reduceCmd   `cmd:"" help:"Find the smallest graph for which a command of yours still fails."`
	Stats    statsCmd    `cmd:"" help:"Count what the graphs of a file have."`
	Dump     dumpCmd     `cmd:"" help:"Print a graph file as text, JSON or Graphviz."`
	Asm      asmCmd      `cmd:"" help:"Turn a text (.mlxt) into a container (.mlxg)."`
	Disasm   disasmCmd   `cmd:"" help:"Turn a container (.mlxg) into text (.mlxt)."`
	Effects  effectsCmd  `cmd:"" help:"Say what dispatches touch, or find out by running their kernels."`
	Kernels  kernelsCmd  `cmd:"" help:"List the kernels of a compiled Metal library (.metallib)."`
	Passes   passesCmd   `cmd:"" help:"List the passes, their options and their order."`

	Completion manual.CompletionCmd `cmd:"" help:"Print what a shell completes this program's words by."`
	Manual     manual.PageCmd       `cmd:"" help:"Print the manual page, as in man -l <(${program} manual)."`
}

// Words are what help texts say of the front ends.
func (*grammar) Words() map[string]string {
	return map[string]string{"kinds": inputs.Kinds(), "models": inputs.Models()}
}

// Main runs the command and returns its exit code.
func Main(args []string) int {
	return cli.Run("mlxc", "A compiler for GPU dispatch graphs: record, optimize, inspect.", &grammar{}, args)
}

// Understands returns an error if mlxc does not accept the arguments.
func Understands(args []string) error { return cli.Understands("mlxc", &grammar{}, args) }
