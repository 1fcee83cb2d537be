package prebuilt

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/backend/internal/advance"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Launches are the ways to launch a kernel for which each is compiled; one that multiplies matrices also
// with [nvptx.AllMMA].
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
			all = append(all, r)
			if r.Matrices {
				r.Launch.MMA = nvptx.AllMMA
				all = append(all, r)
			}
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

// chosen reports whether recorders or fusion can choose a kernel. Of f16 and bf16 they choose copies, layer norms and
// column sums, and else kernels that read such weights: who dispatches another has it compiled when it
// is needed, and so has who reads GGML's blocks, of which a file has few formats, or affine codes that no GGUF file is
// repacked to, or who quantizes or multiplies with codes in MLX's rarer forms.
func chosen(d *decl.Decl) bool {
	for s, n := range d.Template {
		if d.Symbols[s].Name == "b" && n != 4 && n != 8 || d.Symbols[s].Name == "g" && n > 64 {
			return false
		}
	}
	switch d.File {
	case "ggml.metal", "quantize.metal", msl.PlainLoops, "arange.metal":
		return false
	case "copy.metal":
		return d.Args[0].Elem != ir.U32 // codes that lie under strides
	case "layer_norm.metal", "reduce.metal":
		return true
	}
	return !slices.ContainsFunc(d.Args, func(a decl.Arg) bool {
		return (a.Elem == ir.F16 || a.Elem == ir.BF16) && (a.Mode == decl.Write || d.File == "arg_reduce.metal")
	})
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
