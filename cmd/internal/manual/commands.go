package manual

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/mlxc/mlxc/cmd/internal/cli"
)

// CompletionCmd is the subcommand that prints completions.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is what the subcommand's help says beside its arguments.
func (CompletionCmd) Help() string {
	return "bash: source <(PROGRAM completion bash), in ~/.bashrc. zsh: write it to a file _PROGRAM in a folder of $fpath. fish: write it to ~/.config/fish/completions/PROGRAM.fish."
}

// Run prints the completions, for a shell to read.
func (c CompletionCmd) Run(env *cli.Env, ctx *kong.Context) error {
	text, err := Completion(ctx.Model, c.Shell)
	if err == nil {
		_, err = fmt.Fprint(env.Raw(), text)
	}
	return err
}

// PageCmd is the subcommand that prints the manual page.
type PageCmd struct{}

// Run prints the page, for man to read.
func (PageCmd) Run(env *cli.Env, ctx *kong.Context) error {
	_, err := fmt.Fprint(env.Raw(), Page(ctx.Model))
	return err
}
