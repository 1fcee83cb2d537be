//go:build linux && (amd64 || arm64)

package cuda

import (
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// multiplied says which products of matrices tensor cores compute in a step. A kernel's declaration bounds the error
// of its sums, and tensor cores keep that bound where each sum has enough terms. It depends on the length of sums
// alone, so that sums of one class and length have the same bits in all kernels. Nothing bounds the sums of a kernel
// without declared terms: there tensor cores multiply only factors of 16 bits, whose products are exact.
func (c *code) multiplied(s *step) nvptx.MMA {
	if c.mma == nvptx.NoMMA || !s.kernel.multiplies() || int(s.node) >= len(c.nodes) {
		return nvptx.NoMMA
	}
	n, ok := c.nodes[s.node].(*ir.Dispatch)
	if !ok {
		return nvptx.NoMMA
	}
	k := &c.Graph.Kernels[n.Kernel]
	ds, err := msl.DeclarationsOf(k)
	if err != nil {
		return min(nvptx.HalfMMA, c.mma)
	}
	for _, d := range ds {
		in, err := d.Bind(c.Graph, n)
		switch {
		case err != nil:
			continue // another declaration of this name describes the dispatch
		case d.EffectsOnly:
			return min(nvptx.HalfMMA, c.mma)
		case longSums(d, in):
			return c.mma
		}
		break
	}
	return nvptx.NoMMA
}

// longSums reports whether all sums of a declaration have enough terms in a dispatch.
func longSums(d *decl.Decl, in *decl.Instance) bool {
	long := true
	look := func(e *term.Expr) {
		e.Walk(func(x *term.Expr) {
			if x.Op != term.Sum {
				return
			}
			n, err := in.Eval(x.Args[0])
			long = long && err == nil && n.IsConst() && n.Eval(nil) >= nvptx.MMATerms
		})
	}
	for _, w := range d.Wheres {
		look(w.Body)
	}
	for _, r := range d.Results {
		look(r.Body)
	}
	return long
}

// multiplies reports whether a kernel multiplies simdgroup matrices.
func (x *kernel) multiplies() bool { return x.code != nil && x.code.Matrices }
