package mlxc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/prove"
)

type verifyCmd struct {
	kernelFlags
	libraryFlags
	cli.OrderFlag
	budgetFlags

	Graph  string   `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	After  string   `arg:"" optional:"" help:"Graph file that must compute the same: prove it."`
	Full   bool     `name:"verify" help:"Read every byte: checksums of weights, digests of external files."`
	Strict bool     `help:"Accept no proof that rests on an assumption, such as that the recording has no race somewhere."`
	Allow  []string `placeholder:"NAME" help:"Rewrites that may change bits and may be used (docs/terms.md): round."`
	JSON   bool     `name:"json" help:"Print the result as JSON."`

	sources []string // of the kernels
}

// verdict is what verify found out about one file.
type verdict struct {
	File    string   `json:"file"`
	Valid   bool     `json:"valid"`
	Errors  []string `json:"errors,omitempty"`
	Unknown []string `json:"undescribed,omitempty"` // dispatches that no declaration describes, and what could not be decided or is assumed
}

func (c *verifyCmd) Run(env *cli.Env) error {
	if err := term.CheckAllowed(c.Allow); err != nil {
		return cli.BadUsage("--allow: %v", err)
	}
	if err := c.budgetFlags.check(); err != nil {
		return err
	}
	var err error
	if c.sources, err = c.register(); err != nil {
		return err
	}
	defer c.libraryFlags.close()
	if err := c.openAll(env.Context, c.Full); err != nil {
		return err
	}
	paths := []string{c.Graph}
	if c.After != "" {
		paths = append(paths, c.After)
	}
	var files []verdict
	var ins []*inputs.Input
	bad := 0
	for i, path := range paths {
		in, err := inputs.Look(path)
		if err != nil {
			return err
		}
		defer in.Close()
		ins = append(ins, in)
		v, err := c.check(env.Context, in, path == paths[0])
		if err != nil {
			return err
		}
		if i == len(paths)-1 {
			c.unnamed(&v)
		}
		if !v.Valid {
			bad++
		}
		files = append(files, v)
	}
	var proofs map[string]*prove.Result
	var modules *prove.Result
	if bad == 0 && c.After != "" {
		if modules, proofs, err = c.prove(env.Context, ins[0], ins[1]); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := cli.JSON(env.Context, env.Stdout, map[string]any{"files": files, "modules": modules, "proofs": proofs}); err != nil {
			return err
		}
	} else {
		printVerdicts(env, files)
		printProofs(env, proofs)
		printModules(env, modules)
	}
	if bad > 0 {
		return cli.Fail(fmt.Errorf("%d of %d file(s) are not valid", bad, len(files)))
	}
	if err := proofError(proofs); err != nil || modules == nil || modules.Verdict == prove.Proved {
		return err
	}
	return cli.Fail(fmt.Errorf("%s and %s: %s", c.Graph, c.After, modules.Verdict))
}

// judge notes why a graph has no meaning, and what could not be decided.
func (v *verdict) judge(ctx context.Context, g *ir.Graph, found *meaning.Report, strict bool) {
	at := fmt.Sprintf("graph %s: ", ir.QuoteName(g.Name))
	for _, line := range found.Lines() {
		v.Errors = append(v.Errors, at+line)
	}
	for _, d := range found.Doubts() {
		if strict {
			v.Errors = append(v.Errors, at+"cannot tell: "+d)
		} else {
			v.Unknown = append(v.Unknown, at+d)
		}
	}
	if len(found.Faults) > 0 {
		return
	}
	flow := dataflow.Build(ctx, g)
	for _, u := range flow.Undefined() {
		n := flow.Commands[u.Command]
		v.Unknown = append(v.Unknown, fmt.Sprintf("%s%s may read bytes of %s that nothing wrote in this replay, and an output or state may depend on it: the writes before it were not shown to cover all of it", at, g.Describe(n), g.FormatRegion(u.Use.Region)))
	}
}

// prove compares two files: their graphs by name, and what lies beside the graphs.
func (c *verifyCmd) prove(ctx context.Context, first, second *inputs.Input) (*prove.Result, map[string]*prove.Result, error) {
	before, err := first.Module(ctx, inputs.Options{SkipExternal: true})
	if err != nil {
		return nil, nil, err
	}
	defer before.Close()
	after, err := second.Module(ctx, inputs.Options{SkipExternal: true})
	if err != nil {
		return nil, nil, err
	}
	defer after.Close()
	c.Apply(before.Module.Graphs...)
	out := map[string]*prove.Result{}
	for _, g := range before.Module.Graphs {
		a := after.Module.Graph(g.Name)
		if a == nil {
			continue
		}
		r := prove.Check(ctx, g, a, prove.Options{Strict: c.Strict, Allow: c.Allow, Budget: c.budget(), Sources: c.sources})
		if r.Err != nil {
			return nil, nil, r.Err
		}
		out[g.Name] = r
	}
	return prove.CheckModules(before.Module, after.Module), out, nil
}

func printVerdicts(env *cli.Env, files []verdict) {
	for _, v := range files {
		state := "valid"
		if !v.Valid {
			state = "NOT valid"
		}
		fmt.Fprintf(env.Stdout, "%s: %s\n", cli.Quote(v.File), state)
		for _, e := range v.Errors {
			fmt.Fprintf(env.Stdout, "  %s\n", e)
		}
		for _, u := range v.Unknown {
			fmt.Fprintf(env.Stdout, "  note: %s\n", u)
		}
	}
}

// printProofs prints a line for each graph, and the findings.
func printProofs(env *cli.Env, proofs map[string]*prove.Result) {
	for _, name := range slices.Sorted(maps.Keys(proofs)) {
		printProof(env.Stdout, ir.QuoteName(name), proofs[name])
	}
}

// printModules prints in what two files differ besides their graphs.
func printModules(env *cli.Env, r *prove.Result) {
	if r == nil {
		return
	}
	for _, f := range r.Findings {
		fmt.Fprintf(env.Stdout, "files: %s\n", f)
	}
}

// proofError returns the error of a proof that did not succeed; nil if all succeeded.
func proofError(proofs map[string]*prove.Result) error {
	for _, name := range slices.Sorted(maps.Keys(proofs)) {
		if r := proofs[name]; r.Verdict != prove.Proved {
			return cli.Fail(fmt.Errorf("graph %s: %s", ir.QuoteName(name), r.Verdict))
		}
	}
	return nil
}

// check opens the file, which checks its form. For every dispatch of a builtin kernel
// it asks whether a declaration describes the dispatch and allows its aliasing.
//
// For the recording, which is the first file, it also asks whether its graphs have a
// meaning. The proof of another file takes that for granted, and finds races of the
// other file itself.
func (c *verifyCmd) check(ctx context.Context, in *inputs.Input, recording bool) (v verdict, err error) {
	defer interrupt.Catch(&err)
	v.File = in.Name()
	f, err := in.Module(ctx, inputs.Options{Verify: c.Full})
	if err != nil {
		var list ir.Errors
		if errors.As(err, &list) {
			for _, e := range list {
				v.Errors = append(v.Errors, e.Error())
			}
		} else {
			v.Errors = []string{err.Error()}
		}
		return v, ctx.Err()
	}
	defer f.Close()
	for _, g := range f.Module.Graphs {
		declared := msl.NewCache(g)
		for _, n := range g.Nodes {
			d, ok := n.(*ir.Dispatch)
			if !ok {
				continue
			}
			at := fmt.Sprintf("graph %s: ", ir.QuoteName(g.Name))
			if k := &g.Kernels[d.Kernel]; !msl.Declared(k) {
				if c.lookup(&k.Library) != nil {
					continue
				}
				v.Unknown = append(v.Unknown, fmt.Sprintf("%s%s: kernel @%s is of library %q, which has no declarations", at, d.ID, ir.QuoteName(k.Name), k.Library.Path))
				continue
			}
			if d.Effects, err = declared.Describe(d); err != nil {
				v.Errors = append(v.Errors, at+err.Error())
			}
		}
		if err := c.compare(ctx, &v, g, c.Strict); err != nil {
			return v, err
		}
		if len(v.Errors) == 0 && recording {
			c.Apply(g)
			if c.RecordedOrder {
				v.Unknown = append(v.Unknown, fmt.Sprintf("graph %s: its list is taken as its order (--recorded-order)", ir.QuoteName(g.Name)))
			}
			found, err := meaning.Of(ctx, g)
			if err != nil {
				return v, err
			}
			if err := c.narrow(ctx, g, found); err != nil {
				return v, err
			}
			v.judge(ctx, g, found, c.Strict)
		}
	}
	v.Valid = len(v.Errors) == 0
	return v, nil
}
