package mlxreplay

import (
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// rounds are what a language model is timed with: so many rounds, and a first one that only fills caches, of a prompt and a decoding of so many
// tokens.
type rounds struct {
	set                    []string // --set, which is for single graphs
	rounds, tokens, prompt int
	depth                  int // tokens before those that are decoded
}

// rounds opens a language model to be timed, and returns a prompt of the first tokens of its vocabulary, as long as the prompt or the depth: the work does not depend on which
// tokens they are. The model must be closed.
func (f moduleFlags) rounds(env *cli.Env, d backend.Device, module *ir.Module, o replay.Options, r rounds) (*textgen.Model, []int32, error) {
	if len(r.set) > 0 {
		return nil, nil, cli.BadUsage("--set needs --graph: a language model's params follow its tokens")
	}
	compiling := cli.StartProgress(env.Stderr, "compiling")
	o.Progress = compiling.Graph
	m, err := textgen.Open(env.Context, d, module, o)
	compiling.End()
	if err != nil {
		return nil, nil, err
	}
	prompt, err := f.promptOf(m, r)
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return m, prompt, nil
}

func (f moduleFlags) promptOf(m *textgen.Model, r rounds) ([]int32, error) {
	if n := m.Context(); r.tokens >= n || r.depth >= n-r.tokens || r.prompt > n {
		behind := ""
		if r.depth > 0 {
			behind = fmt.Sprintf(" behind --depth %d", r.depth)
		}
		return nil, cli.BadUsage("--tokens %d%s or --prompt %d is more than the context of %d positions", r.tokens, behind, r.prompt, m.Context())
	}
	seconds, err := m.Work(r.prompt+r.depth, r.tokens)
	if err != nil {
		return nil, err
	}
	if err := f.allowed(fmt.Sprintf("%d rounds of %d tokens after a prompt of %d", r.rounds+1, r.tokens, r.prompt), seconds*float64(r.rounds+1)); err != nil {
		return nil, err
	}
	prompt := make([]int32, max(r.prompt, r.depth))
	for i := range prompt {
		prompt[i] = int32((100 + i%1000) % m.Tokenizer.Size())
	}
	return prompt, nil
}
