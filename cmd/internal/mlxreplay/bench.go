package mlxreplay

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

type benchCmd struct {
	Graph  string   `arg:"" help:"Graph file, or a ${kinds} model."`
	Name   string   `name:"graph" placeholder:"NAME" help:"Replay this graph of the file (default: a language model's prompt and decode speed, else the first graph)."`
	Set    []string `placeholder:"PARAM=VALUE" help:"Set a param (with --graph). Repeatable."`
	Rounds int      `default:"5" help:"Measurements; the median is printed with the min and the max."`
	Tokens int      `default:"64" help:"Tokens to decode in one measurement."`
	burstFlag
	Prompt int  `default:"128" help:"Tokens of the prompt in one measurement."`
	Depth  int  `default:"0" help:"Tokens that lie in the KV cache before those that are decoded."`
	JSON   bool `name:"json" help:"Print JSON."`
	// What mlxreplay profile does now; errors say so.
	Profile bool   `hidden:""`
	Write   string `name:"write-profile" hidden:""`
	Update  bool   `hidden:""`
	moduleFlags
}

// measure is the distribution of one measured figure.
type measure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func measured(v []float64) measure {
	s := slices.Sorted(slices.Values(v))
	return measure{round3(s[len(s)/2]), round3(s[0]), round3(s[len(s)-1])}
}

func (m measure) String() string { return fmt.Sprintf("%.2f [%.2f–%.2f]", m.Median, m.Min, m.Max) }

func (c *benchCmd) Run(env *cli.Env) error {
	if c.Rounds < 1 || c.Tokens < 2 || c.Prompt < 1 || c.Depth < 0 {
		return cli.BadUsage("--rounds, --tokens, --prompt and --depth are at least 1, 2, 1 and 0")
	}
	if _, err := c.burst(); err != nil {
		return err
	}
	switch {
	case c.Write != "" || c.Update:
		return cli.BadUsage("bench measures speed alone: mlxreplay profile %s --write FILE writes a profile (with --update as before)", cli.Quote(c.Graph))
	case c.Profile:
		return cli.BadUsage("bench measures speed alone: mlxreplay profile %s has the time by kernel", cli.Quote(c.Graph))
	}
	var files output.Files
	if err := c.reads(&files, false); err != nil {
		return err
	}
	c.learn(env)
	module, closer, err := c.openModule(env, &files, c.Graph, frontend.Options{})
	if err != nil {
		return err
	}
	defer closer.Close()
	c.Apply(module.Graphs...)
	closeDevice, err := c.open(env, func(d backend.Device) error {
		if c.Name == "" && frontend.IsLanguageModel(module) {
			return c.language(env, d, module)
		}
		return c.graph(env, d, module)
	})
	if err != nil {
		return err
	}
	closeDevice()
	return nil
}

// threadsOf returns a device's number of threads for display; a GPU has none.
func threadsOf(d backend.Device) any {
	if n := d.Info().Threads; n > 0 {
		return n
	}
	return ""
}

// language measures the prompt and decode speed of a language model.
func (c *benchCmd) language(env *cli.Env, d backend.Device, module *ir.Module) error {
	m, prompt, err := c.rounds(env, d, module, replay.Options{}, rounds{c.Set, c.Rounds, c.Tokens, c.Prompt, c.Depth})
	if err != nil {
		return err
	}
	defer m.Close()
	burst, err := c.burst()
	if err != nil {
		return err
	}
	var decode, feed []float64
	var took accounts
	timing := func(g *ir.Graph, t replay.Timing) { took.add(g, t) }
	progress := cli.StartProgress(env.Stderr, "measuring")
	defer progress.End()
	for i := range c.Rounds + 1 {
		progress.Set(float64(i) / float64(c.Rounds+1))
		r, err := m.Generate(env.Context, prompt[:c.Prompt], textgen.Options{N: 1, Timing: timing})
		if err != nil {
			return err
		}
		s, err := m.Generate(env.Context, prompt[:max(1, c.Depth)], textgen.Options{N: c.Tokens, IgnoreEnd: true, Burst: burst, Timing: timing})
		if err != nil {
			return err
		}
		if i > 0 { // the first round only fills caches
			feed = append(feed, float64(c.Prompt)/r.Prompt.Seconds())
			decode = append(decode, s.TokensPerSecond())
		}
	}
	progress.End()
	if c.JSON {
		out := map[string]any{
			"device": d.Name(), "threads": d.Info().Threads, "decode_tokens_per_second": measured(decode), "prompt_tokens_per_second": measured(feed),
		}
		return cli.JSON(env.Context, env.Stdout, c.Mention(took.mention(d, out)))
	}
	t := cli.Table{Header: []string{"device", "threads", "what", "tokens/s, median [min–max]"}}
	behind := ""
	if c.Depth > 0 {
		behind = fmt.Sprintf(" behind %d", c.Depth)
	}
	took.say(env, d)
	t.Add(d.Name(), threadsOf(d), fmt.Sprintf("decode %d%s%s", c.Tokens, behind, c.Note()), measured(decode).String())
	t.Add(d.Name(), threadsOf(d), fmt.Sprintf("prompt %d%s", c.Prompt, c.Note()), measured(feed).String())
	return t.Print(env.Stdout)
}

// graph measures replays of one graph with inputs of zeros.
func (c *benchCmd) graph(env *cli.Env, d backend.Device, module *ir.Module) error {
	s, g, err := compiled(env, d, module, c.Name, replay.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	set, err := assignments("--set", "PARAM=VALUE", c.Set)
	if err != nil {
		return err
	}
	if err := setParams(g, set); err != nil {
		return err
	}
	if err := c.affordable(g, c.Rounds+1); err != nil {
		return err
	}
	var times []float64
	var took accounts
	progress := cli.StartProgress(env.Stderr, "measuring")
	defer progress.End()
	for i := range c.Rounds + 1 {
		progress.Set(float64(i) / float64(c.Rounds+1))
		t, err := g.Run(env.Context)
		if err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		took.add(g.IR(), t)
		times = append(times, 1e3*t.Duration().Seconds())
	}
	progress.End()
	if c.JSON {
		out := map[string]any{"device": d.Name(), "threads": d.Info().Threads, "graph": g.IR().Name, "milliseconds": measured(times)}
		return cli.JSON(env.Context, env.Stdout, c.Mention(took.mention(d, out)))
	}
	t := cli.Table{Header: []string{"device", "threads", "graph", "ms, median [min–max]"}}
	took.say(env, d)
	t.Add(d.Name(), threadsOf(d), g.IR().Name+c.Note(), measured(times).String())
	return t.Print(env.Stdout)
}
