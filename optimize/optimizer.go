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

// Optimizer gives out graphs that are proved to compute what was recorded, and no others.
// It is what an encoder asks for to optimize its recordings ([record.Optimize]):
//
//	r, err := encoder.Finish(record.Optimize(optimize.New("annotate,fuse,barriers")))
type Optimizer struct {
	Options Options
	Result  *Result // of the last graph
	// Log is told what was fused where the environment asks for it (MLXC_DEBUG); nil is standard
	// error.
	Log   io.Writer
	debug int
	err   error
}

// DisableVariable is the environment variable that names passes which [New] leaves out, between
// commas: fuse,reorder. A name that no pass has is an error.
const DisableVariable = "MLXC_DISABLE"

// New returns an optimizer of the passes that list names ([passes.ParsePipeline]); the
// empty list is the default pipeline. Those that [DisableVariable] names are left out, so that one
// can do without a pass where the program cannot be changed. A list or variable that cannot be read
// is an error of Optimize.
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

// without leaves out what the environment says.
func without(p passes.Pipeline) (passes.Pipeline, error) {
	var known []string
	for _, x := range passes.All() {
		known = append(known, x.Name)
	}
	off, err := environ.List(DisableVariable, known)
	return slices.DeleteFunc(slices.Clone(p), func(s passes.Step) bool { return slices.Contains(off, s.Pass.Name) }), err
}

// Optimize returns what the passes make of recorded, which stays as it is.
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
