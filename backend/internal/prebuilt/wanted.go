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
			if d.Line != ds[0].Line {
				continue // what only MLX's operations send: who records such a dispatch has its kernel compiled
			}
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
// in groups of 32, matrices have multiples of 32 rows, and what a step computes is f32, save perhaps a cache of f16 or q8_0.
// Everything else is compiled when it is needed: kernels of f16 and bf16 save copies, codes in other widths and groups, which
// MLX's files have, products by experts and with GGML's blocks, quantization, attention with masks, windows or heads of more
// than 128 elements, rotations by a table of frequencies, integers, and slices that begin where memory says.
func chosen(d *decl.Decl) bool {
	for s, n := range d.Template {
		name := d.Symbols[s].Name
		if name == "b" && n != 4 && n != 8 || name == "g" && n != 32 || name == "D" && n > 128 {
			return false
		}
	}
	switch d.File {
	case "ggml.metal", "quantize.metal", msl.PlainLoops, "arange.metal", "rope_freqs.metal", "sdpa_vector_2pass.metal", "steel_attention.metal",
		"integers.metal", "placed.metal":
		return false
	case "copy.metal":
		return d.Args[0].Elem != ir.U32 // codes that lie under strides
	}
	// What a kernel writes as f16 beside f32 goes to a cache, as scales do that are made of f32.
	cached := slices.ContainsFunc(d.Args, func(a decl.Arg) bool {
		return a.Elem == ir.F32 && (a.Mode == decl.Write || d.File == "q8_0_cache.metal" && len(a.Shape) > 0)
	})
	return !strings.Contains(d.Name, "gather_") && !strings.Contains(d.Name, "alN_false") && !slices.ContainsFunc(d.Args, func(a decl.Arg) bool {
		return (a.Elem == ir.F16 || a.Elem == ir.BF16) && (a.Mode == decl.Write && !cached || d.File == "arg_reduce.metal" || d.File == "sample.metal") || a.Name == "window"
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
	for _, c := range d.Constants {
		if c.Type != ir.Bool {
			return nil, fmt.Errorf("%s:%d: kernel %s: the constant %s is a %s: which of its values are compiled beforehand is not known", d.File, d.Line, d.Name, c.Name, c.Type)
		}
	}
	if len(d.Constants) > 10 {
		return nil, fmt.Errorf("%s:%d: kernel %s has %d function constants: too many to compile all their values", d.File, d.Line, d.Name, len(d.Constants))
	}
	for bits := range 1 << len(d.Constants) {
		v := make([]air.ConstantValue, len(d.Constants))
		set := make([]ir.FunctionConstant, len(d.Constants))
		for i, c := range d.Constants {
			v[i] = air.ConstantValue{Index: int(c.Index), Bits: uint64(bits >> i & 1)}
			set[i] = ir.FunctionConstant{Index: c.Index, Name: c.Name, Type: c.Type, Bits: v[i].Bits}
		}
		allowed, err := d.Allows(set)
		if err != nil {
			return nil, err
		}
		if allowed {
			out = append(out, v)
		}
	}
	return out, nil
}
