package irtest

import (
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

func size(t *rapid.T) int64 {
	return rapid.OneOf(rapid.Int64Range(1, 64), rapid.Int64Range(1, 8192), rapid.SampledFrom([]int64{1 << 20, 1<<32 + 5, 1 << 47})).Draw(t, "size")
}

func storage(t *rapid.T) ir.Storage {
	return rapid.SampledFrom([]ir.Storage{ir.Shared, ir.Private}).Draw(t, "storage")
}

// blob draws contents of n bytes, embedded only when they are small.
func blob(t *rapid.T, n int64) *ir.Blob {
	if n <= 4096 && rapid.Bool().Draw(t, "embedded") {
		data := make([]byte, n)
		ir.Init{Kind: ir.InitRandom, Seed: rapid.Uint64().Draw(t, "bytes")}.Write(data)
		return ir.NewBlob(data)
	}
	path := rapid.SampledFrom([]string{"model.gguf", "../w/a.safetensors", `odd "name"`, "ü.bin"}).Draw(t, "path")
	return ir.ExternalBlob(path, rapid.Int64Range(0, 1<<47).Draw(t, "offset"), n, digest(t))
}

func digest(t *rapid.T) (d ir.Digest) {
	copy(d[:], rapid.SliceOfN(rapid.Byte(), len(d), len(d)).Draw(t, "digest"))
	return d
}

// contents draws initial contents of n bytes.
func contents(t *rapid.T, n int64, none bool) ir.Init {
	kinds := []ir.InitKind{ir.InitFill, ir.InitRandom, ir.InitBlob}
	if none {
		kinds = append(kinds, ir.InitNone)
	}
	switch rapid.SampledFrom(kinds).Draw(t, "contents") {
	case ir.InitBlob:
		return ir.Init{Kind: ir.InitBlob, Blob: blob(t, n)}
	case ir.InitFill:
		return ir.FillU32(rapid.Uint32().Draw(t, "pattern"))
	case ir.InitRandom:
		return ir.Init{Kind: ir.InitRandom, Seed: rapid.Uint64().Draw(t, "seed")}
	}
	return ir.Init{}
}

var allTypes = []ir.DType{ir.Bool, ir.U8, ir.I8, ir.U16, ir.I16, ir.U32, ir.I32, ir.U64, ir.I64, ir.F16, ir.BF16, ir.F32, ir.U2, ir.U3, ir.U4, ir.U5, ir.U6}

// shape draws a type and a shape that fit into n bytes, or neither.
func shape(t *rapid.T, n int64) (ir.DType, []int64) {
	d := rapid.SampledFrom(append([]ir.DType{ir.Invalid}, allTypes...)).Draw(t, "element type")
	room := n * 8
	if d == ir.Invalid || int64(d.Bits()) > room {
		return ir.Invalid, nil
	}
	room /= int64(d.Bits())
	var dims []int64
	for range rapid.IntRange(0, 4).Draw(t, "rank") {
		k := rapid.Int64Range(1, min(room, 1<<33)).Draw(t, "dimension")
		dims = append(dims, k)
		room /= k
	}
	return d, dims
}

// memories draws two scratch memories, so that every command finds something
// to write, and others around them.
func (g *gen) memories() {
	t, used := g.t, namer{}
	for _, s := range g.shared {
		// Another graph's name for its own memory must not be this state's.
		used[s.Name] = true
	}
	add := func(m ir.Memory) {
		m.Align = rapid.SampledFrom([]int64{0, 0, 1, 256, 16384, 1 << 20}).Draw(t, "alignment")
		if !m.Kind.ReadOnly() {
			g.writable = append(g.writable, ir.MemID(len(g.g.Memories)))
		}
		g.g.Memories = append(g.g.Memories, m)
	}
	root := func(kind ir.MemKind) {
		m := ir.Memory{Kind: kind, Storage: storage(t), Size: size(t), Alias: ir.NoMem}
		if kind == ir.State {
			// Only shared states have a name that another graph's state may have.
			m.Name = g.privateState + used.draw(t, "state name")
			used[m.Name] = true
		} else {
			m.Name = used.draw(t, "memory name")
		}
		if kind == ir.Weight {
			m.Init = contents(t, m.Size, false)
		} else if kind == ir.State {
			m.Init = contents(t, m.Size, true)
		} else if kind == ir.Argument {
			m.Storage = ir.Shared
			m.Init = ir.Init{Kind: ir.InitValues, Values: g.values(m.Size)}
		}
		m.Every = kind == ir.Output && g.bool("every")
		m.DType, m.Shape = shape(t, m.Size)
		add(m)
	}
	root(ir.Scratch)
	for _, s := range g.shared {
		if g.bool("declare shared state") {
			add(s)
		}
	}
	root(ir.Scratch)
	for range rapid.IntRange(0, 6).Draw(t, "memories") {
		if g.chance(3, "alias") {
			p := ir.MemID(g.upTo(int64(len(g.g.Memories)-1), "parent"))
			par := g.g.Memories[p]
			off := g.upTo(par.Size-1, "alias offset")
			m := ir.Memory{
				Name: used.draw(t, "alias name"), Kind: par.Kind, Storage: par.Storage, Alias: p, AliasOff: off,
				Size: rapid.Int64Range(1, par.Size-off).Draw(t, "alias size"),
			}
			m.DType, m.Shape = shape(t, m.Size)
			add(m)
			continue
		}
		root(rapid.SampledFrom([]ir.MemKind{ir.Weight, ir.Input, ir.Output, ir.State, ir.Scratch, ir.Argument}).Draw(t, "memory kind"))
	}
}

// values draws the recipe of argument memory of n bytes.
func (g *gen) values(n int64) []ir.Value {
	t := g.t
	out := []ir.Value{}
	for at := int64(0); len(out) < 8; {
		v := ir.Value{Off: at + rapid.Int64Range(0, 40).Draw(t, "gap"), Type: rapid.SampledFrom(append([]ir.DType{ir.Invalid}, allTypes...)).Draw(t, "type of the value")}
		switch v.Type {
		case ir.U32, ir.U64, ir.I32, ir.I64:
			if g.bool("scalar") {
				v.Expr = g.affine(1 << 20)
				break
			}
			fallthrough
		default:
			v.Bytes = rapid.SliceOfN(rapid.Byte(), 1, 24).Draw(t, "bytes of the value")
		}
		if at = v.Off + v.Size(); at > n {
			break
		}
		out = append(out, v)
		if g.chance(3, "last value") {
			break
		}
	}
	return out
}

func (g *gen) anyMemory() ir.MemID {
	return ir.MemID(g.upTo(int64(len(g.g.Memories)-1), "memory"))
}

func (g *gen) memory(write bool) ir.MemID {
	if write {
		return rapid.SampledFrom(g.writable).Draw(g.t, "written memory")
	}
	return g.anyMemory()
}

// view draws a view of m that lies in m for all values of the params.
func (g *gen) view(m ir.MemID) ir.View {
	size := g.g.Memories[m].Size
	// c·pos … c·pos + c·n fits by a constraint where the bounds alone are too wide.
	for _, k := range g.g.Constraints {
		ts := k.LHS.Terms()
		if len(ts) == 2 && ts[0].Coeff == 1 && ts[1].Coeff == 1 && k.Max > 0 && size/k.Max > 0 && g.bool("constrained") {
			c := rapid.Int64Range(1, min(size/k.Max, 4096)).Draw(g.t, "row bytes")
			return ir.View{Mem: m, Off: ir.Linear(0, ir.Term{Param: ts[0].Param, Coeff: c}), Len: ir.Linear(0, ir.Term{Param: ts[1].Param, Coeff: c})}
		}
	}
	room := g.upTo(size, "room of the offset")
	return ir.View{Mem: m, Off: g.affine(room), Len: g.affine(size - room)}
}

// region draws a strided region of m.
func (g *gen) region(m ir.MemID) ir.Region {
	if g.bool("contiguous") {
		return g.view(m).Contiguous()
	}
	left := g.g.Memories[m].Size
	take := func() int64 {
		n := g.upTo(left, "room")
		left -= n
		return n
	}
	r := ir.Region{Mem: m, Off: g.affine(take()), Run: g.affine(take())}
	for range rapid.IntRange(0, 4).Draw(g.t, "dimensions") {
		room := take()
		count := rapid.Int64Range(1, max(1, min(room, 1<<20))).Draw(g.t, "count")
		r.Dims = append(r.Dims, ir.Dim{Count: g.affine(count), Stride: g.upTo(room/count, "stride")})
	}
	return r
}
