package optimize

import (
	"context"
	"fmt"

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
	err     error
}

// New returns an optimizer of the passes that list names ([passes.ParsePipeline]); the
// empty list is the default pipeline. A list that cannot be read is an error of Optimize.
func New(list string) *Optimizer {
	p, err := passes.ParsePipeline(list)
	return &Optimizer{Options: Options{Pipeline: p}, err: err}
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
	return r.Optimized, nil
}
