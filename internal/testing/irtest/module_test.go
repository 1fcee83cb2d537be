package irtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

func TestEveryModuleIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := irtest.Module(t).Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// A generator that lost a feature would leave every property test that uses it
// green: count what it draws.
func TestEveryFeatureIsDrawn(t *testing.T) {
	seen := map[string]int{}
	modules := rapid.Custom(irtest.Module)
	for seed := range 1000 {
		count(modules.Example(seed), func(format string, args ...any) { seen[fmt.Sprintf(format, args...)]++ })
	}
	want := []string{
		"several graphs", "shared state", "data embedded", "data external",
		"param u32", "param f32", "constraint",
		"kind weight", "kind input", "kind output", "kind state", "kind scratch", "kind argument",
		"storage shared", "storage private", "alignment", "alias", "alias of alias", "shape", "type without shape",
		"library generated",
		"contents none", "contents embedded", "contents external", "contents fill", "contents random", "contents values", "value bytes", "value scalar",
		"library builtin", "library source", "library metallib", "function constant", "named function constant",
		"argument device", "argument constant", "argument threadgroup", "argument array",
		"bind view", "bind affine view", "bind bytes", "bind param", "bind f32 param", "bind constant expression", "bind inline device memory", "unbound argument",
		"threadgroup memory", "grid threadgroups", "grid threads", "affine grid", "divided grid",
		"effects nil", "effects partial", "effects complete", "effects empty", "strided", "must", "may", "atomic",
		"op", "label", "from", "copy", "fill", "carry to input", "carry to state", "advance", "every", "grid in memory", "offset in memory", "barrier", "commit none", "commit fence", "commit event", "group", "nested group",
	}
	for _, w := range want {
		require.NotZero(t, seen[w], "never drawn: %s", w)
		delete(seen, w)
	}
	require.Empty(t, seen, "drawn, but missing from the list above")
}

func count(m *ir.Module, see func(string, ...any)) {
	if len(m.Graphs) > 1 {
		see("several graphs")
	}
	place := func(b *ir.Blob) string {
		if b.Path == "" {
			return "embedded"
		}
		return "external"
	}
	for _, d := range m.Data {
		see("data %s", place(d.Blob))
	}
	states := map[string]bool{}
	for _, g := range m.Graphs {
		for _, p := range g.Params {
			see("param %s", p.Type)
			if p.Advance != 0 {
				see("advance")
			}
		}
		for range g.Constraints {
			see("constraint")
		}
		for _, mem := range g.Memories {
			see("kind %s", mem.Kind)
			see("storage %s", mem.Storage)
			if mem.Every {
				see("every")
			}
			if mem.Align > 0 {
				see("alignment")
			}
			if mem.Kind == ir.State && mem.Alias == ir.NoMem {
				if states[mem.Name] {
					see("shared state")
				}
				states[mem.Name] = true
			}
			if mem.Alias != ir.NoMem {
				see("alias")
				if g.Memories[mem.Alias].Alias != ir.NoMem {
					see("alias of alias")
				}
			}
			if mem.Shape != nil {
				see("shape")
			} else if mem.DType != ir.Invalid {
				see("type without shape")
			}
			switch mem.Init.Kind {
			case ir.InitNone:
				see("contents none")
			case ir.InitFill:
				see("contents fill")
			case ir.InitRandom:
				see("contents random")
			case ir.InitBlob:
				see("contents %s", place(mem.Init.Blob))
			case ir.InitValues:
				see("contents values")
				for _, v := range mem.Init.Values {
					if v.Bytes != nil {
						see("value bytes")
					} else {
						see("value scalar")
					}
				}
			}
		}
		for _, k := range g.Kernels {
			see("library %s", k.Library.Kind)
			for _, c := range k.Constants {
				see("function constant")
				if c.Name != "" {
					see("named function constant")
				}
			}
			for _, a := range k.Args {
				see("argument %s", a.Kind)
				if a.Kind == ir.ConstantArg && a.Count > 1 {
					see("argument array")
				}
			}
		}
		open := 0
		for _, n := range g.Nodes {
			switch n := n.(type) {
			case *ir.Dispatch:
				countDispatch(g, n, see)
			case *ir.Copy:
				see("copy")
			case *ir.Fill:
				see("fill")
			case *ir.Carry:
				see("carry to %s", g.Memories[n.Dst.Mem].Kind)
			case *ir.Barrier:
				see("barrier")
			case *ir.Commit:
				see("commit %s", n.Order)
			case *ir.GroupBegin:
				see("group")
				if open++; open > 1 {
					see("nested group")
				}
			case *ir.GroupEnd:
				open--
			}
		}
	}
}

func countDispatch(g *ir.Graph, d *ir.Dispatch, see func(string, ...any)) {
	if len(d.Bindings) < len(slices.DeleteFunc(slices.Clone(g.Kernels[d.Kernel].Args), func(a ir.Arg) bool { return a.Kind == ir.ThreadgroupArg })) {
		see("unbound argument")
	}
	for _, b := range d.Bindings {
		switch b.Kind {
		case ir.BindView:
			see("bind view")
			if !b.View.Off.IsConst() && !b.View.Len.IsConst() {
				see("bind affine view")
			}
		case ir.BindBytes:
			see("bind bytes")
			if a, _ := g.Kernels[d.Kernel].Arg(b.Slot); a.Kind == ir.DeviceArg {
				see("bind inline device memory")
			}
		case ir.BindScalar:
			switch {
			case b.Expr.IsConst():
				see("bind constant expression")
			case b.Type == ir.F32:
				see("bind f32 param")
			default:
				see("bind param")
			}
		}
	}
	if d.ThreadgroupMemory != nil {
		see("threadgroup memory")
	}
	see("grid %s", d.GridKind)
	if d.Counts() != nil {
		see("grid in memory")
	}
	if d.Indirect != nil && len(d.Indirect.Offsets) > 0 {
		see("offset in memory")
	}
	for _, e := range d.Grid {
		if !e.IsConst() {
			see("affine grid")
		}
		if e.Div > 1 {
			see("divided grid")
		}
	}
	if d.Op != "" {
		see("op")
	}
	if d.Label != "" {
		see("label")
	}
	if d.From != nil {
		see("from")
	}
	switch e := d.Effects; {
	case e == nil:
		see("effects nil")
	default:
		if e.Complete {
			see("effects complete")
		} else {
			see("effects partial")
		}
		if len(e.Reads)+len(e.Writes) == 0 {
			see("effects empty")
		}
		for _, r := range e.Reads {
			if len(r.Dims) > 0 {
				see("strided")
			}
		}
		for _, w := range e.Writes {
			if w.Must {
				see("must")
			} else {
				see("may")
			}
			if w.Atomic {
				see("atomic")
			}
		}
	}
}
