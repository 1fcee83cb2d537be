package mlxreplay

import (
	"context"
	"fmt"
	"io"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/npy"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/replay"
	"github.com/mlxc/mlxc/tokenizer"
	"github.com/mlxc/mlxc/tokenizer/chat"
)

type generateCmd struct {
	Model     string `arg:"" name:"graph" help:"Recorded model (.mlxg), or a ${kinds} model, which is recorded and optimized in memory."`
	Prompt    string `short:"p" help:"Text to continue; with --chat or --messages, the user's next message."`
	Chat      bool   `help:"Put the prompt into the model's chat template."`
	System    string `help:"System message of the chat."`
	Messages  string `placeholder:"FILE.json" help:"A chat of several messages: a list of {\"role\": …, \"content\": …}."`
	N         int    `short:"n" default:"128" help:"Most tokens to generate."`
	IgnoreEnd bool   `name:"ignore-eos" help:"Go on past the end of the answer."`
	Logits    string `placeholder:"FILE.npy" help:"Write the logits of every generated token, [tokens, vocabulary]."`
	JSON      bool   `name:"json" help:"Print a JSON object a line instead of the text: one for each token, with its id and the text that is certain with it, and a last one with why it ended, counts and seconds."`
	samplingFlags
	modelFlags
}

// burstFlag says how many tokens one submission decodes.
type burstFlag struct {
	Burst *int `placeholder:"N" help:"Tokens to decode by one submission, which for --temp needs a graph recorded with --sample (default: on a GPU as many as take some 40 ms, up to 128; else 1)."`
}

// burst returns the value for textgen.Options: 0 without the flag.
func (f burstFlag) burst() (int, error) {
	switch {
	case f.Burst == nil:
		return 0, nil
	case *f.Burst < 1:
		return 0, cli.BadUsage("--burst is %d, want at least 1", *f.Burst)
	}
	return *f.Burst, nil
}

// modelFlags are the flags of commands that run a language model.
type modelFlags struct {
	burstFlag
	Draft *int `placeholder:"N" help:"Most tokens to guess, from what followed the same words before, and to verify by one step. Answers stay the same but for rounding; on a GPU they are faster where texts repeat themselves. A graph needs mlxc record --draft N (default: on a GPU as many as the graph verifies; else, and with 0, nothing is guessed)."`
	moduleFlags
}

// draft sets how many tokens are guessed. On a GPU a step of several tokens takes little longer than one of a token, whose time is that of reading the weights. On the host it takes nearly as
// long as so many steps: there guesses are made only if they are asked for.
func (f *modelFlags) draft(m *textgen.Model, path string, o *textgen.Options) error {
	switch {
	case f.Draft == nil:
		if o.Burst <= 1 && m.Device.Info().Submits {
			o.Draft = m.Drafts()
		}
	case *f.Draft > m.Drafts():
		return cli.BadUsage("--draft %d: %s verifies up to %d guesses (mlxc record --draft %[1]d makes a graph that verifies more)", *f.Draft, cli.Quote(path), m.Drafts())
	default:
		o.Draft = *f.Draft
	}
	return nil
}

// recorded returns what a model that is recorded here is asked for. With sample its graphs draw the tokens themselves.
func (f *modelFlags) recorded(sample bool) (o frontend.Options, err error) {
	o.Sample = sample
	if f.Draft == nil {
		return o, nil
	}
	if o.Draft = int64(*f.Draft); o.Draft < 0 {
		return o, cli.BadUsage("--draft is %d, want 0 or more", o.Draft)
	}
	if f.Burst != nil && *f.Burst > 1 && o.Draft > 0 {
		return o, cli.BadUsage("--burst %d and --draft %d: the host has to see which guesses were right", *f.Burst, o.Draft)
	}
	return o, nil
}

// moduleFlags are the flags of commands that run a graph file or a model.
type moduleFlags struct {
	Verify bool `help:"Check every checksum and digest of the file first."`
	inputs.Recording
	deviceFlags
	cli.OrderFlag
}

// openModel opens a model for generation, and sets how many tokens are guessed. sample makes the graphs of a model that is recorded here draw the tokens
// themselves (frontend.Options.Sample). The function that it returns closes the model and its device.
func (f *modelFlags) openModel(env *cli.Env, files *output.Files, path string, sample bool, o *textgen.Options) (*textgen.Model, func(), error) {
	asked, err := f.recorded(sample)
	if err != nil {
		return nil, nil, err
	}
	f.learn(env)
	module, closer, err := f.openModule(env, files, path, asked)
	if err != nil {
		return nil, nil, err
	}
	f.Apply(module.Graphs...)
	var m *textgen.Model
	closeDevice, err := f.open(env, func(d backend.Device) (err error) {
		loading, compiling := cli.StartProgress(env.Stderr, "loading weights"), cli.StartProgress(env.Stderr, "compiling")
		defer loading.End()
		defer compiling.End()
		if m, err = textgen.Open(env.Context, d, module, replay.Options{Loading: loading.Graph, Progress: compiling.Graph}); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		closer.Close()
		return nil, nil, err
	}
	if of, ok := closer.(frontend.Model); ok {
		m.Larger = largerThan(m.Context(), of.Context())
	}
	closeAll := func() {
		m.Close()
		closeDevice()
		closer.Close()
	}
	if err := f.draft(m, path, o); err != nil {
		closeAll()
		return nil, nil, err
	}
	return m, closeAll, nil
}

// largerThan says what has a larger context than a model that was recorded in memory, with so many positions.
func largerThan(context int, most int64) string {
	if int64(context) >= most {
		return "the model has no more"
	}
	return fmt.Sprintf("the model has up to %d: --context N takes more than the default", most)
}

// openModule opens a recorded model, or records one, as it is asked for, from a file that a front end reads.
func (f *moduleFlags) openModule(env *cli.Env, files *output.Files, path string, asked frontend.Options) (*ir.Module, io.Closer, error) {
	in, err := inputs.Look(path)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	if !in.IsModel() {
		if err := f.Unused(path); err != nil {
			return nil, nil, err
		}
		checking := cli.StartProgress(env.Stderr, "checking contents")
		g, err := in.Module(env.Context, inputs.Options{Verify: f.Verify, Progress: checking.Set})
		checking.End()
		if err != nil {
			return nil, nil, err
		}
		if err := files.ReadGraph(g); err != nil {
			g.Close()
			return nil, nil, err
		}
		return g.Module, g, nil
	}
	if err := files.Read(path, "the model"); err != nil {
		return nil, nil, err
	}
	o, err := f.Options(f.onlyCPU())
	if err != nil {
		return nil, nil, err
	}
	m, err := in.Model()
	if err != nil {
		return nil, nil, err
	}
	cli.Remark(env, m.Remarks()...)
	progress := cli.StartProgress(env.Stderr, "recording")
	defer progress.End()
	o.Unread, o.Advance, o.Sample, o.Draft, o.Progress = true, true, asked.Sample, asked.Draft, progress.Set
	module, err := m.Record(env.Context, o)
	if err != nil {
		m.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, g := range module.Graphs {
		if _, err := passes.Run(env.Context, g, passes.DefaultPipeline(), passes.Options{Model: f.model()}); err != nil {
			m.Close()
			return nil, nil, err
		}
	}
	return module, m, nil
}

func (c *generateCmd) Run(env *cli.Env) error {
	burst, err := c.burst()
	if err != nil {
		return err
	}
	o, err := c.options(c.N, burst)
	switch {
	case err != nil:
		return err
	case burst > 1 && c.Logits != "":
		return cli.BadUsage("--burst %d and --logits: logits need the host after each token", burst)
	}
	if c.Prompt == "" && !c.Chat && c.Messages == "" {
		return cli.BadUsage("--prompt is empty or missing")
	}
	var files output.Files
	if err := c.reads(&files, false); err != nil {
		return err
	}
	if c.Messages != "" {
		if err := files.Read(c.Messages, "the messages"); err != nil {
			return err
		}
	}
	var logitsFile *output.File
	if c.Logits != "" {
		var err error
		if logitsFile, err = files.Write("--logits", c.Logits); err != nil {
			return err
		}
	}
	m, closeModel, err := c.openModel(env, &files, c.Model, c.Temp > 0, &o)
	if err != nil {
		return err
	}
	defer closeModel()
	prompt, err := c.promptIDs(env.Context, m)
	if err != nil {
		return err
	}
	seconds, err := m.Work(len(prompt), min(c.N, m.Context()))
	if err != nil {
		return err
	}
	if err := c.allowed(fmt.Sprintf("%d tokens after a prompt of %d", c.N, len(prompt)), seconds); err != nil {
		return err
	}
	var logits []float32
	o.IgnoreEnd = c.IgnoreEnd
	if c.Logits != "" {
		o.Logits = func(l []float32) { logits = append(logits, l...) }
	}
	var took accounts
	o.Timing = took.add
	said := newAnswer(env, m, c.Stop, c.JSON)
	r, err := said.generate(env.Context, m, prompt, o)
	if err != nil {
		if !c.JSON && said.text.Len() > 0 {
			fmt.Fprintln(env.Raw())
		}
		return err
	}
	if c.Logits != "" {
		a, err := npy.Of(logits, len(r.IDs), len(logits)/len(r.IDs))
		if err != nil {
			return err
		}
		if err := logitsFile.Data(func(w io.Writer) error { return npy.Write(w, a) }); err != nil {
			return err
		}
	}
	if c.JSON {
		return jsonLine(env, c.Mention(took.mention(m.Device, said.figures(m, prompt, r))))
	}
	fmt.Fprintln(env.Raw())
	fmt.Fprintf(env.Stderr, "\n%d prompt tokens at %.0f tokens/s, %s (%s%s)\n%s",
		len(prompt), float64(len(prompt))/r.Prompt.Seconds(), pace(r), r.Stopped, c.Note(), full(m, r))
	took.say(env, m.Device)
	return nil
}

func (c *generateCmd) promptIDs(ctx context.Context, m *textgen.Model) ([]int32, error) {
	t := m.Tokenizer
	if !c.Chat && c.Messages == "" {
		if c.System != "" {
			return nil, cli.BadUsage("--system needs --chat or --messages")
		}
		ids := t.Encode(c.Prompt, false)
		if bos, ok := t.ID(tokenizer.BOS); ok && t.AddBOS() {
			ids = append([]int32{bos}, ids...)
		}
		return ids, nil
	}
	messages, err := conversation(c.System, c.Messages)
	if err != nil {
		return nil, err
	}
	if c.Prompt != "" || c.Messages == "" {
		messages = append(messages, chat.Message{Role: "user", Content: c.Prompt})
	}
	return render(ctx, m, messages)
}
