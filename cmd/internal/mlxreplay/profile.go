package mlxreplay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cmd/internal/profile"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

type profileCmd struct {
	Graph   string   `arg:"" help:"Graph file, or a ${kinds} model."`
	Name    string   `name:"graph" placeholder:"NAME" help:"Profile this graph of the file (default: a language model's prompt and decoding, else the first graph)."`
	Set     []string `placeholder:"PARAM=VALUE" help:"Set a param (with --graph). Repeatable."`
	Rounds  int      `default:"5" help:"Measurements, after one that only fills caches."`
	Tokens  int      `default:"16" help:"Tokens to decode in one measurement."`
	Prompt  int      `default:"128" help:"Tokens of the prompt in one measurement."`
	By      string   `enum:"auto,commands,ablation" default:"auto" help:"Whence the times of kernels are: commands (the device takes the time of each), ablation (replays are timed with kernels left out), or auto: commands where the device can."`
	HTML    string   `name:"html" placeholder:"FILE" help:"Write a page: kernels with their roofline, epochs as bars, idle gaps, replay by replay."`
	Trace   string   `placeholder:"FILE" help:"Write a trace (Chrome's JSON) that Perfetto opens: queue, command buffers, epochs, commands, bytes, modelled beside measured."`
	Write   string   `placeholder:"FILE" help:"Write the times of kernels as a profile for mlxc optimize --profile."`
	Update  bool     `help:"With --write: keep the kernels of FILE that this run does not measure, if there is such a file."`
	Chip    string   `placeholder:"NAME" help:"Chip whose times are modelled beside the measured ones (default: the device itself if its figures are known, else a model that is fitted to this run)."`
	Profile string   `placeholder:"FILE" help:"Model by this profile, of an earlier run, in place of a chip."`
	Top     int      `default:"20" placeholder:"N" help:"How many kernels to print of each graph; 0 prints all."`
	JSON    bool     `name:"json" help:"Print JSON."`
	moduleFlags
}

// Help implements kong's HelpProvider.
func (*profileCmd) Help() string {
	return "Times are of replays in which the device takes the time of each command, which makes them slower: mlxreplay bench has the speed. docs/profile.md says what each figure is."
}

// profiled is one run of the command.
type profiled struct {
	*profileCmd
	env    *cli.Env
	device backend.Device
	report profile.Report
	by     profile.By
	took   accounts
}

func (c *profileCmd) Run(env *cli.Env) error {
	switch {
	case c.Rounds < 1 || c.Tokens < 2 || c.Prompt < 1:
		return cli.BadUsage("--rounds, --tokens and --prompt are at least 1, 2 and 1")
	case c.Top < 0:
		return cli.BadUsage("--top: %d is negative", c.Top)
	case c.Update && c.Write == "":
		return cli.BadUsage("--update is of the file that --write names")
	case c.Chip != "" && c.Profile != "":
		return cli.BadUsage("--chip and --profile: a profile names its chip itself")
	}
	var given cost.Model
	var err error
	if c.Chip != "" {
		if given, err = cost.Chip(c.Chip); err != nil {
			return cli.BadUsage("--chip: %v", err)
		}
	}
	var files output.Files
	if c.Profile != "" {
		if given, err = cost.LoadProfile(c.Profile); err != nil {
			return err
		}
		if !c.Update || c.Profile != c.Write {
			if err := files.Read(c.Profile, "the profile"); err != nil {
				return err
			}
		}
	}
	if err := c.reads(&files, c.Update); err != nil {
		return err
	}
	c.learn(env)
	module, closer, err := c.openModule(env, &files, c.Graph, frontend.Options{})
	if err != nil {
		return err
	}
	defer closer.Close()
	c.Apply(module.Graphs...)
	var write, trace, html *output.File
	for _, o := range []struct {
		flag, path string
		to         **output.File
	}{{"--write", c.Write, &write}, {"--trace", c.Trace, &trace}, {"--html", c.HTML, &html}} {
		if o.path != "" {
			if *o.to, err = files.Write(o.flag, o.path); err != nil {
				return err
			}
		}
	}
	var known map[string]cost.Kernel
	if c.Update {
		switch before, err := cost.LoadProfile(c.Write); {
		case err == nil:
			known = before.Kernels
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	p := &profiled{profileCmd: c, env: env}
	end, err := c.open(env, func(d backend.Device) error {
		p.device = d
		p.report = profile.Report{Title: c.Graph, Device: d.Name(), About: d.Info().Description, Program: cli.Version("mlxreplay")}
		p.by = profile.By(c.By)
		if p.by == profile.ByCommands && d.Info().Sampling == backend.SampleNothing {
			return cli.BadUsage("--by commands: the device %s takes no times of commands (--by ablation times whole replays)", d.Name())
		}
		if p.by == "auto" {
			if p.by = profile.ByCommands; d.Info().Sampling == backend.SampleNothing {
				p.by = profile.ByAblation
			}
		}
		if c.Write != "" && p.by == profile.ByAblation {
			return fmt.Errorf("--write: a profile is made of times of commands: times by ablation say how long a kernel takes in this graph, and not by its bytes (--device names a device that takes times of commands)")
		}
		if c.Name == "" && frontend.IsLanguageModel(module) {
			return p.language(module)
		}
		return p.graph(module)
	})
	if err != nil {
		return err
	}
	defer end()
	r := &p.report
	fit := cost.NewFit(cost.Model{})
	for _, g := range r.Graphs {
		g.Fit(fit)
	}
	fitted := fit.Model()
	fitted.Cores = max(1, p.device.Info().Threads)
	p.model(given, fitted)
	if p.by == profile.ByAblation {
		r.Notes = append(r.Notes, "times of kernels are by ablation: each is what the replay took more than one without the kernel's commands; where commands overlap they do not add up to the replay")
	}
	if p.device.Info().Sampling == backend.SampleEncoders && p.by == profile.ByCommands {
		r.Notes = append(r.Notes, "the device takes times of encoders: while it is profiled each command has one of its own, so that none runs beside another")
	}
	all := r.Summaries()
	if err := p.print(all); err != nil {
		return err
	}
	for _, o := range []struct {
		to   *output.File
		with func(context.Context, io.Writer) error
	}{{trace, r.Trace}, {html, r.Page}} {
		if o.to == nil {
			continue
		}
		if err := o.to.Data(func(w io.Writer) error { return o.with(env.Context, w) }); err != nil {
			return err
		}
	}
	if write != nil {
		if !slices.ContainsFunc(all, func(s *profile.Summary) bool { return s.By == profile.ByCommands }) {
			return fmt.Errorf("--write: the device %s took no times of commands, and a profile is made of them", r.Device)
		}
		for name, k := range known {
			if _, ok := fitted.Kernels[name]; !ok {
				fitted.Kernels[name] = k
			}
		}
		if err := write.Data(fitted.WriteProfile); err != nil {
			return err
		}
	}
	var wrote []string
	for _, f := range []*output.File{write, trace, html} {
		if f != nil {
			wrote = append(wrote, f.Path)
		}
	}
	if len(wrote) > 0 && !c.JSON {
		fmt.Fprintf(env.Stdout, "wrote %s\n", strings.Join(wrote, ", "))
	}
	return nil
}

// model chooses the model that the report shows beside the measurements.
func (p *profiled) model(given, fitted cost.Model) {
	r := &p.report
	info := p.device.Info()
	of, err := cost.Chip(info.Description)
	switch {
	case given.Bandwidth > 0:
		r.Model = given
	case p.known != nil:
		r.Model = *p.known
	case err == nil && info.Description != "":
		r.Model = of
	default:
		r.Model, r.Fitted = fitted, true
		r.Model.Name = "fitted"
	}
	if r.Model.Name == "" {
		r.Model.Name = r.Model.Device
	}
}

// language times the prompt and the decoding of a language model.
func (p *profiled) language(module *ir.Module) error {
	if p.by == profile.ByAblation {
		return cli.BadUsage("the device takes no times of commands, or is not asked for them, and times by ablation are of one graph: name it (--graph decode), with --set for its params")
	}
	m, prompt, err := p.rounds(p.env, p.device, module, replay.Options{Profile: true}, rounds{p.Set, p.Rounds, p.Tokens, p.Prompt, 0})
	if err != nil {
		return err
	}
	defer m.Close()
	graphs := map[*ir.Graph]*profile.Graph{}
	warm := false // from the second round on: in the first one caches fill
	timing := func(g *ir.Graph, t replay.Timing) {
		if !warm {
			return
		}
		p.took.add(g, t)
		if graphs[g] == nil {
			graphs[g] = profile.New(p.env.Context, g)
		}
		graphs[g].Add(t)
	}
	// The first replay of a decoding is that of its prompt of one token. It counts only if prompts are replays of the same graph.
	type replayed struct {
		g *ir.Graph
		t replay.Timing
	}
	var held *replayed
	decodings := func(g *ir.Graph, t replay.Timing) {
		switch {
		case held == nil:
			held = &replayed{g, t}
			return
		case held.g == g:
			timing(g, held.t)
		}
		held.g = nil
		timing(g, t)
	}
	progress := cli.StartProgress(p.env.Stderr, "measuring")
	defer progress.End()
	for i := range p.Rounds + 1 {
		progress.Set(float64(i) / float64(p.Rounds+1))
		warm, held = i > 0, nil
		if _, err := m.Generate(p.env.Context, prompt, textgen.Options{N: 1, Timing: timing}); err != nil {
			return err
		}
		// One replay at a time: only such ones have times of commands.
		if _, err := m.Generate(p.env.Context, prompt[:1], textgen.Options{N: p.Tokens, IgnoreEnd: true, Burst: 1, Timing: decodings}); err != nil {
			return err
		}
	}
	for _, g := range module.Graphs {
		for x, of := range graphs {
			if x.Name == g.Name {
				p.report.Graphs = append(p.report.Graphs, of)
			}
		}
	}
	return nil
}

// graph times replays of one graph with inputs of zeros.
func (p *profiled) graph(module *ir.Module) error {
	set, err := assignments("--set", "PARAM=VALUE", p.Set)
	if err != nil {
		return err
	}
	s, g, err := compiled(p.env, p.device, module, p.Name, replay.Options{Profile: p.by == profile.ByCommands})
	if err != nil {
		return err
	}
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	prepare := func(g *replay.Graph) error { return setParams(g, set) }
	if err := prepare(g); err != nil {
		return err
	}
	if err := p.affordable(g, p.Rounds+1); err != nil {
		return err
	}
	of := profile.New(p.env.Context, g.IR())
	p.report.Graphs = append(p.report.Graphs, of)
	progress := cli.StartProgress(p.env.Stderr, "measuring")
	defer progress.End()
	if p.by == profile.ByAblation {
		original := module.Graph(g.IR().Name)
		err := s.Close() // its memory is needed
		if s = nil; err != nil {
			return err
		}
		var whole []replay.Timing
		of.Ablated, whole, err = profile.Ablate(p.env.Context, p.device, original, profile.Options{Rounds: p.Rounds, Prepare: prepare, Allowed: p.affordable, Progress: progress.Set})
		for _, t := range whole {
			p.took.add(g.IR(), t)
			of.Add(t)
		}
		return err
	}
	for i := range p.Rounds + 1 {
		progress.Set(float64(i) / float64(p.Rounds+1))
		t, err := g.Run(p.env.Context)
		if err != nil {
			return err
		}
		if i > 0 { // the first one only fills caches
			p.took.add(g.IR(), t)
			of.Add(t)
		}
	}
	// The same without times of commands, so that it can be seen what taking them costs.
	err = s.Close()
	if s = nil; err != nil {
		return err
	}
	if s, g, err = compiled(p.env, p.device, module, p.Name, replay.Options{}); err != nil {
		return err
	}
	if err := prepare(g); err != nil {
		return err
	}
	for i := range p.Rounds + 1 {
		t, err := g.Run(p.env.Context)
		if err != nil {
			return err
		}
		if i > 0 {
			of.Unprofiled = append(of.Unprofiled, t.Duration())
		}
	}
	return nil
}

// print prints the table, or JSON.
func (p *profiled) print(all []*profile.Summary) error {
	r := &p.report
	model := map[string]any{"name": r.Model.Name, "fitted": r.Fitted, "bandwidth_gbs": round3(r.Model.Bandwidth / 1e9), "arithmetic_gops": round3(r.Model.Rate / 1e9)}
	if p.JSON {
		for _, s := range all {
			s.Round()
		}
		out := map[string]any{"device": p.device.Name(), "threads": p.device.Info().Threads, "model": model, "graphs": all, "notes": r.Notes}
		return cli.JSON(p.env.Context, p.env.Stdout, p.Mention(p.took.mention(p.device, out)))
	}
	w := p.env.Stdout
	p.took.say(p.env, p.device)
	for i, s := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "graph %s on %s%s: %s a replay, the median of %d [%s–%s]", ir.QuoteName(s.Graph), p.device.Name(), p.Note(), cli.Micros(s.Median), s.Replays, cli.Micros(s.Min), cli.Micros(s.Max))
		if s.Dropped > 0 {
			fmt.Fprintf(w, " (%d more were not kept)", s.Dropped)
		}
		fmt.Fprintf(w, "; the mean is %s", cli.Micros(s.Mean))
		if s.By == profile.ByCommands {
			fmt.Fprintf(w, ", of which %s busy and %s idle", cli.Micros(s.Busy), cli.Micros(s.Idle))
		}
		if s.Plain > 0 {
			fmt.Fprintf(w, "; %s a replay where commands are not timed", cli.Micros(s.Plain))
		}
		fmt.Fprintln(w)
		name := r.Model.Name
		if r.Fitted {
			name = "a model fitted to this run"
		}
		fmt.Fprintf(w, "graph %s: times modelled for %s: %s a replay\n", ir.QuoteName(s.Graph), name, cli.Micros(s.Modelled))
		if s.Unsampled > 0 {
			fmt.Fprintf(w, "graph %s: %.4g of %d commands have no time, and count as idle: the device had no room for more\n", ir.QuoteName(s.Graph), s.Unsampled, s.Commands)
		}
		if s.Commands == 0 {
			fmt.Fprintf(w, "graph %s has no commands\n", ir.QuoteName(s.Graph))
			continue
		}
		t := cli.Table{Header: []string{"kernel", "dispatches", "µs a replay", "share", "modelled µs", "GB/s", "Gop/s", "of roofline"}}
		if s.By == profile.ByAblation {
			t.Header[2] = "µs a replay, by ablation"
		}
		list := s.Kernels
		if s.By == profile.ByCommands && s.Unsampled == 0 { // what hands on to a next replay is not run by one alone
			list = slices.DeleteFunc(slices.Clone(list), func(k profile.Kernel) bool { return k.Dispatches == 0 })
		}
		all := len(list)
		if p.Top > 0 && len(list) > p.Top {
			list = list[:p.Top]
		}
		for _, k := range list {
			time := fmt.Sprintf("%.1f", k.Microseconds)
			if s.By == profile.ByAblation {
				time += fmt.Sprintf(" ± %.1f", k.Spread)
			}
			roof := ""
			if k.Bound != "" {
				roof = fmt.Sprintf("%.0f %% of %s", 100*k.Roofline, k.Bound)
				if k.Roofline > 1.5 { // its bytes are a bound: rows that it reads by indices
					roof = "> 100 % of " + k.Bound
				}
			}
			dispatches := fmt.Sprintf("%.4g", k.Dispatches)
			if k.Dispatches == math.Trunc(k.Dispatches) {
				dispatches = fmt.Sprintf("%.0f", k.Dispatches)
			}
			t.Add(k.Name, dispatches, time, fmt.Sprintf("%.1f %%", 100*k.Share), fmt.Sprintf("%.1f", k.Modelled), fmt.Sprintf("%.3g", k.Bandwidth), fmt.Sprintf("%.3g", k.Rate), roof)
		}
		if err := t.Print(w); err != nil {
			return err
		}
		if more := all - len(list); more > 0 {
			fmt.Fprintf(w, "and %d more (--top 0 prints all)\n", more)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "%s\n", n)
	}
	return nil
}
