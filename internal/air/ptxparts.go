package air

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// A kernel may take factors in f32 apart itself, once for all simdgroups of a threadgroup (docs/kernels.md,
// "Factors in parts"). It asks whether the three functions mean anything, and has another way where not: they
// do on GPUs where tensor cores make products of f32 of such parts, and there in that order, so that sums are
// those of simdgroup matrices, bit for bit.
const (
	partsKnown    = "air.simdgroup_parts_known"
	partsTaken    = "air.simdgroup_parts_of.f32"
	partsMultiply = "air.simdgroup_parts_multiply.f32"
)

const (
	partsSum     = "mlxc.sum.parts" // the function that multiplies
	partsThreads = 384              // of a multiprocessor: each has 168 registers, which a tile of ours needs
)

// partsTypes are the types of these functions.
var partsTypes = map[string]llvm.Declaration{
	partsKnown:    {Result: "i1"},
	partsTaken:    {Result: "<4 x i32>", Params: []string{"float", "float"}},
	partsMultiply: {Result: "<4 x float>", Params: slices.Repeat([]string{"i32"}, 18)},
}

// inParts reports whether a function is one of these.
func inParts(d llvm.Declaration) bool { return partsTypes[strings.Trim(d.Name, `"`)].Result != "" }

// parts says to a module whether the functions mean anything. Where they do not, nothing is left of them.
func (m *module) parts(known bool) error {
	declared := map[string]llvm.Declaration{}
	for _, d := range m.Declares {
		if !inParts(d) {
			continue
		}
		name := strings.Trim(d.Name, `"`)
		if t := partsTypes[name]; d.Result != t.Result || !slices.Equal(d.Params, t.Params) {
			return fmt.Errorf("%s has another type", name)
		}
		declared[name] = d
	}
	if len(declared) == 0 {
		return nil
	}
	for _, f := range m.Funcs {
		for i, l := range f.Lines {
			c, d, ok := llvm.CallOf(l, declared)
			if !ok || c.Result == "" {
				continue
			}
			switch {
			case strings.Trim(d.Name, `"`) == partsKnown:
				f.Lines[i] = fmt.Sprintf("  %s = or i1 %t, false%s", c.Result, known, c.Place)
			case !known:
				f.Lines[i] = fmt.Sprintf("  %s = select i1 true, %s zeroinitializer, %[2]s zeroinitializer%s", c.Result, d.Result, c.Place)
			}
		}
	}
	m.Declares = slices.DeleteFunc(m.Declares, func(d llvm.Declaration) bool {
		return inParts(d) && (!known || strings.Trim(d.Name, `"`) == partsKnown)
	})
	return nil
}

// partsAttributes are those of a function of parts.
func partsAttributes(d llvm.Declaration) string {
	if strings.Trim(d.Name, `"`) == partsMultiply {
		return "convergent nounwind willreturn memory(none)"
	}
	return "nounwind willreturn memory(none)"
}

// partsAlone reports an error if a block multiplies parts to which not all threads of a warp come: an mma
// needs them, and a kernel that takes its factors apart has no other way left there.
func partsAlone(b *llvm.Block, declared map[string]llvm.Declaration, mask string) error {
	if mask == entryMembers {
		return nil
	}
	for _, l := range b.Lines {
		if _, d, ok := llvm.CallOf(l, declared); ok && strings.Trim(d.Name, `"`) == partsMultiply {
			return fmt.Errorf("%s stands where it is not known that all threads of a simdgroup come to", partsMultiply)
		}
	}
	return nil
}

// agreed are the results of votes in which all threads of a warp take part: the same for all of them. A kernel
// that multiplies parts, which all have to come to, may go several ways by them; others have no need.
func (m *members) agreed(declared map[string]llvm.Declaration) map[string]bool {
	if _, ok := declared[partsMultiply]; !ok {
		return nil
	}
	out := map[string]bool{}
	for b, x := range m.flow.Blocks {
		if !m.known[b] || m.name(b) != entryMembers {
			continue
		}
		for _, l := range x.Lines {
			if c, d, ok := llvm.CallOf(l, declared); ok && slices.Contains([]string{"air.simd_any", "air.simd_all"}, strings.Trim(d.Name, `"`)) {
				out[c.Result] = true
			}
		}
	}
	return out
}

// partsBody writes the body of a function of parts.
func (m *gpuModule) partsBody(d llvm.Declaration) {
	g := &gpu{text: &m.bodies, module: m}
	if strings.Trim(d.Name, `"`) == partsTaken {
		g.line("define internal %s @%s(float %%a0, float %%a1) alwaysinline nounwind {", d.Result, d.Name)
		scaled, high := g.scaled([2]string{"%a0", "%a1"})
		last := "zeroinitializer"
		for i, r := range g.split(scaled, high) {
			last = g.make("insertelement %s %s, i32 %s, i32 %d", d.Result, last, r, i)
		}
		g.line("  ret %s %s\n}", d.Result, last)
		return
	}
	(&gpu{module: m}).once(partsSum, func(g *gpu) { g.sum(partsSum, "float", 2, 2, true) })
	var params, args []string
	for i := range d.Params {
		params, args = append(params, fmt.Sprintf("i32 %%a%d", i)), append(args, fmt.Sprintf("i32 %%a%d", i))
	}
	g.line("define internal %s @%s(%s) convergent alwaysinline nounwind {", d.Result, d.Name, strings.Join(params, ", "))
	all := g.make("call %s @%s(%s) #990", sumType(2), partsSum, strings.Join(args, ", "))
	last := "poison"
	for i := range 4 {
		last = g.make("insertelement %s %s, float %s, i32 %d", d.Result, last, g.make("extractvalue %s %s, %d", sumType(2), all, i), i)
	}
	g.line("  ret %s %s\n}", d.Result, last)
}
