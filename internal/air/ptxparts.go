package air

import (
	"fmt"
	"slices"
	"strings"
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
var partsTypes = map[string]declaration{
	partsKnown:    {result: "i1"},
	partsTaken:    {result: "<4 x i32>", params: []string{"float", "float"}},
	partsMultiply: {result: "<4 x float>", params: slices.Repeat([]string{"i32"}, 18)},
}

// inParts reports whether a function is one of these.
func inParts(d declaration) bool { return partsTypes[strings.Trim(d.name, `"`)].result != "" }

// parts says to a module whether the functions mean anything. Where they do not, nothing is left of them.
func (m *module) parts(known bool) error {
	declared := map[string]declaration{}
	for _, d := range m.declares {
		if !inParts(d) {
			continue
		}
		name := strings.Trim(d.name, `"`)
		if t := partsTypes[name]; d.result != t.result || !slices.Equal(d.params, t.params) {
			return fmt.Errorf("%s has another type", name)
		}
		declared[name] = d
	}
	if len(declared) == 0 {
		return nil
	}
	for _, f := range m.funcs {
		for i, l := range f.lines {
			c, d, ok := callOf(l, declared)
			if !ok || c.result == "" {
				continue
			}
			switch {
			case strings.Trim(d.name, `"`) == partsKnown:
				f.lines[i] = fmt.Sprintf("  %s = or i1 %t, false%s", c.result, known, c.dbg)
			case !known:
				f.lines[i] = fmt.Sprintf("  %s = select i1 true, %s zeroinitializer, %[2]s zeroinitializer%s", c.result, d.result, c.dbg)
			}
		}
	}
	m.declares = slices.DeleteFunc(m.declares, func(d declaration) bool {
		return inParts(d) && (!known || strings.Trim(d.name, `"`) == partsKnown)
	})
	return nil
}

// partsAttributes are those of a function of parts.
func partsAttributes(d declaration) string {
	if strings.Trim(d.name, `"`) == partsMultiply {
		return "convergent nounwind willreturn memory(none)"
	}
	return "nounwind willreturn memory(none)"
}

// partsAlone reports an error if a block multiplies parts to which not all threads of a warp come: an mma
// needs them, and a kernel that takes its factors apart has no other way left there.
func partsAlone(b *block, declared map[string]declaration, mask string) error {
	if mask == entryMembers {
		return nil
	}
	for _, l := range b.lines {
		if _, d, ok := callOf(l, declared); ok && strings.Trim(d.name, `"`) == partsMultiply {
			return fmt.Errorf("%s stands where it is not known that all threads of a simdgroup come to", partsMultiply)
		}
	}
	return nil
}

// agreed are the results of votes in which all threads of a warp take part: the same for all of them. A kernel
// that multiplies parts, which all have to come to, may go several ways by them; others have no need.
func (m *members) agreed(declared map[string]declaration) map[string]bool {
	if _, ok := declared[partsMultiply]; !ok {
		return nil
	}
	out := map[string]bool{}
	for b, x := range m.flow.blocks {
		if !m.known[b] || m.name(b) != entryMembers {
			continue
		}
		for _, l := range x.lines {
			if c, d, ok := callOf(l, declared); ok && slices.Contains([]string{"air.simd_any", "air.simd_all"}, strings.Trim(d.name, `"`)) {
				out[c.result] = true
			}
		}
	}
	return out
}

// partsBody writes the body of a function of parts.
func (m *gpuModule) partsBody(d declaration) {
	g := &gpu{text: &m.bodies, module: m}
	if strings.Trim(d.name, `"`) == partsTaken {
		g.line("define internal %s @%s(float %%a0, float %%a1) alwaysinline nounwind {", d.result, d.name)
		scaled, high := g.scaled([2]string{"%a0", "%a1"})
		last := "zeroinitializer"
		for i, r := range g.split(scaled, high) {
			last = g.make("insertelement %s %s, i32 %s, i32 %d", d.result, last, r, i)
		}
		g.line("  ret %s %s\n}", d.result, last)
		return
	}
	(&gpu{module: m}).once(partsSum, func(g *gpu) { g.sum(partsSum, "float", 2, 2, true) })
	var params, args []string
	for i := range d.params {
		params, args = append(params, fmt.Sprintf("i32 %%a%d", i)), append(args, fmt.Sprintf("i32 %%a%d", i))
	}
	g.line("define internal %s @%s(%s) convergent alwaysinline nounwind {", d.result, d.name, strings.Join(params, ", "))
	all := g.make("call %s @%s(%s) #990", sumType(2), partsSum, strings.Join(args, ", "))
	last := "poison"
	for i := range 4 {
		last = g.make("insertelement %s %s, float %s, i32 %d", d.result, last, g.make("extractvalue %s %s, %d", sumType(2), all, i), i)
	}
	g.line("  ret %s %s\n}", d.result, last)
}
