package optimize

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/mlxc/mlxc/internal/environ"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// Optimizer optimizes graphs, and returns only graphs that are proved to compute what was recorded.
// An encoder calls it to optimize its recordings ([record.Optimize]):
//
//	r, err := encoder.Finish(record.Optimize(optimize.New("annotate,fuse,barriers")))
type Optimizer struct {
	Options Options
	Result  *Result // of the last graph
	// Log gets lines about what was fused if the environment asks for them (MLXC_DEBUG). Nil stands
	// for standard error.
	Log   io.Writer
	debug int
	err   error
}

// DisableVariable is the environment variable that names the passes that [New] leaves out,
// separated by commas: fuse,reorder. An unknown name is an error.
const DisableVariable = "MLXC_DISABLE"

// New returns an optimizer that runs the passes in list ([passes.ParsePipeline]). The empty list is
// the default pipeline. It leaves out the passes that [DisableVariable] names, so that a user can
// switch off a pass of a program that cannot be changed. If the list or the variable does not
// parse, Optimize returns the error.
func New(list string) *Optimizer {
	o := &Optimizer{}
	if o.Options.Pipeline, o.err = passes.ParsePipeline(list); o.err == nil {
		o.Options.Pipeline, o.err = without(o.Options.Pipeline)
	}
	if o.err == nil {
		o.debug, _, o.err = environ.Debug()
	}
	return o
}

// without removes the passes that the environment disables.
func without(p passes.Pipeline) (passes.Pipeline, error) {
	var known []string
	for _, x := range passes.All() {
		known = append(known, x.Name)
	}
	off, err := environ.List(DisableVariable, known)
	return slices.DeleteFunc(slices.Clone(p), func(s passes.Step) bool { return slices.Contains(off, s.Pass.Name) }), err
}

// Optimize returns an optimized copy of recorded, which it does not change.
func (o *Optimizer) Optimize(ctx context.Context, recorded *ir.Graph) (*ir.Graph, error) {
	o.Result = nil
	if o.err != nil {
		return nil, o.err
	}
	r, err := Run(ctx, recorded, o.Options)
	if err != nil {
		return nil, err
	}
	o.Result = r
	if r.Proof.Verdict != prove.Proved {
		return nil, fmt.Errorf("the result of the passes is not proved to compute what was recorded\n%s", r.Proof)
	}
	countFused(r.Fused)
	if o.debug > 0 {
		to := o.Log
		if to == nil {
			to = os.Stderr
		}
		fmt.Fprintf(to, "mlxc: graph %s: fused %s (in all: %s)\n", ir.QuoteName(r.Graph), FusedText(r.Fused), FusedText(ProcessFused()))
	}
	return r.Optimized, nil
}
