package prebuilt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/backend/internal/advance"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Launches are the ways to launch a kernel for which each is compiled; one that multiplies matrices with
// [nvptx.AllMMA], since sums are as long as that asks in all models but tiny ones.
var Launches = []nvptx.Launch{{Values: true}, {Values: true, Moving: true}, {Values: true, Programmatic: true}, {Values: true, Programmatic: true, Moving: true}}

// Wanted are the kernels that an archive has, and their sources by file: all that our library declares
// and recorders or fusion can choose, for the function constants with which its declarations describe a
// dispatch; and those by which a GPU copies, fills and counts on.
func Wanted() (all []Request, sources map[string]string, err error) {
	sources = map[string]string{plan.MovesFile: plan.Moves, advance.File: advance.Source}
	add := func(file, function string, constants []air.ConstantValue) {
		r := NewRequest(file, sources[file], function)
		r.Constants = constants
		for _, r.Launch = range Launches {
			if r.Launch.Moving && still(file, function) {
				continue
			}
			if r.Matrices {
				r.Launch.MMA = nvptx.AllMMA
			}
			all = append(all, r)
		}
	}
	for _, p := range moves() {
		add(plan.MovesFile, p.Entry(), nil)
	}
	add(advance.File, advance.Entry, nil)
	for _, f := range msl.Functions() {
		ds := msl.Declarations(f)
		if _, err := msl.Own().Open(ds[0].File); err != nil {
			continue // given to msl.Register, by whoever uses this package
		}
		if !chosen(ds[0]) {
			continue
		}
		if sources[ds[0].File], err = msl.Source(ds[0].File); err != nil {
			return nil, nil, err
		}
		var seen []string
		for _, d := range ds {
			values, err := assignments(d)
			if err != nil {
				return nil, nil, err
			}
			for _, v := range values {
				if s := constants(v); !slices.Contains(seen, s) {
					seen = append(seen, s)
					add(d.File, f, v)
				}
			}
		}
	}
	return all, sources, nil
}

// chosen reports whether the default pipeline can choose a kernel for a model of a GGUF file: its codes have 4 or 8 bits
// in groups of 32, matrices have multiples of 32 rows, and what a step computes is f32. Everything else is compiled when
// it is needed: kernels of f16 and bf16 save copies, codes in other widths and groups, which MLX's files have, products by
// experts and with GGML's blocks, quantization.
func chosen(d *decl.Decl) bool {
	for s, n := range d.Template {
		if d.Symbols[s].Name == "b" && n != 4 && n != 8 || d.Symbols[s].Name == "g" && n != 32 {
			return false
		}
	}
	switch d.File {
	case "ggml.metal", "quantize.metal", msl.PlainLoops, "arange.metal":
		return false
	case "copy.metal":
		return d.Args[0].Elem != ir.U32 // codes that lie under strides
	}
	return !strings.Contains(d.Name, "gather_") && !strings.Contains(d.Name, "alN_false") && !slices.ContainsFunc(d.Args, func(a decl.Arg) bool {
		return (a.Elem == ir.F16 || a.Elem == ir.BF16) && (a.Mode == decl.Write || d.File == "arg_reduce.metal" || d.File == "sample.metal")
	})
}

// still reports whether the arguments of a kernel have the same addresses in every replay of a model's graph. Products
// with a vector do: they read and write temporaries. Those with a norm do not: they may read the last row of a prompt.
func still(file, function string) bool {
	return file == "quantized.metal" && strings.HasPrefix(function, "affine_qmv_") || file == "gemv.metal" && strings.HasPrefix(function, "gemv_")
}

// moves are the kernels that a plan has of its own.
func moves() (out []plan.Pipeline) {
	for _, w := range []int{1, 4, 16} {
		out = append(out, plan.Pipeline{Source: plan.Copy, Width: w}, plan.Pipeline{Source: plan.Fill, Width: w})
	}
	return append(out, plan.Pipeline{Source: plan.Guard})
}

// assignments are the values of function constants that a declaration allows.
func assignments(d *decl.Decl) (out [][]air.ConstantValue, err error) {
	known := map[int]bool{}
	values := make([]term.Value, len(d.Symbols))
	for s, n := range d.Template {
		known[s], values[s] = true, term.Value{I: n, F: float64(n)}
	}
	for _, c := range d.Constants {
		if c.Type != ir.Bool {
			return nil, fmt.Errorf("%s:%d: kernel %s: the constant %s is a %s: which of its values are compiled beforehand is not known", d.File, d.Line, d.Name, c.Name, c.Type)
		}
		known[c.Symbol] = true
	}
	if len(d.Constants) > 10 {
		return nil, fmt.Errorf("%s:%d: kernel %s has %d function constants: too many to compile all their values", d.File, d.Line, d.Name, len(d.Constants))
	}
	for bits := range 1 << len(d.Constants) {
		v := make([]air.ConstantValue, len(d.Constants))
		for i, c := range d.Constants {
			v[i] = air.ConstantValue{Index: int(c.Index), Bits: uint64(bits >> i & 1)}
			values[c.Symbol] = term.Value{I: int64(v[i].Bits), F: float64(v[i].Bits)}
		}
		allowed := true
		for _, r := range d.Requires {
			ok, err := holds(r, known, values)
			if err != nil {
				return nil, err
			}
			allowed = allowed && ok
		}
		if allowed {
			out = append(out, v)
		}
	}
	return out, nil
}

// holds says whether a condition may hold, of whose symbols some are known: parts that have others may.
func holds(e *term.Expr, known map[int]bool, values []term.Value) (bool, error) {
	if e.Op == term.And {
		ok, err := holds(e.Args[0], known, values)
		if err != nil || !ok {
			return ok, err
		}
		return holds(e.Args[1], known, values)
	}
	all := true
	e.Walk(func(x *term.Expr) { all = all && (x.Op != term.Symbol || known[x.Index]) && x.Op != term.Load })
	if !all {
		return true, nil
	}
	in := term.Interp{Symbols: values}
	v, err := in.Eval(e, nil)
	return v.I != 0, err
}
