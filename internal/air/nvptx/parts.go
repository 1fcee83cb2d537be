package nvptx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

const (
	partsSum     = "mlxc.sum.parts" // the function that multiplies
	partsThreads = 384              // of a multiprocessor: each has 168 registers, which a tile of ours needs
)

// partsAttributes are those of a function of parts.
func partsAttributes(d llvm.Declaration) string {
	if strings.Trim(d.Name, `"`) == air.PartsMultiply {
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
		if _, d, ok := llvm.CallOf(l, declared); ok && strings.Trim(d.Name, `"`) == air.PartsMultiply {
			return fmt.Errorf("%s stands where it is not known that all threads of a simdgroup come to", air.PartsMultiply)
		}
	}
	return nil
}

// agreed are the results of votes in which all threads of a warp take part: the same for all of them. A kernel
// that multiplies parts, which all have to come to, may go several ways by them; others have no need.
func (m *members) agreed(declared map[string]llvm.Declaration) map[string]bool {
	if _, ok := declared[air.PartsMultiply]; !ok {
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
	if strings.Trim(d.Name, `"`) == air.PartsTaken {
		g.Line("define internal %s @%s(float %%a0, float %%a1) alwaysinline nounwind {", d.Result, d.Name)
		scaled, high := g.scaled([2]string{"%a0", "%a1"})
		last := "zeroinitializer"
		for i, r := range g.split(scaled, high) {
			last = g.make("insertelement %s %s, i32 %s, i32 %d", d.Result, last, r, i)
		}
		g.Line("  ret %s %s\n}", d.Result, last)
		return
	}
	(&gpu{module: m}).once(partsSum, func(g *gpu) { g.sum(partsSum, "float", 2, 2, true) })
	var params, args []string
	for i := range d.Params {
		params, args = append(params, fmt.Sprintf("i32 %%a%d", i)), append(args, fmt.Sprintf("i32 %%a%d", i))
	}
	g.Line("define internal %s @%s(%s) convergent alwaysinline nounwind {", d.Result, d.Name, strings.Join(params, ", "))
	all := g.make("call %s @%s(%s) #990", sumType(2), partsSum, strings.Join(args, ", "))
	last := "poison"
	for i := range 4 {
		last = g.make("insertelement %s %s, float %s, i32 %d", d.Result, last, g.make("extractvalue %s %s, %d", sumType(2), all, i), i)
	}
	g.Line("  ret %s %s\n}", d.Result, last)
}
