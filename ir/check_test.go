package ir_test

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// sound returns a valid module that has one of everything; each case below
// breaks one thing in it.
func sound() *ir.Module {
	b := ir.NewBuilder("g")
	pos := b.Param("pos", 0, 2047)
	n := b.Param("n", 1, 512)
	temp := b.ParamF32("t", 0, 1)
	b.Require(ir.Linear(0, ir.Term{pos, 1}, ir.Term{n, 1}), 2048)
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 64, Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(make([]byte, 64))}}) // %0
	b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 64})                                                                             // %1
	kv := b.Memory(ir.Memory{Name: "kv", Kind: ir.State, Size: 2048 * 256})                                                              // %2
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 4096, DType: ir.F32, Shape: []int64{32, 32}})                             // %3
	b.Alias("tmp", s, 1024, 1024)                                                                                                        // %4
	k := b.Kernel(ir.Kernel{Name: "k", Function: "fn",
		Constants: []ir.FunctionConstant{{Index: 1, Type: ir.Bool, Bits: 1}, {Index: 2, Name: "c", Type: ir.F32}},
		Args: []ir.Arg{
			{Slot: 0, Name: "a", Type: ir.F32},
			{Slot: 1, Name: "out", Type: ir.F32, Access: ir.WriteArg},
			{Slot: 2, Name: "n", Kind: ir.ConstantArg, Type: ir.U32, Count: 1},
			{Slot: 3, Name: "t", Kind: ir.ConstantArg, Type: ir.F32, Count: 1},
			{Slot: 4, Name: "dims", Kind: ir.ConstantArg, Type: ir.I32, Count: 3},
			{Slot: 5, Name: "i", Kind: ir.ConstantArg, Type: ir.I32, Count: 1},
			{Slot: 6, Name: "h", Kind: ir.ConstantArg, Type: ir.F16, Count: 1},
			{Slot: 0, Name: "tg", Kind: ir.ThreadgroupArg, Type: ir.F32},
		}})
	row := ir.View{Mem: kv, Off: ir.Linear(0, ir.Term{pos, 256}), Len: ir.Linear(0, ir.Term{n, 256})}
	b.Dispatch(ir.Dispatch{ // node 0
		Kernel: k,
		Bindings: []ir.Binding{
			ir.BufferArg(0, ir.ViewOf(w, 0, 64)), ir.BufferArg(1, row), ir.ScalarArg(2, ir.U32, ir.Linear(0, ir.Term{n, 1})),
			ir.ScalarArg(3, ir.F32, ir.Linear(0, ir.Term{temp, 1})), ir.BytesArg(4, make([]byte, 12)),
		},
		ThreadgroupMemory: []ir.ThreadgroupMemory{{Slot: 0, Bytes: 64}},
		Grid:              [3]ir.Extent{{Num: ir.Linear(0, ir.Term{n, 1}), Div: 32}, ir.Ext(1), ir.Ext(1)},
		Threadgroup:       [3]uint32{32, 1, 1},
		Effects: &ir.Effects{Complete: true, Reads: []ir.Region{ir.ViewOf(w, 0, 64).Contiguous()},
			Writes: []ir.Write{{Region: ir.Region{Mem: kv, Off: row.Off, Run: ir.Const(128), Dims: []ir.Dim{{ir.Linear(0, ir.Term{n, 1}), 256}}}, Must: true}}},
	})
	b.Group("group")                                             // node 1
	b.Copy(ir.ViewOf(s, 0, 1024), ir.ViewOf(s, 1024, 1024), "c") // node 2
	b.EndGroup()                                                 // node 3
	b.Barrier()                                                  // node 4
	b.Fill(ir.ViewOf(s, 0, 64), 0, "f")                          // node 5
	b.Commit(ir.OrderFence, "")                                  // node 6
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	return &ir.Module{Graphs: []*ir.Graph{g}, Data: []ir.Data{{Name: "d", Blob: ir.NewBlob(nil)}}}
}

type breakage struct {
	name   string
	break_ func(m *ir.Module, g *ir.Graph, d *ir.Dispatch)
	want   string
}

const (
	long     = 5000
	noParam  = ir.ParamID(9)
	f32Param = ir.ParamID(2)
)

var breakages = []breakage{
	{"no graph", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { m.Graphs = nil }, "module: has no graph"},
	{"two graphs of one name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { m.Graphs = append(m.Graphs, g) }, "graph g: another graph has this name (rename one)"},
	{"state of two sizes", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		m.Graphs = append(m.Graphs, &ir.Graph{Name: "h", Memories: []ir.Memory{{Name: "kv", Kind: ir.State, Size: 8, Alias: ir.NoMem}}})
	}, "graph h: %kv: state has 8 bytes here and 524288 bytes in another graph (states of one name are one memory: give them one size)"},
	{"state of two contents", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		m.Graphs = append(m.Graphs, &ir.Graph{Name: "h", Memories: []ir.Memory{{Name: "kv", Kind: ir.State, Size: 524288, Alias: ir.NoMem, Init: ir.FillU32(7)}}})
	}, "graph h: %kv: state has other initial contents in another graph (states of one name are one memory: give them the same contents)"},
	{"graph name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Name = "" }, `graph "": name is empty, too long or not printable`},

	{"data name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { m.Data[0].Name = "a\n" }, `data "a\n": name is empty, too long or not printable`},
	{"data of one name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { m.Data = append(m.Data, m.Data[0]) }, "data d: another data blob has this name (rename one)"},
	{"data without contents", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { m.Data[0].Blob = nil }, "data d: has no contents"},
	{"data of negative length", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		m.Data[0].Blob = ir.ExternalBlob("f", 4, -1, ir.Digest{})
	}, `data d: contents are -1 bytes from byte 4 of "f" on`},

	{"param count", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params = make([]ir.Param, 65) }, "graph g: has 65 params and 1 constraints (at most 64 and 64)"},
	{"constraint count", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Constraints = make([]ir.Constraint, 65) }, "graph g: has 3 params and 65 constraints (at most 64 and 64)"},
	{"param name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[0].Name = "\xff" }, `graph g: param $"\xff": name is empty, too long or not printable`},
	{"params of one name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[1].Name = "pos" }, "graph g: param $pos: another param has this name (rename one)"},
	{"param type", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[0].Type = ir.I32 }, "graph g: param $pos: type is i32 (params are u32 or f32)\ngraph g: constraint 0: names a param that does not exist or is f32"},
	{"param bound empty", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[2].Min = 2 }, "graph g: param $t: bound [2, 1] is empty"},
	{"param bound NaN", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[2].Min = math.NaN() }, "graph g: param $t: bound [NaN, 1] is empty"},
	{"param bound fraction", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[0].Min = 0.5 }, "graph g: param $pos: bound [0.5, 2047] is no range of u32"},
	{"param bound negative", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[0].Min = -1 }, "graph g: param $pos: bound [-1, 2047] is no range of u32"},
	{"param bound too large", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[0].Max = 1 << 32 }, "graph g: param $pos: bound [0, 4.294967296e+09] is no range of u32"},
	{"param bound f64", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[2].Max = 0.1 }, "graph g: param $t: bound [0, 0.1] is not made of f32 values"},
	{"constraint constant", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Constraints[0].LHS = ir.Const(0) }, "graph g: constraint 0: left side must name params and have no constant"},
	{"constraint with a constant", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Constraints[0].LHS = g.Constraints[0].LHS.AddConst(1)
	}, "graph g: constraint 0: left side must name params and have no constant"},
	{"constraint of f32", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Constraints[0].LHS = ir.Linear(0, ir.Term{f32Param, 1})
	}, "graph g: constraint 0: names a param that does not exist or is f32"},
	{"constraint too large", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Constraints[0].LHS = ir.Linear(0, ir.Term{0, math.MaxInt64})
	}, "graph g: constraint 0: left side leaves 64 bits (use smaller bounds)"},
	{"constraint impossible", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Constraints[0].Max = 0 }, "graph g: constraint 0: no value of the params satisfies $pos + $n <= 0"},

	{"memory name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[0].Name = strings.Repeat("x", 256) }, "graph g: %" + strings.Repeat("x", 256) + ": name is empty, too long or not printable"},
	{"memories of one name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Name = "w" }, "graph g: %w: another memory has this name (rename one)"},
	{"f32 param advances", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Params[0].Type, g.Params[0].Advance, g.Constraints = ir.F32, 1, nil
	}, "graph g: param $pos: is of type f32 and advances (u32 params advance)"},
	{"advance too large", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Params[0].Advance = 1 << 32 }, "graph g: param $pos: advances by 4294967296, out of any u32"},
	{"every of an input", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Every = true }, "graph g: %x: is no output and keeps every replay's contents (only outputs are kept of every replay of a submission)"},
	{"memory size", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Size = 0 }, "graph g: %x: size of 0 bytes is outside [1, 140737488355328]"},
	{"memory size large", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Size = 1<<47 + 1 }, "graph g: %x: size of 140737488355329 bytes is outside [1, 140737488355328]"},
	{"alignment", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Align = 48 }, "graph g: %x: alignment 48 is no power of two up to 1 MiB"},
	{"alignment large", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Align = 1 << 21 }, "graph g: %x: alignment 2097152 is no power of two up to 1 MiB"},
	{"alignment negative", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Align = math.MinInt64 }, "graph g: %x: alignment -9223372036854775808 is no power of two up to 1 MiB"},
	{"memory kind", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Kind = 6 }, "graph g: %x: kind, storage or initial contents are of no known sort"},
	{"storage", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Storage = 2 }, "graph g: %x: kind, storage or initial contents are of no known sort"},
	{"contents sort", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[0].Init.Kind = 5 }, "graph g: %w: kind, storage or initial contents are of no known sort"},
	{"shape without type", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[3].DType = ir.Invalid }, "graph g: %s: has a shape but no element type"},
	{"shape zero", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[3].Shape = []int64{4, 0} }, "graph g: %s: shape [4 0] is not positive or too large"},
	{"shape overflows", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[3].Shape = []int64{1 << 32, 1 << 32} }, "graph g: %s: shape [4294967296 4294967296] is not positive or too large"},
	{"shape does not fit", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[3].Shape[0] = 33 }, "graph g: %s: shape f32[33 32] needs 4224 bytes, memory has 4096"},
	{"packed shape does not fit", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Memories[3].DType, g.Memories[3].Shape = ir.U3, []int64{10923}
	}, "graph g: %s: shape u3[10923] needs 4097 bytes, memory has 4096"},
	{"contents of an alias", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[4].Init = ir.FillU32(0) }, "graph g: %tmp: an alias has no initial contents of its own (give them to the memory that it lies in)"},
	{"blob missing", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[0].Init.Blob = nil }, "graph g: %w: blob contents without a blob, or a blob without blob contents"},
	{"blob beside a fill", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[0].Init.Kind = ir.InitFill }, "graph g: %w: blob contents without a blob, or a blob without blob contents"},
	{"contents size", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Memories[0].Init.Blob = ir.NewBlob(make([]byte, 63))
	}, "graph g: %w: initial contents have 63 bytes, memory has 64"},
	{"contents offset", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Memories[0].Init.Blob = ir.ExternalBlob("f", -1, 64, ir.Digest{})
	}, `graph g: %w: initial contents begin at byte -1 of "f"`},
	{"weight without contents", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[0].Init = ir.Init{} }, "graph g: %w: a weight needs initial contents (give it a blob, a file, a fill or a random seed)"},
	{"contents of scratch", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[3].Init = ir.FillU32(1) }, "graph g: %s: scratch memory has initial contents (only weights and states keep bytes between replays)"},
	{"values of another sort", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[2].Init.Values = []ir.Value{} }, "graph g: %kv: value contents without values, or values without value contents"},
	{"argument memory without values", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Kind = ir.Argument }, "graph g: %x: argument memory has values, and nothing else does (list what the replay writes)"},
	{"values of an input", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[1].Init = values() }, "graph g: %x: argument memory has values, and nothing else does (list what the replay writes)"},
	{"private argument memory", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		arguments(g)
		g.Memories[1].Storage = ir.Private
	}, "graph g: %x: argument memory is private (the host writes it: make it shared)"},
	{"type of a value", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { arguments(g, ir.Value{Type: 99, Bytes: []byte{1}}) }, "graph g: %x: value 0 is of no known type"},
	{"empty value", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { arguments(g, ir.Value{Bytes: []byte{}}) },
		"graph g: %x: value 0, 0 bytes at 0, is empty, overlaps the one before or leaves the memory (64 bytes) (values stand in ascending order, apart)"},
	{"values overlap", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		arguments(g, ir.Value{Bytes: []byte{1, 2}}, ir.Value{Off: 1, Bytes: []byte{1}})
	}, "graph g: %x: value 1, 1 bytes at 1, is empty, overlaps the one before or leaves the memory (64 bytes) (values stand in ascending order, apart)"},
	{"value past the end", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		arguments(g, ir.Value{Off: 61, Type: ir.U32, Expr: ir.Const(1)})
	}, "graph g: %x: value 0, 4 bytes at 61, is empty, overlaps the one before or leaves the memory (64 bytes) (values stand in ascending order, apart)"},
	{"value of a type that no expression has", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		arguments(g, ir.Value{Type: ir.U16, Expr: ir.Const(1)})
	}, "graph g: %x: value 0 is a param expression of type u16 (expressions are i32, u32, i64, u64 or f32)"},
	{"value out of range", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		arguments(g, ir.Value{Type: ir.U32, Expr: ir.Linear(-1, ir.Term{Param: 0, Coeff: 1})})
	}, "graph g: %x: value 0 = $pos - 1 can be -1…2046, which is no u32 (bound the params or add a constraint)"},
	{"write to argument memory", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		arguments(g)
		d.Bindings[1].View = ir.ViewOf(1, 0, 64)
		d.Effects = nil
	}, "graph g: #0 fn: binding out %x[0:64] writes argument memory (weights and inputs are read-only to a graph)"},
	{"alias offset of a root", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[3].AliasOff = 4 }, "graph g: %s: has an alias offset but is no alias"},
	{"alias of itself", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[4].Alias = 4 }, "graph g: %tmp: aliases a memory that is not declared before it (declare the memory that holds it first)"},
	{"alias of nothing", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[4].Alias = -2 }, "graph g: %tmp: aliases a memory that is not declared before it (declare the memory that holds it first)"},
	{"alias kind", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[4].Kind = ir.Output }, "graph g: %tmp: is shared output but lies in shared scratch memory (an alias takes its parent's kind)"},
	{"alias storage", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[4].Storage = ir.Private }, "graph g: %tmp: is private scratch but lies in shared scratch memory (an alias takes its parent's kind)"},
	{"alias end", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[4].AliasOff = 3073 }, "graph g: %tmp: alias [3073:4097] ends past %s (4096 bytes) (shorten the alias or grow the memory)"},
	{"alias begin", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Memories[4].AliasOff = -1 }, "graph g: %tmp: alias [-1:1023] ends past %s (4096 bytes) (shorten the alias or grow the memory)"},

	{"kernel name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Name = "" }, `graph g: kernel @"": name or function is empty, too long or not printable`},
	{"function name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Function = "" }, `graph g: kernel @k: name or function is empty, too long or not printable`},
	{"kernels of one name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels = append(g.Kernels, g.Kernels[0]) }, "graph g: kernel @k: another kernel has this name (rename one)"},
	{"library sort", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Library = ir.Library{Kind: 4, Path: "f"} }, "graph g: kernel @k: library is of no known sort, or has no path, or is builtin or generated and has one"},
	{"library path", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Library.Kind = ir.Metallib }, "graph g: kernel @k: library is of no known sort, or has no path, or is builtin or generated and has one"},
	{"library builtin with path", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Library.Path = "f" }, "graph g: kernel @k: library is of no known sort, or has no path, or is builtin or generated and has one"},
	{"library builtin with digest", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Library.Digest[0] = 1 }, "graph g: kernel @k: library is builtin and has a digest"},
	{"library path", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Kernels[0].Library = ir.Library{Kind: ir.Metallib, Path: "\xff"}
	}, "graph g: kernel @k: path of its library is no UTF-8"},
	{"library generated with digest", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Kernels[0].Library, g.Kernels[0].Constants = ir.Library{Kind: ir.Generated, Digest: ir.Digest{1}}, nil
	}, "graph g: kernel @k: library is generated and has a digest"},
	{"generated with constants", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Kernels[0].Library.Kind = ir.Generated
	}, "graph g: kernel @k: kernel is generated and has function constants (write them into its term)"},
	{"generated term", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Kernels[0].Library.Kind, g.Kernels[0].Constants, g.Kernels[0].Function = ir.Generated, nil, "é"
	}, "graph g: kernel @k: the term of a generated kernel is printable ASCII of 1 to 4096 bytes"},
	{"constants order", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Constants[0].Index = 2 }, "graph g: kernel @k: function constants do not stand in ascending order of their indices"},
	{"constant bits", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Constants[0].Bits = 256 }, "graph g: kernel @k: function constant 1: bits 0x100 are no bool"},
	{"constant packed", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Constants[0].Type = ir.U4 }, "graph g: kernel @k: function constant 1: bits 0x1 are no u4"},
	{"constant name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Constants[1].Name = "\t" }, "graph g: kernel @k: function constant 2 has an unprintable name"},
	{"argument kind", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Args[6].Kind = 3 }, "graph g: kernel @k: argument 6 is of no known sort"},
	{"argument access", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Args[6].Access = 3 }, "graph g: kernel @k: argument 6 is of no known sort"},
	{"argument type", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Args[6].Type = ir.Invalid }, "graph g: kernel @k: argument 6 is of no known sort"},
	{"argument count", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Args[6].Count = -1 }, "graph g: kernel @k: argument 6 is of no known sort"},
	{"argument slot", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Args[6].Slot = 31 }, "graph g: kernel @k: argument slot 31 is past Metal's last one, 30"},
	{"argument name", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Args[6].Name = "a" }, "graph g: kernel @k: argument 6 has no name of its own"},
	{"argument order", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Args[6].Slot = 5 }, "graph g: kernel @k: argument 5 is out of order (buffers ascending, then threadgroup arguments ascending)"},
	{"threadgroup argument before a buffer", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		a := g.Kernels[0].Args
		a[6], a[7] = a[7], a[6]
	}, "graph g: kernel @k: argument 6 is out of order (buffers ascending, then threadgroup arguments ascending)"},

	{"id", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[2].(*ir.Copy).ID = 0 }, "graph g: #0 copy: another command has this id (ids are unique in a graph)"},
	{"copy lengths", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[2].(*ir.Copy).Dst.Len = ir.Const(4) }, "graph g: #1 copy: copies 1024 bytes to 4 bytes"},
	{"copy overlap", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[2].(*ir.Copy).Src.Off = ir.Const(1023) }, "graph g: #1 copy: source %s[1023:2047] and destination %s[0:1024] overlap (copy by way of another memory)"},
	{"copy overlap by alias", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		c := g.Nodes[2].(*ir.Copy)
		c.Src, c.Dst = ir.ViewOf(4, 0, 1024), ir.ViewOf(3, 2047, 1024)
	}, "graph g: #1 copy: source %tmp[0:1024] and destination %s[2047:3071] overlap (copy by way of another memory)"},
	{"copy overlap by alias of an alias", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Memories = append(g.Memories, ir.Memory{Name: "part", Kind: ir.Scratch, Size: 64, Alias: 4, AliasOff: 512})
		c := g.Nodes[2].(*ir.Copy)
		c.Src, c.Dst = ir.ViewOf(5, 0, 64), ir.ViewOf(3, 1536, 64)
	}, "graph g: #1 copy: source %part[0:64] and destination %s[1536:1600] overlap (copy by way of another memory)"},
	{"copy overlap for some params", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		c := g.Nodes[2].(*ir.Copy)
		c.Src, c.Dst = ir.View{Mem: 3, Off: ir.Linear(0, ir.Term{0, 1}), Len: ir.Const(4)}, ir.ViewOf(3, 2050, 4)
	}, "graph g: #1 copy: source %s[$pos:$pos + 4] and destination %s[2050:2054] overlap (copy by way of another memory)"},
	{"copy to a weight", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		c := g.Nodes[2].(*ir.Copy)
		c.Src, c.Dst = ir.ViewOf(1, 0, 64), ir.ViewOf(0, 0, 64)
	}, "graph g: #1 copy: destination %w[0:64] writes weight memory (weights and inputs are read-only to a graph)"},
	{"copy from nothing", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[2].(*ir.Copy).Src.Mem = 5 }, "graph g: #1 copy: source is in memory 5 of 5"},
	{"copy label", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Nodes[2].(*ir.Copy).Label = strings.Repeat("x", long)
	}, "graph g: #1 copy: label is longer than 4096 bytes or no UTF-8"},
	{"fill label", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[5].(*ir.Fill).Label = "\xff" }, "graph g: #2 fill: label is longer than 4096 bytes or no UTF-8"},
	{"group label", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[1].(*ir.GroupBegin).Label = "\xff" }, "graph g: node 1: label is longer than 4096 bytes or no UTF-8"},
	{"commit label", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[6].(*ir.Commit).Label = "\xff" }, "graph g: node 6 (commit): label is longer than 4096 bytes or no UTF-8"},
	{"commit order", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[6].(*ir.Commit).Order = 3 }, "graph g: node 6 (commit): order is of no known sort"},
	{"group not open", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[1] = &ir.Barrier{} }, "graph g: node 3: closes a group that is not open"},
	{"group not closed", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[3] = &ir.GroupBegin{} }, "graph g: end: 2 group(s) are still open (close them)"},
	{"node", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes[4] = nil }, "graph g: node 4: is of no known sort (<nil>)"},

	{"view end", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[0].View.Len = ir.Const(65) }, "graph g: #0 fn: binding a %w[0:65] leaves the memory (64 bytes) (shorten the view or grow the memory)"},
	{"view begin", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[0].View.Off = ir.Const(-1) }, "graph g: #0 fn: binding a %w[-1:63] leaves the memory (64 bytes) (shorten the view or grow the memory)"},
	{"view that wraps", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[0].View = ir.ViewOf(0, math.MaxInt64, math.MaxInt64)
	}, "graph g: #0 fn: binding a %w[9223372036854775807:-2] leaves the memory (64 bytes) (shorten the view or grow the memory)"},
	{"view of a param that does not exist", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[0].View.Off = ir.Linear(0, ir.Term{noParam, 1})
	}, "graph g: #0 fn: binding a %w[$?9:$?9 + 64] names a param that does not exist or is f32"},
	{"view of an f32 param", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[0].View.Len = ir.Linear(0, ir.Term{f32Param, 1})
	}, "graph g: #0 fn: binding a %w[0:$t] names a param that does not exist or is f32"},
	{"view that leaves 64 bits", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[0].View.Off = ir.Linear(0, ir.Term{0, math.MaxInt64})
	}, "graph g: #0 fn: binding a %w[9223372036854775807*$pos:9223372036854775807*$pos + 64] leaves 64 bits (use smaller bounds)"},
	// Offset and length are 3·2^61 each: their sum wraps to a negative number.
	{"view whose end wraps", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[0].View = ir.View{Mem: 0, Off: ir.Linear(3<<61, ir.Term{0, 1}), Len: ir.Const(3 << 61)}
	}, "graph g: #0 fn: binding a %w[$pos + 6917529027641081856:$pos - 4611686018427387904] leaves 64 bits (use smaller bounds)"},
	{"constraints together", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Constraints = append(g.Constraints, ir.Constraint{LHS: ir.Linear(0, ir.Term{0, -1}, ir.Term{1, -1}), Max: -2049})
	}, "graph g: constraint 1: no values of the params satisfy together $pos + $n <= 2048, -$pos - $n <= -2049 (no replay could run: drop one, or widen the bounds)"},
	{"view past its constraint", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Constraints[0].Max = 2049 }, "graph g: #0 fn: binding out %kv[256*$pos:256*$pos + 256*$n] reaches [0:524544], memory has 524288 bytes (bound the params, add a constraint, or grow the memory)\n" +
		"graph g: #0 fn: write %kv[256*$pos:256*$pos + 128; $n x 256] reaches [0:524416], memory has 524288 bytes (bound the params, add a constraint, or grow the memory)"},
	{"view of negative length", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[0].View = ir.View{Mem: 0, Off: ir.Const(0), Len: ir.Linear(1, ir.Term{1, -1})}
	}, "graph g: #0 fn: binding a %w[0:-$n + 1] can have the length -511"},

	{"kernel", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Kernel = 1 }, "graph g: #0: runs kernel 1 of 1"},
	{"kernel negative", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Kernel, d.Op = -1, "rms_norm" }, "graph g: #0 rms_norm: runs kernel -1 of 1"},
	{"threadgroup memory order", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.ThreadgroupMemory = []ir.ThreadgroupMemory{{1, 16}, {1, 16}}
	}, "graph g: #0 fn: threadgroup memory 1 is out of order or past slot 30"},
	{"threadgroup memory slot", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.ThreadgroupMemory[0].Slot = 31 }, "graph g: #0 fn: threadgroup memory 31 is out of order or past slot 30"},
	{"threadgroup memory size", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.ThreadgroupMemory[0].Bytes = 24 }, "graph g: #0 fn: threadgroup memory 0 has 24 bytes (Metal wants a positive multiple of 16)"},
	{"threadgroup memory empty", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.ThreadgroupMemory[0].Bytes = 0 }, "graph g: #0 fn: threadgroup memory 0 has 0 bytes (Metal wants a positive multiple of 16)"},
	{"threadgroup memory total", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.ThreadgroupMemory = []ir.ThreadgroupMemory{{0, 16384}, {1, 16400}}
	}, "graph g: #0 fn: threadgroup memory of 32784 bytes is more than 32768"},
	{"op", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Op = "\n" }, "graph g: #0 \"\\n\": op kind is too long or not printable"},
	{"dispatch label", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Label = "\xff" }, "graph g: #0 fn: label is longer than 4096 bytes or no UTF-8"},

	{"binding order", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[0], d.Bindings[1] = d.Bindings[1], d.Bindings[0]
	}, "graph g: #0 fn: binding 0 stands after binding 1 (bindings stand in ascending order of their slots)"},
	{"binding slot", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[4].Slot = 7 }, "graph g: #0 fn: binds slot 7, which kernel @k does not have"},
	{"binding view with bytes", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[0].Bytes = []byte{} }, "graph g: #0 fn: binding a is a view and has inline bytes"},
	{"binding writes an input", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[1].View = ir.ViewOf(1, 0, 4) }, "graph g: #0 fn: binding out %x[0:4] writes input memory (weights and inputs are read-only to a graph)"},
	{"inline bytes to write", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[1] = ir.BytesArg(1, []byte{0}) }, "graph g: #0 fn: binding out has inline bytes, the argument is device write memory (only constants and device memory that is read can be inline)"},
	{"inline bytes none", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[0] = ir.BytesArg(0, nil) }, "graph g: #0 fn: binding a has 0 inline bytes (Metal's setBytes takes 1 to 4096)"},
	{"inline bytes many", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[0] = ir.BytesArg(0, make([]byte, 4097)) }, "graph g: #0 fn: binding a has 4097 inline bytes (Metal's setBytes takes 1 to 4096)"},
	{"inline bytes count", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[4].Bytes = make([]byte, 8) }, "graph g: #0 fn: binding dims has 8 inline bytes, the argument has 12"},
	{"binding kind", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[0].Kind = 3 }, "graph g: #0 fn: binding a is of no known sort"},
	{"expression type", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[2].Type = ir.I32 }, "graph g: #0 fn: binding n is a param expression of type i32, the argument is constant u32[1]"},
	{"expression for an array", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[4] = ir.ScalarArg(4, ir.I32, ir.Const(1)) }, "graph g: #0 fn: binding dims is a param expression of type i32, the argument is constant i32[3]"},
	{"expression to write", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[1] = ir.ScalarArg(1, ir.F32, ir.Linear(0, ir.Term{f32Param, 1}))
	}, "graph g: #0 fn: binding out is a param expression of type f32, the argument is device f32[0]"},
	{"f32 expression", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[3].Expr = ir.Linear(0, ir.Term{f32Param, 2})
	}, "graph g: #0 fn: binding t: an f32 expression is one f32 param"},
	{"f32 expression of a u32", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[3].Expr = ir.Linear(0, ir.Term{0, 1}) }, "graph g: #0 fn: binding t: an f32 expression is one f32 param"},
	{"expression of a param that does not exist", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[2].Expr = ir.Linear(0, ir.Term{noParam, 1})
	}, "graph g: #0 fn: binding n names a param that does not exist or is f32"},
	{"f16 expression", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings = append(d.Bindings, ir.ScalarArg(6, ir.F16, ir.Const(1)))
	}, "graph g: #0 fn: binding h is a param expression of type f16 (expressions are i32, u32, i64, u64 or f32)"},
	{"expression below zero", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[2].Expr = ir.Linear(-2, ir.Term{1, 1}) }, "graph g: #0 fn: binding n = $n - 2 can be -1…510, which is no u32 (bound the params or add a constraint)"},
	{"expression above u32", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Bindings[2].Expr = ir.Const(1 << 32) }, "graph g: #0 fn: binding n = 4294967296 can be 4294967296…4294967296, which is no u32 (bound the params or add a constraint)"},
	{"expression below i32", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings = append(d.Bindings, ir.ScalarArg(5, ir.I32, ir.Const(math.MinInt32-1)))
	}, "graph g: #0 fn: binding i = -2147483649 can be -2147483649…-2147483649, which is no i32 (bound the params or add a constraint)"},

	{"grid kind", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.GridKind = 2 }, "graph g: #0 fn: grid is of no known sort"},
	{"grid divisor", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Grid[2].Div = 0 }, "graph g: #0 fn: grid dimension 2 is divided by 0"},
	{"grid param", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Grid[1].Num = ir.Linear(0, ir.Term{f32Param, 1}) }, "graph g: #0 fn: grid dimension 1 names a param that does not exist or is f32"},
	{"grid negative", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Grid[0].Num = ir.Linear(-33, ir.Term{1, 1}) }, "graph g: #0 fn: grid dimension 0 can be -1…15 (a grid is between 0 and 2^32-1; bound the params or add a constraint)"},
	{"grid large", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Grid[0] = ir.Ext(1 << 32) }, "graph g: #0 fn: grid dimension 0 can be 4294967296…4294967296 (a grid is between 0 and 2^32-1; bound the params or add a constraint)"},
	{"threadgroup empty", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Threadgroup[2] = 0 }, "graph g: #0 fn: threadgroup [32 1 0] is empty or has more than 1024 threads"},
	{"threadgroup large", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Threadgroup[2] = 33 }, "graph g: #0 fn: threadgroup [32 1 33] is empty or has more than 1024 threads"},
	{"threadgroup that wraps", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Threadgroup = [3]uint32{math.MaxUint32, math.MaxUint32, 2}
	}, "graph g: #0 fn: threadgroup [4294967295 4294967295 2] is empty or has more than 1024 threads"},

	{"argument unbound", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Constants = nil }, "graph g: #0 fn: binds nothing to argument 5 (i) (only a kernel with function constants may have arguments that are absent)"},
	{"threadgroup argument", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.ThreadgroupMemory[0].Slot = 7 }, "graph g: #0 fn: sizes threadgroup argument 7, which kernel @k does not have (list it in the kernel's table of arguments)"},
	{"write through a read argument", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Kernels[0].Args[1].Access = ir.ReadArg }, "graph g: #0 fn: write %kv[256*$pos:256*$pos + 128; $n x 256] goes through argument out, which is declared read (declare the argument write or readwrite)"},
	{"write through a constant argument", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Kernels[0].Args[1].Kind, g.Kernels[0].Args[1].Access = ir.ConstantArg, ir.ReadArg
	}, "graph g: #0 fn: write %kv[256*$pos:256*$pos + 128; $n x 256] goes through argument out, which is declared constant (declare the argument write or readwrite)"},
	{"write beside what is bound to write", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Bindings[0].View, d.Bindings[1].View = ir.ViewOf(3, 0, 64), ir.ViewOf(3, 64, 64)
		d.Effects.Writes[0].Region = ir.ViewOf(3, 0, 64).Contiguous()
	}, "graph g: #0 fn: write %s[0:64] goes through argument a, which is declared read (declare the argument write or readwrite)"},
	{"write promised twice", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Effects.Writes = append(d.Effects.Writes, d.Effects.Writes[0])
	}, "graph g: #0 fn: write %kv[256*$pos:256*$pos + 128; $n x 256] is promised twice (list it once)"},
	{"write promised twice among many, through an alias", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		for i := range int64(100) {
			d.Effects.Writes = append(d.Effects.Writes, ir.Write{Region: ir.ViewOf(3, 1024+8*i, 8).Contiguous(), Must: true})
		}
		d.Effects.Writes = append(d.Effects.Writes, ir.Write{Region: ir.ViewOf(4, 88, 8).Contiguous(), Must: true})
	}, "graph g: #0 fn: write %tmp[88:96] is promised twice (list it once)"},
	{"write promised of an empty grid", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Params[1].Min = 0
		d.Effects.Writes[0].Dims[0].Count = ir.Const(1)
	}, "graph g: #0 fn: write %kv[256*$pos:256*$pos + 128; 1 x 256] is promised, and the grid can be empty: dimension 0 is $n (make it a may-write, or empty with the grid, or bound the params)"},
	{"write promised of a grid of none", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Grid[1] = ir.Ext(0) }, "graph g: #0 fn: write %kv[256*$pos:256*$pos + 128; $n x 256] is promised, and the grid can be empty: dimension 1 is 0 (make it a may-write, or empty with the grid, or bound the params)"},

	{"region memory", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Effects.Reads[0].Mem = -1 }, "graph g: #0 fn: read is of memory -1 of 5"},
	{"region dimensions", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Effects.Reads[0].Dims = make([]ir.Dim, 5) }, "graph g: #0 fn: read of %w has 5 dimensions (at most 4)"},
	{"region count negative", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Effects.Reads[0].Dims = []ir.Dim{{ir.Const(-1), 4}} }, "graph g: #0 fn: read %w[0:64; -1 x 4] has a dimension of negative count or stride"},
	{"region stride negative", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Effects.Reads[0].Dims = []ir.Dim{{ir.Const(1), -4}} }, "graph g: #0 fn: read %w[0:64; 1 x -4] has a dimension of negative count or stride"},
	{"region count of f32", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Effects.Reads[0].Dims = []ir.Dim{{ir.Linear(0, ir.Term{f32Param, 1}), 4}}
	}, "graph g: #0 fn: read %w[0:64; $t x 4] has a dimension of negative count or stride"},
	// 2^40 · 2^47 wraps to 0, which would be inside.
	{"region that wraps", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		d.Effects.Reads[0].Dims = []ir.Dim{{ir.Const(1<<40 + 1), 1 << 47}}
	}, "graph g: #0 fn: read %w[0:64; 1099511627777 x 140737488355328] leaves 64 bits (use smaller bounds)"},
	{"region end", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Effects.Reads[0].Run = ir.Const(65) }, "graph g: #0 fn: read %w[0:65] leaves the memory (64 bytes)"},
	{"ordering", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Ordering = 7 }, "graph g: is ordered in no known way"},
	{"edges beside barriers", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Edges = []ir.Edge{{0, 0, true}} }, "graph g: has edges, and is ordered by barriers (a graph is ordered in one way: leave the edges out, or have it ordered by them)"},
	{"edges beside the list", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Ordering, g.Edges = ir.Serial, []ir.Edge{{0, 0, true}}
	}, "graph g: has edges, and is ordered by serial (a graph is ordered in one way: leave the edges out, or have it ordered by them)"},
	{"join beside barriers", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { g.Nodes = append(g.Nodes, &ir.Join{ID: 100}) }, "graph g: #100 join: joins edges, and the graph is not ordered by edges (leave it out, or have the graph ordered by edges)"},
	{"barrier beside edges", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Ordering, g.Nodes = ir.ByEdges, []ir.Node{d, &ir.Barrier{}}
	}, "graph g: node 1 (barrier): orders, and the graph is ordered by edges (write an edge instead)"},
	{"commit that orders beside edges", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Ordering, g.Nodes = ir.ByEdges, []ir.Node{d, &ir.Commit{}, &ir.Commit{Order: ir.OrderFence}}
	}, "graph g: node 2 (commit): orders by fence, and the graph is ordered by edges (a commit of such a graph orders nothing)"},
	{"join of a used id", edged(), "graph g: #0 join: another command has this id (ids are unique in a graph)"},
	{"edge from nowhere", edged(ir.Edge{100, 101, false}, ir.Edge{7, 102, false}), "graph g: #102 join: waits for #7, which is no command of the graph"},
	{"edge from nowhere before", edged(ir.Edge{7, 102, true}), "graph g: #102 join: waits for #7, which is no command of the graph"},
	{"edge from a large id", edged(ir.Edge{1 << 31, 102, true}), "graph g: #102 join: waits for #2147483648, which is no command of the graph"},
	{"edge backwards", edged(ir.Edge{101, 100, false}), "graph g: #100 join: waits for #101, which does not stand before it (edges lead forward in the list; if the command of the replay before is meant: previous #101)"},
	{"edge to itself", edged(ir.Edge{101, 101, false}, ir.Edge{101, 101, true}), "graph g: #101 join: waits for #101, which does not stand before it (edges lead forward in the list; if the command of the replay before is meant: previous #101)"},
	{"edge twice", edged(ir.Edge{100, 101, false}, ir.Edge{100, 101, false}), "graph g: #101 join: waits for #100 twice (one edge is enough)"},
	{"edges out of order", edged(ir.Edge{101, 102, false}, ir.Edge{100, 102, false}), "graph g: #102 join: has edges out of order (sort them: those of the same replay first, each by ascending ids)"},
	{"previous edges first", edged(ir.Edge{100, 102, true}, ir.Edge{101, 102, false}), "graph g: #102 join: has edges out of order (sort them: those of the same replay first, each by ascending ids)"},
	{"edge to nowhere", edged(ir.Edge{100, 103, false}), "graph g: edges: edge from #100 to #103 leads to no command of the graph"},
	{"edges not in the order of the list", edged(ir.Edge{100, 102, false}, ir.Edge{100, 101, false}), "graph g: edges: edge from #100 to #101 is out of order: edges stand in the order of the commands that they lead to"},

	{"region of a weight written", func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) { d.Effects.Writes[0].Region = d.Effects.Reads[0] }, "graph g: #0 fn: write %w[0:64] is of weight memory (weights and inputs are read-only to a graph)"},
}

// edged gives the graph joins #100 to #102 with the given edges. Without edges, one of the joins
// has the ID of the dispatch.
func edged(edges ...ir.Edge) func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
	return func(m *ir.Module, g *ir.Graph, d *ir.Dispatch) {
		g.Ordering, g.Edges = ir.ByEdges, edges
		if g.Nodes = []ir.Node{d, &ir.Join{ID: 100}, &ir.Join{ID: 101}, &ir.Join{ID: 102}}; edges == nil {
			g.Nodes = append(g.Nodes, &ir.Join{})
		}
	}
}

func TestCheckFinds(t *testing.T) {
	require.NoError(t, sound().Check())
	for _, c := range breakages {
		t.Run(c.name, func(t *testing.T) {
			m := sound()
			g := m.Graphs[0]
			c.break_(m, g, g.Nodes[0].(*ir.Dispatch))
			err := m.Check()
			require.EqualError(t, err, c.want)
			var first *ir.Error
			require.True(t, errors.As(err, &first))
			if strings.HasPrefix(c.want, "graph g: ") && !strings.Contains(c.name, "two") {
				require.Equal(t, err, g.Check(), "the graph alone has the same defects")
			}
		})
	}
}

// A must-write that is empty whenever the grid is empty is accepted, whatever terms the two have.
func TestCheckAcceptsEmptyPromises(t *testing.T) {
	n, m := ir.Linear(0, ir.Term{0, 1}), ir.Linear(0, ir.Term{1, 1})
	for _, c := range []struct {
		grid, run ir.Affine
		count     ir.Affine
		want      bool
	}{
		{n, n.Scale(4), ir.Const(1), true},
		{n, ir.Const(4), n, true},
		{n.Scale(2), n.Scale(3), ir.Const(1), true},
		{n.Scale(2).Add(m.Scale(3)), n, ir.Const(1), true},
		{n.Add(m), m, n, true},
		{n.Sub(m), n.Sub(m), ir.Const(1), true}, // $m <= $n
		{n.AddConst(1), ir.Const(4), ir.Const(1), true},
		{n, m, ir.Const(1), true}, // $m is 0 where $n is
		{m, n, ir.Const(1), false},
		{n.Sub(m), n, ir.Const(1), false},
	} {
		b := ir.NewBuilder("g")
		b.Param("n", 0, 8)
		b.Param("m", 0, 8)
		b.Require(m.Sub(n), 0)
		y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4096})
		k := b.Kernel(ir.Kernel{Name: "k", Library: ir.Library{Kind: ir.Metallib, Path: "m"}, Function: "f"})
		b.Dispatch(ir.Dispatch{Kernel: k, Grid: [3]ir.Extent{{Num: c.grid, Div: 1}, ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1},
			Effects: &ir.Effects{Complete: true, Writes: []ir.Write{{Region: ir.Region{Mem: y, Run: c.run, Dims: []ir.Dim{{c.count, 64}}}, Must: true}}}})
		_, err := b.Graph()
		if c.want {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "is promised, and the grid can be empty")
		}
	}
}

func values() ir.Init {
	return ir.Init{Kind: ir.InitValues, Values: []ir.Value{{Type: ir.U32, Bytes: []byte{1, 0, 0, 0}}}}
}

// arguments makes memory %x argument memory, of the given values if there are any.
func arguments(g *ir.Graph, vs ...ir.Value) {
	g.Memories[1].Kind, g.Memories[1].Init = ir.Argument, values()
	if vs != nil {
		g.Memories[1].Init.Values = vs
	}
}

// Every message and hint of check*.go stands in the table above: a new check
// needs a new case.
func TestEveryCheckIsTested(t *testing.T) {
	var src []byte
	for _, name := range []string{"check.go", "check_memory.go", "check_kernel.go", "check_node.go", "check_dispatch.go", "check_effects.go", "check_order.go"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		src = append(src, text...)
	}
	var all strings.Builder
	for _, c := range breakages {
		all.WriteString(c.want + "\n")
	}
	calls := regexp.MustCompile(`(?m)^\s*n?c\.(?:add|memory)\(.*$`).FindAllString(string(src), -1)
	require.Greater(t, len(calls), 70)
	literal := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	verb := regexp.MustCompile(`%[a-zA-Z#]+`)
	for _, call := range calls {
		for _, text := range literal.FindAllString(call, -1) {
			parts := verb.Split(strings.Trim(text, `"`), -1)
			for i := range parts {
				parts[i] = regexp.QuoteMeta(parts[i])
			}
			if !regexp.MustCompile(strings.Join(parts, ".*")).MatchString(all.String()) {
				t.Errorf("no case has the message %s", text)
			}
		}
	}
}

func TestCheckStopsAtTwenty(t *testing.T) {
	m := sound()
	g := m.Graphs[0]
	for i := range 100 {
		g.Nodes = append(g.Nodes, &ir.Fill{ID: ir.ID(1000 + i), Dst: ir.ViewOf(0, 0, 1)})
	}
	var all ir.Errors
	require.True(t, errors.As(m.Check(), &all))
	require.Len(t, all, 20)
}

func TestCheckSaysWhere(t *testing.T) {
	m := sound()
	g := m.Graphs[0]
	g.Source = &ir.Source{File: "g.mlxt", Memories: make([]ir.Pos, 5), Nodes: make([]ir.Pos, 7)}
	g.Source.Nodes[5] = ir.Pos{Line: 12, Col: 3, Offset: 400}
	g.Nodes[5].(*ir.Fill).Dst.Mem = 0
	require.EqualError(t, m.Check(), "g.mlxt:12:3: graph g: #2 fill: destination %w[0:64] writes weight memory (weights and inputs are read-only to a graph)")
	g.Source.Nodes = g.Source.Nodes[:5] // a pass made the list longer
	require.EqualError(t, m.Check(), "g.mlxt: graph g: #2 fill: destination %w[0:64] writes weight memory (weights and inputs are read-only to a graph)")
	g.Memories[3].Align = 3
	g.Source.File, g.Source.Memories[3] = "g.mlxg", ir.Pos{Offset: 77}
	require.EqualError(t, m.Check(), "g.mlxg: offset 77: graph g: %s: alignment 3 is no power of two up to 1 MiB")
}

func TestErrors(t *testing.T) {
	es := ir.Errors{{What: "a"}, {At: "graph g", What: "b", Hint: "c"}}
	require.EqualError(t, es, "a\ngraph g: b (c)")
	require.Len(t, es.Unwrap(), 2)
}
