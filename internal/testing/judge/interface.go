package judge

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// interfaceDifference says how what the host sees of b differs from a, or "" if it does
// not. Aliases are names inside a graph; where they lie shows in what commands touch.
// Argument memory is another way to pass inline arguments.
func interfaceDifference(a, b *ir.Graph) string {
	if d := paramDifference(a, b); d != "" {
		return d
	}
	other := map[string]*ir.Memory{}
	for i := range b.Memories {
		if m := &b.Memories[i]; m.Alias == ir.NoMem && m.Kind != ir.Scratch && m.Kind != ir.Argument {
			other[m.Name] = m
		}
	}
	for i := range a.Memories {
		m := &a.Memories[i]
		if m.Alias != ir.NoMem || m.Kind == ir.Scratch || m.Kind == ir.Argument {
			continue
		}
		n := other[m.Name]
		delete(other, m.Name)
		switch {
		case n == nil:
			return fmt.Sprintf("%s %%%s is gone", m.Kind, m.Name)
		case m.Kind != n.Kind:
			return fmt.Sprintf("%%%s is %s, was %s", m.Name, n.Kind, m.Kind)
		case m.Size != n.Size:
			return fmt.Sprintf("%%%s has %d bytes, had %d", m.Name, n.Size, m.Size)
		case !sameContents(m, n):
			return fmt.Sprintf("%%%s has other initial contents", m.Name)
		case m.DType != n.DType || !slices.Equal(m.Shape, n.Shape):
			return fmt.Sprintf("%%%s is %s%v, was %s%v", m.Name, n.DType, n.Shape, m.DType, m.Shape)
		case m.Storage != n.Storage || m.Align != n.Align:
			return fmt.Sprintf("%%%s is %s aligned to %d, was %s aligned to %d", m.Name, n.Storage, n.Align, m.Storage, m.Align)
		case m.Every != n.Every:
			return fmt.Sprintf("the host reads %%%s at other times", m.Name)
		}
	}
	for i := range b.Memories { // in order, so that the reason is the same every time
		if m := &b.Memories[i]; other[m.Name] == m {
			return fmt.Sprintf("%s %%%s is new", m.Kind, m.Name)
		}
	}
	return ""
}

func paramDifference(a, b *ir.Graph) string {
	if len(a.Params) != len(b.Params) {
		return fmt.Sprintf("%d params, were %d", len(b.Params), len(a.Params))
	}
	for _, p := range a.Params {
		id, ok := b.ParamNamed(p.Name)
		if !ok {
			return fmt.Sprintf("param $%s is gone", p.Name)
		}
		if b.Params[id] != p {
			return fmt.Sprintf("param $%s has another type or bound", p.Name)
		}
	}
	if x, y := constraintTexts(a), constraintTexts(b); !slices.Equal(x, y) && !admitSame(a, b) {
		return fmt.Sprintf("constraints %q, were %q", y, x)
	}
	return ""
}

// admitSame reports whether the constraints of two graphs, whose params have the same names and bounds, admit the same values
// of integer params, of which there must be few: a constraint that others imply changes nothing.
func admitSame(a, b *ir.Graph) bool {
	product := int64(1)
	for _, p := range a.Params {
		if p.Type != ir.F32 {
			if product *= int64(p.Max) - int64(p.Min) + 1; product > 4096 {
				return false
			}
		}
	}
	x, y := make([]uint32, len(a.Params)), make([]uint32, len(b.Params))
	for k := range product {
		for i, p := range a.Params {
			id, _ := b.ParamNamed(p.Name)
			if p.Type != ir.F32 {
				span := int64(p.Max) - int64(p.Min) + 1
				x[i] = uint32(int64(p.Min) + k%span)
				k /= span
			}
			y[id] = x[i]
		}
		if allowed(a, x) != allowed(b, y) {
			return false
		}
	}
	return true
}

// constraintTexts returns the set of constraints, independent of the order of params.
func constraintTexts(g *ir.Graph) []string {
	var out []string
	for _, c := range g.Constraints {
		var ts []string
		for _, t := range c.LHS.Terms() {
			ts = append(ts, fmt.Sprintf("%d*%q", t.Coeff, g.Params[t.Param].Name))
		}
		slices.Sort(ts)
		out = append(out, fmt.Sprintf("%s <= %d", strings.Join(ts, "+"), c.Max))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// mostContents bounds how many bytes sameContents generates for a comparison.
const mostContents = 1 << 20

func sameContents(a, b *ir.Memory) bool {
	x, y := a.Init, b.Init
	if (x.Kind == ir.InitNone) != (y.Kind == ir.InitNone) {
		return false
	}
	if x.Kind == ir.InitBlob && y.Kind == ir.InitBlob {
		return x.Blob.Digest == y.Blob.Digest && x.Blob.Length == y.Blob.Length
	}
	if a.Size <= mostContents {
		p, q := make([]byte, a.Size), make([]byte, b.Size)
		if a.WriteInit(p) == nil && b.WriteInit(q) == nil {
			return bytes.Equal(p, q)
		}
	}
	return x.Kind == y.Kind && x.Pattern == y.Pattern && x.Seed == y.Seed && a.DType == b.DType
}
