package irtest

import (
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

func (g *gen) kernels() {
	t, used := g.t, namer{}
	for range rapid.IntRange(0, 3).Draw(t, "kernels") {
		k := ir.Kernel{Name: used.draw(t, "kernel name"), Function: names.Draw(t, "function")}
		k.Library.Kind = rapid.SampledFrom([]ir.LibraryKind{ir.Builtin, ir.SourceFile, ir.Metallib, ir.Generated}).Draw(t, "library")
		if k.Library.Kind == ir.Generated {
			k.Function = rapid.SampledFrom([]string{"out0[i] = round(f32, in0[i] + 1.0)", "no term, but printable", `"quoted" \\ text`}).Draw(t, "term")
		}
		if !k.Library.Declared() {
			k.Library.Path = rapid.SampledFrom([]string{"kernels/a.metal", "mlx.metallib", "sp ace.metal", `"`}).Draw(t, "path")
			k.Library.Digest = digest(t)
		}
		if k.Library.Kind != ir.Generated {
			k.Constants = g.constants()
		}
		k.Args = g.args()
		g.g.Kernels = append(g.g.Kernels, k)
	}
}

func (g *gen) constants() []ir.FunctionConstant {
	t := g.t
	var out []ir.FunctionConstant
	index := -1
	for range rapid.IntRange(0, 3).Draw(t, "function constants") {
		index += 1 + int(g.upTo(300, "gap"))
		c := ir.FunctionConstant{Index: uint16(index), Type: rapid.SampledFrom(allTypes[:12]).Draw(t, "constant type")}
		c.Bits = rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 1)).Draw(t, "bits")
		if s := c.Type.Size(); s < 8 {
			c.Bits &= 1<<(8*s) - 1
		}
		if g.bool("named") {
			c.Name = names.Draw(t, "constant name")
		}
		out = append(out, c)
	}
	return out
}

func (g *gen) args() []ir.Arg {
	t, used := g.t, namer{}
	var out []ir.Arg
	slot := -1
	for range rapid.IntRange(0, 6).Draw(t, "buffer arguments") {
		slot += 1 + int(g.upTo(3, "gap"))
		a := ir.Arg{Slot: uint8(slot), Name: used.draw(t, "argument name"), Type: rapid.SampledFrom(allTypes).Draw(t, "argument type")}
		if g.bool("index type") {
			a.Type = rapid.SampledFrom([]ir.DType{ir.U32, ir.I32, ir.U64, ir.I64, ir.F32}).Draw(t, "scalar type")
		}
		if g.bool("constant argument") {
			a.Kind = ir.ConstantArg
			a.Count = rapid.SampledFrom([]int32{0, 1, 1, 1, 2, 5}).Draw(t, "count")
			if g.chance(8, "odd access") {
				a.Access = ir.ReadWriteArg
			}
		} else {
			a.Access = rapid.SampledFrom([]ir.ArgAccess{ir.ReadArg, ir.WriteArg, ir.ReadWriteArg}).Draw(t, "access")
			a.Count = rapid.SampledFrom([]int32{0, 0, 0, 1, 1 << 30}).Draw(t, "count")
		}
		out = append(out, a)
	}
	slot = -1
	for range rapid.IntRange(0, 2).Draw(t, "threadgroup arguments") {
		slot += 1 + int(g.upTo(3, "gap"))
		a := ir.Arg{Slot: uint8(slot), Name: used.draw(t, "argument name"), Kind: ir.ThreadgroupArg, Type: rapid.SampledFrom(allTypes).Draw(t, "argument type")}
		a.Count = rapid.SampledFrom([]int32{0, 0, 1, 32}).Draw(t, "count")
		out = append(out, a)
	}
	return out
}
