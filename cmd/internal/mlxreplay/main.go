// Package mlxreplay is the command mlxreplay, which runs graphs. Each subcommand is one
// file.
package mlxreplay

import (
	"github.com/alecthomas/kong"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/manual"
)

type grammar struct {
	Version kong.VersionFlag `help:"Print the version of this program."`

	Run      runCmd      `cmd:"" help:"Replay a graph on .npy inputs."`
	Generate generateCmd `cmd:"" help:"Generate text with a recorded language model."`
	Chat     chatCmd     `cmd:"" help:"Talk with a recorded language model."`
	Tokenize tokenizeCmd `cmd:"" help:"Turn lines of text into token ids."`
	Bench    benchCmd    `cmd:"" help:"Measure how fast a graph replays."`
	Profile  profileCmd  `cmd:"" help:"Say where the time of replays goes: by kernel, with a trace for Perfetto and a page."`
	Compare  compareCmd  `cmd:"" help:"Replay a graph on two devices and compare its outputs."`
	Check    checkCmd    `cmd:"" help:"Run a graph's kernels under a checker: bounds, races, undefined reads."`
	Doctor   doctorCmd   `cmd:"" help:"Examine a device: orders, numbers, every kernel, times; write a report to send and a profile."`
	Devices  devicesCmd  `cmd:"" help:"List the devices that can replay."`

	Completion manual.CompletionCmd `cmd:"" help:"Print what a shell completes this program's words by."`
	Manual     manual.PageCmd       `cmd:"" help:"Print the manual page, as in man -l <(${program} manual)."`
}

// Words are what help texts say of front ends and devices.
func (*grammar) Words() map[string]string {
	return map[string]string{
		"kinds": inputs.Kinds(),
		"devices": names("and", func(d *backend.Driver) string {
			if d.What == "" {
				return d.Name
			}
			return d.Name + " (" + d.What + ")"
		}),
		"gpus": names("or", func(d *backend.Driver) string {
			if d.GPU {
				return d.Name
			}
			return ""
		}),
	}
}

// Main runs the command with the devices that some drivers open, among them cpu, and returns its exit code.
func Main(args []string, devices ...backend.Driver) int {
	drivers = devices
	return cli.Run("mlxreplay", "Replays GPU dispatch graphs: on this machine, with or without a GPU.", &grammar{}, args)
}

// Understands returns an error if mlxreplay does not accept the arguments.
func Understands(args []string) error { return cli.Understands("mlxreplay", &grammar{}, args) }
