package chat

import (
	"errors"
	"fmt"
	"time"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// run is the state of one rendering.
type run struct {
	raised *string // what raise_exception was called with
	depth  int     // of macro calls
	line   int     // the last tag that was reached
}

// tags are gonja's that transformers' Jinja has too, less those that read files.
var tags = []string{"break", "call", "continue", "filter", "for", "if", "macro", "raw", "set", "with"}

func (r *run) environment(o Options) *exec.Environment {
	now := func() time.Time {
		if o.Now.IsZero() {
			return time.Now()
		}
		return o.Now
	}
	// A copy: gonja's own set is shared by the whole program.
	functions := exec.EmptyContext().Update(builtins.GlobalFunctions)
	functions.Set("range", rangeFunction)
	functions.Set(lineMark, func(args *exec.VarArgs) string {
		r.line = args.Args[0].Integer() // applyWhitespace writes these calls
		return ""
	})
	functions.Set("raise_exception", func(args *exec.VarArgs) *exec.Value {
		message := "raise_exception"
		if len(args.Args) > 0 {
			message = args.Args[0].String()
		}
		r.raised = &message
		return exec.AsValue(errors.New(message))
	})
	functions.Set("strftime_now", func(args *exec.VarArgs) *exec.Value {
		if len(args.Args) != 1 || !args.Args[0].IsString() {
			return exec.AsValue(errors.New("strftime_now wants one format"))
		}
		s, err := strftime(now(), args.Args[0].String())
		if err != nil {
			return exec.AsValue(err)
		}
		return exec.AsValue(s)
	})
	structures := map[string]parser.ControlStructureParser{"generation": located(generationParser)}
	for _, name := range tags {
		parse, ok := controlStructures.All.Get(name)
		if !ok {
			panic(fmt.Sprintf("chat: gonja has no tag %q", name)) // another version of gonja
		}
		if name == "macro" {
			parse = r.boundedMacro(parse)
		}
		structures[name] = located(parse)
	}
	return &exec.Environment{
		Context:           functions,
		Filters:           filters(),
		Tests:             builtins.Tests,
		ControlStructures: exec.NewControlStructureSet(structures),
		Methods:           methods(),
	}
}

// boundedMacro makes macros that count how deep they are in one another: an
// endless recursion would end the whole program.
func (r *run) boundedMacro(parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		cs, err := parse(p, args)
		if err != nil {
			return nil, err
		}
		macro := cs.(*controlStructures.MacroControlStructure)
		return structure{macro, func(ren *exec.Renderer) error {
			got, _ := ren.Environment.Context.Get(macro.Name)
			inner := got.(exec.Macro)
			ren.Environment.Context.Set(macro.Name, exec.Macro(func(args *exec.VarArgs) *exec.Value {
				if r.depth == maxDepth {
					return exec.AsValue(fmt.Errorf("macro %q calls itself more than %d deep", macro.Name, maxDepth))
				}
				r.depth++
				defer func() { r.depth-- }()
				return inner(args)
			}))
			return nil
		}}, nil
	}
}

// rangeFunction is Python's range. gonja's own feeds a channel from a goroutine
// that is left behind when a loop ends early, and has no bound.
func rangeFunction(args *exec.VarArgs) *exec.Value {
	n := []int{0, 0, 1}
	for i, a := range args.Args {
		if i == 3 || !a.IsInteger() {
			return exec.AsValue(errors.New("range wants one to three whole numbers"))
		}
		n[i] = a.Integer()
	}
	switch len(args.Args) {
	case 0:
		return exec.AsValue(errors.New("range wants one to three whole numbers"))
	case 1:
		n[0], n[1] = 0, n[0]
	}
	start, stop, step := n[0], n[1], n[2]
	if step == 0 {
		return exec.AsValue(errors.New("range wants a step that is not 0"))
	}
	out := list{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(out) == maxRange {
			return exec.AsValue(fmt.Errorf("range of more than %d", maxRange))
		}
		out = append(out, i)
	}
	return exec.AsValue(out)
}

// generation is {% generation %}…{% endgeneration %}: transformers mark the
// assistant's words with it for training; here it only renders its body.
type generation struct {
	at   *tokens.Token
	body *nodes.Wrapper
}

func (g *generation) Position() *tokens.Token { return g.at }
func (g *generation) String() string          { return "generation()" }

func (g *generation) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	return r.ExecuteWrapper(g.body)
}

func generationParser(p, _ *parser.Parser) (nodes.ControlStructure, error) {
	g := &generation{at: p.Current()}
	body, _, err := p.WrapUntil("endgeneration")
	if err != nil {
		return nil, err
	}
	g.body = body
	return g, nil
}
