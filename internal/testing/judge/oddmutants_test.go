package judge_test

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

// mutate returns a copy of g in which the term of one or two commands was changed as a
// programmer might do, rightly or wrongly. It returns nil if it found nothing to
// change.
func mutate(g *ir.Graph, r *rand.Rand) *ir.Graph {
	out := g.Clone()
	var ds []*ir.Dispatch
	for _, n := range out.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			ds = append(ds, d)
		}
	}
	changed := false
	for range 1 + r.IntN(2) {
		d := ds[r.IntN(len(ds))]
		k := &out.Kernels[d.Kernel]
		switch {
		case k.Library.Kind == ir.Generated:
			changed = mutateTerm(out, d, k.Function, r) || changed
		case strings.HasPrefix(k.Function, "vv_"), strings.HasPrefix(k.Function, "g2_"):
			if r.IntN(2) == 0 && strings.HasPrefix(k.Function, "vv_") {
				changed = replaceByTerm(out, d, r) || changed
				continue
			}
			d.Bindings[0].View, d.Bindings[1].View = d.Bindings[1].View, d.Bindings[0].View
			if len(d.Bindings) == 5 {
				d.Bindings[3].Bytes, d.Bindings[4].Bytes = d.Bindings[4].Bytes, d.Bindings[3].Bytes
			}
			changed = true
		default:
			changed = replaceByTerm(out, d, r) || changed
		}
	}
	if !changed || out.Check() != nil {
		return nil
	}
	return out
}

// near lists terms of builtin kernels, and terms that differ little from them.
var near = map[string][]string{
	"v_Silufloat32float32": {
		"out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])))", "out0[i] = round(f32, in0[i] / (exp(-in0[i]) + 1.0))", "out0[i] = round(f32, in0[i] * (1.0 / (1.0 + exp(-in0[i]))))",
	},
	"v_Sigmoidfloat32float32": {
		"out0[i] = round(f32, select(in0[i] < 0.0, 1.0 / (1.0 + exp(abs(in0[i]))), 1.0 - 1.0 / (1.0 + exp(abs(in0[i])))))", "out0[i] = round(f32, 1.0 / (1.0 + exp(-in0[i])))",
		"out0[i] = round(f32, select(in0[i] >= 0.0, 1.0 - 1.0 / (1.0 + exp(abs(in0[i]))), 1.0 / (1.0 + exp(abs(in0[i])))))",
	},
	"v_Gelufloat32float32": {"out0[i] = round(f32, 0.5 * in0[i] * (tanh((0.044715 * in0[i] * in0[i] + 1.0) * (0.7978846 * in0[i])) + 1.0))"},
	"v_copyfloat32float32": {"out0[i] = in0[i]", "out0[i] = round(f32, in0[i])", "out0[i] = round(f32, in0[i] * 1.0)"},
	"v_copyfloat16float16": {"out0[i] = in0_f16[i]", "out0[i] = round(f16, in0_f16[i])"},
	"vv_Addfloat32":        {"out0[i] = round(f32, in0[i] + in1[i])", "out0[i] = round(f32, in0[i] - -in1[i])"},
	"vv_Multiplyfloat32":   {"out0[i] = round(f32, in0[i] * in1[i])", "out0[i] = round(f32, -in0[i] * -in1[i])"},
	"vv_Addfloat16":        {"out0[i] = round(f16, in0_f16[i] + in1_f16[i])"},
	"vv_Multiplyfloat16":   {"out0[i] = round(f16, in0_f16[i] * in1_f16[i])"},
}

func replaceByTerm(g *ir.Graph, d *ir.Dispatch, r *rand.Rand) bool {
	list := near[g.Kernels[d.Kernel].Function]
	if list == nil {
		return false
	}
	ds, err := msl.DeclarationsOf(&ir.Kernel{Library: ir.Library{Kind: ir.Generated}, Function: list[r.IntN(len(list))]})
	if err != nil {
		panic(err)
	}
	return rebind(g, d, ds[0], func(k int) ir.Binding { return d.Bindings[k] })
}

// rebind gives d the kernel of declaration `to`. Argument k is bound to of(k).
func rebind(g *ir.Graph, d *ir.Dispatch, to *decl.Decl, of func(k int) ir.Binding) bool {
	k := to.Kernel("mutant" + string(rune('a'+len(g.Kernels)%26)) + string(rune('a'+len(g.Kernels)/26)))
	g.Kernels = append(g.Kernels, k)
	var bs []ir.Binding
	for s := range k.Args {
		b := of(s)
		b.Slot = uint8(s)
		bs = append(bs, b)
	}
	d.Kernel, d.Bindings, d.Effects = ir.KernelID(len(g.Kernels)-1), bs, nil
	return true
}

// mutateTerm changes the terms of a generated kernel at one place.
func mutateTerm(g *ir.Graph, d *ir.Dispatch, text string, r *rand.Rand) bool {
	from, err := decl.Elementwise(text)
	if err != nil {
		panic(err)
	}
	var bodies []*term.Expr
	nodes := 0
	count := func(*term.Expr) { nodes++ }
	for i := range from.Results {
		from.Results[i].Body.Walk(count)
	}
	at := r.IntN(nodes)
	for i := range from.Results {
		bodies = append(bodies, rewriteAt(from.Results[i].Body, &at, r))
	}
	flat := strings.HasPrefix(text, "out0[i] =")
	out, names, err := elementwise.Text(flat, bodies...)
	if err != nil || out == text {
		return false
	}
	to, err := decl.Elementwise(out)
	if err != nil || len(to.Results) != len(from.Results) {
		return false
	}
	argOf := func(name string) ir.Binding {
		for i := range from.Args {
			if from.Args[i].Name == name {
				return *d.Binding(from.Args[i].Slot)
			}
		}
		panic(name)
	}
	operands := len(names.Operands)
	return rebind(g, d, to, func(k int) ir.Binding {
		switch {
		case k < operands:
			return argOf(names.Operands[k])
		case k < operands+len(to.Results):
			return *d.Binding(from.Args[from.Results[k-operands].Arg].Slot)
		}
		return argOf(names.Constants[k-operands-len(to.Results)])
	})
}

// rewriteAt copies e and changes its at-th node, in the order of Walk.
func rewriteAt(e *term.Expr, at *int, r *rand.Rand) *term.Expr {
	here := *at == 0
	*at--
	out := *e
	if e.Op == term.Load {
		out.Type = ir.F32
		if strings.HasSuffix(e.Name, "_f16") {
			out.Type = ir.F16
		}
	}
	out.Args = nil
	for _, a := range e.Args {
		out.Args = append(out.Args, rewriteAt(a, at, r))
	}
	if !here || e.Kind == term.Int {
		return &out
	}
	one := &term.Expr{Op: term.Real, Kind: term.Float, Val: 1}
	wrap := func(o term.Op, args ...*term.Expr) *term.Expr {
		return &term.Expr{Op: o, Kind: term.Float, Args: args}
	}
	if e.Kind == term.Bool {
		if !e.Op.Comparison() {
			return &out
		}
		if r.IntN(2) == 0 {
			out.Op = e.Op.Mirrored()
			out.Args[0], out.Args[1] = out.Args[1], out.Args[0]
			return &out
		}
		out.Op = e.Op.Negated()
		return &term.Expr{Op: term.Not, Kind: term.Bool, Args: []*term.Expr{&out}}
	}
	if len(out.Args) == 2 && r.IntN(3) > 0 {
		out.Args[0], out.Args[1] = out.Args[1], out.Args[0]
		return &out
	}
	if e.Op == term.Select && r.IntN(2) == 0 {
		out.Args[1], out.Args[2] = out.Args[2], out.Args[1]
		out.Args[0] = &term.Expr{Op: term.Not, Kind: term.Bool, Args: []*term.Expr{out.Args[0]}}
		return &out
	}
	switch r.IntN(9) {
	case 0:
		return wrap(term.Mul, one, &out)
	case 1:
		return wrap(term.Mul, &out, one)
	case 2:
		return wrap(term.Neg, wrap(term.Neg, &out))
	case 3:
		return wrap(term.Add, &out, &term.Expr{Op: term.Real, Kind: term.Float})
	case 4:
		x := wrap(term.Round, &out)
		x.Type = ir.F16
		return x
	case 5:
		if e.Op == term.Round {
			return out.Args[0]
		}
		return wrap(term.Max, &out, &out)
	case 6:
		ops := []term.Op{term.Min, term.Max, term.Add, term.Mul, term.Sub, term.Div}
		if i := slices.Index(ops, e.Op); i >= 0 {
			out.Op = ops[i^1]
		}
		return &out
	case 7:
		return wrap(term.Select, &term.Expr{Op: term.Eq, Kind: term.Bool, Args: []*term.Expr{&out, &out}}, &out, &out)
	}
	return wrap(term.Div, &out, one)
}
