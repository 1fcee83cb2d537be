package mlxg

import (
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/mlxc/mlxc/ir"
)

// encoder writes sections as msgpack to a bufio.Writer. Errors of writing are ignored here,
// because the bufio.Writer keeps them until its Flush; err is for errors of the module.
type encoder struct {
	mp      *msgpack.Encoder
	strs    map[string]int
	strList []string
	plan    *plan
	err     error
}

func newEncoder(p *plan) *encoder {
	return &encoder{mp: msgpack.NewEncoder(io.Discard), strs: map[string]int{"": 0}, strList: []string{""}, plan: p}
}

// These write single values. Every integer has its shortest form.

func (e *encoder) array(n int)       { _ = e.mp.EncodeArrayLen(n) }
func (e *encoder) int(v int64)       { _ = e.mp.EncodeInt(v) }
func (e *encoder) uint(v uint64)     { _ = e.mp.EncodeUint(v) }
func (e *encoder) float64(v float64) { _ = e.mp.EncodeFloat64(v) }
func (e *encoder) bool(v bool)       { _ = e.mp.EncodeBool(v) }
func (e *encoder) null()             { _ = e.mp.EncodeNil() }

func (e *encoder) bin(b []byte) {
	_ = e.mp.EncodeBytesLen(len(b))
	if len(b) > 0 {
		_, _ = e.mp.Writer().Write(b)
	}
}

// str writes the index of s in the string table.
func (e *encoder) str(s string) {
	i, ok := e.strs[s]
	if !ok {
		if !utf8.ValidString(s) && e.err == nil {
			e.err = fmt.Errorf("string %q is no UTF-8", s)
		}
		i = len(e.strList)
		e.strs[s] = i
		e.strList = append(e.strList, s)
	}
	e.uint(uint64(i))
}

func (e *encoder) meta(m *ir.Module) {
	e.array(2)
	e.array(len(m.Graphs))
	for _, g := range m.Graphs {
		e.graph(g)
	}
	e.array(len(m.Data))
	for _, d := range m.Data {
		e.array(2)
		e.str(d.Name)
		e.uint(uint64(e.plan.index[d.Blob]))
	}
}

// strings writes section STRS. It comes after META, whose strings it lists.
func (e *encoder) strings() {
	e.array(len(e.strList))
	for _, s := range e.strList {
		_ = e.mp.EncodeString(s)
	}
}

// blobs writes section BLOB.
func (e *encoder) blobs() {
	e.array(len(e.plan.entries))
	for i := range e.plan.entries {
		b := &e.plan.entries[i]
		e.array(4)
		_ = e.mp.EncodeString(b.path)
		e.int(b.offset)
		e.int(b.length)
		e.bin(b.digest[:])
	}
}

func (e *encoder) graph(g *ir.Graph) {
	e.array(graphSize)
	e.str(g.Name)
	e.array(len(g.Params))
	for _, p := range g.Params {
		e.array(4)
		e.str(p.Name)
		e.uint(uint64(p.Type))
		e.float64(p.Min)
		e.float64(p.Max)
	}
	e.array(len(g.Constraints))
	for _, c := range g.Constraints {
		e.array(2)
		e.affine(c.LHS)
		e.int(c.Max)
	}
	e.array(len(g.Memories))
	for i := range g.Memories {
		e.memory(&g.Memories[i])
	}
	e.array(len(g.Kernels))
	for i := range g.Kernels {
		e.kernel(&g.Kernels[i])
	}
	e.array(len(g.Nodes))
	for _, n := range g.Nodes {
		e.node(n)
	}
	flags := uint64(0)
	switch g.Ordering {
	case ir.Serial:
		flags |= graphSerial
	case ir.ByEdges:
		flags |= graphEdges
	}
	if g.NextHost {
		flags |= graphNextHost
	}
	e.uint(flags)
	e.array(edgeSize * len(g.Edges))
	for _, x := range g.Edges {
		e.uint(uint64(x.From))
		e.uint(uint64(x.To))
		previous := uint64(0)
		if x.Previous {
			previous = 1
		}
		e.uint(previous)
	}
	e.burst(g)
}

func (e *encoder) burst(g *ir.Graph) {
	n := 0
	for i := range g.Params {
		if g.Params[i].Advance != 0 {
			n++
		}
	}
	e.array(2 * n)
	for i := range g.Params {
		if step := g.Params[i].Advance; step != 0 {
			e.uint(uint64(i))
			e.int(step)
		}
	}
	n = 0
	for i := range g.Memories {
		if g.Memories[i].Every {
			n++
		}
	}
	e.array(n)
	for i := range g.Memories {
		if g.Memories[i].Every {
			e.uint(uint64(i))
		}
	}
}

func (e *encoder) memory(m *ir.Memory) {
	e.array(9)
	e.str(m.Name)
	e.uint(uint64(m.Kind))
	e.uint(uint64(m.Storage))
	e.int(m.Size)
	e.int(m.Align)
	e.uint(uint64(m.DType))
	if m.Shape == nil {
		e.null()
	} else {
		e.array(len(m.Shape))
		for _, d := range m.Shape {
			e.int(d)
		}
	}
	if m.Init.Kind == ir.InitNone {
		e.null()
	} else {
		e.array(2)
		e.uint(uint64(m.Init.Kind))
		switch m.Init.Kind {
		case ir.InitBlob:
			e.uint(uint64(e.plan.index[m.Init.Blob]))
		case ir.InitFill:
			p := m.Init.Pattern
			e.uint(uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24)
		case ir.InitRandom:
			e.uint(m.Init.Seed)
		case ir.InitValues:
			e.array(len(m.Init.Values))
			for i := range m.Init.Values {
				v := &m.Init.Values[i]
				e.array(4)
				e.int(v.Off)
				e.uint(uint64(v.Type))
				if v.Bytes != nil {
					e.uint(uint64(ir.BindBytes))
					e.bin(v.Bytes)
				} else {
					e.uint(uint64(ir.BindScalar))
					e.affine(v.Expr)
				}
			}
		}
	}
	if m.Alias == ir.NoMem {
		e.null()
	} else {
		e.array(2)
		e.int(int64(m.Alias))
		e.int(m.AliasOff)
	}
}

func (e *encoder) kernel(k *ir.Kernel) {
	e.array(5)
	e.str(k.Name)
	e.array(3)
	e.uint(uint64(k.Library.Kind))
	e.str(k.Library.Path)
	if k.Library.Digest == (ir.Digest{}) {
		e.null()
	} else {
		e.bin(k.Library.Digest[:])
	}
	e.str(k.Function)
	e.array(len(k.Constants))
	for _, c := range k.Constants {
		e.array(4)
		e.uint(uint64(c.Index))
		e.str(c.Name)
		e.uint(uint64(c.Type))
		e.uint(c.Bits)
	}
	e.array(len(k.Args))
	for _, a := range k.Args {
		e.array(6)
		e.uint(uint64(a.Slot))
		e.str(a.Name)
		e.uint(uint64(a.Kind))
		e.uint(uint64(a.Access))
		e.uint(uint64(a.Type))
		e.int(int64(a.Count))
	}
}

func (e *encoder) node(n ir.Node) {
	begin := func(code int) {
		e.array(nodeSize[code])
		e.uint(uint64(code))
	}
	switch n := n.(type) {
	case *ir.Dispatch:
		if n.Indirect == nil {
			begin(nodeDispatch)
			e.dispatch(n)
			break
		}
		begin(nodeIndirect)
		e.dispatch(n)
		e.indirect(n.Indirect)
	case *ir.Carry:
		begin(nodeCarry)
		e.transfer(n.ID, n.Dst, n.Src, n.Label, n.From)
	case *ir.Copy:
		begin(nodeCopy)
		e.transfer(n.ID, n.Dst, n.Src, n.Label, n.From)
	case *ir.Fill:
		begin(nodeFill)
		e.uint(uint64(n.ID))
		e.view(n.Dst)
		e.uint(uint64(n.Value))
		e.str(n.Label)
		e.from(n.From)
	case *ir.Join:
		begin(nodeJoin)
		e.uint(uint64(n.ID))
	case *ir.Barrier:
		begin(nodeBarrier)
	case *ir.Commit:
		begin(nodeCommit)
		e.uint(uint64(n.Order))
		e.str(n.Label)
	case *ir.GroupBegin:
		begin(nodeGroupBegin)
		e.str(n.Label)
	case *ir.GroupEnd:
		begin(nodeGroupEnd)
	}
}

func (e *encoder) dispatch(d *ir.Dispatch) {
	e.uint(uint64(d.ID))
	e.int(int64(d.Kernel))
	e.array(len(d.Bindings))
	for i := range d.Bindings {
		b := &d.Bindings[i]
		switch b.Kind {
		case ir.BindView:
			e.array(5)
			e.uint(uint64(b.Slot))
			e.uint(uint64(b.Kind))
			e.viewFields(b.View)
		case ir.BindBytes:
			e.array(3)
			e.uint(uint64(b.Slot))
			e.uint(uint64(b.Kind))
			e.bin(b.Bytes)
		case ir.BindScalar:
			e.array(4)
			e.uint(uint64(b.Slot))
			e.uint(uint64(b.Kind))
			e.uint(uint64(b.Type))
			e.affine(b.Expr)
		}
	}
	e.array(2 * len(d.ThreadgroupMemory))
	for _, t := range d.ThreadgroupMemory {
		e.uint(uint64(t.Slot))
		e.uint(uint64(t.Bytes))
	}
	e.array(7)
	e.uint(uint64(d.GridKind))
	for _, x := range d.Grid {
		e.affine(x.Num)
		e.int(x.Div)
	}
	e.array(3)
	for _, t := range d.Threadgroup {
		e.uint(uint64(t))
	}
	e.effects(d.Effects)
	e.str(d.Op)
	e.str(d.Label)
	e.from(d.From)
}

// transfer writes the elements that copies and carries have in common.
func (e *encoder) transfer(id ir.ID, dst, src ir.View, label string, from []ir.ID) {
	e.uint(uint64(id))
	e.view(dst)
	e.view(src)
	e.str(label)
	e.from(from)
}

func (e *encoder) indirect(x *ir.Indirect) {
	if x.Grid == nil {
		e.null()
	} else {
		e.view(*x.Grid)
	}
	e.array(len(x.Offsets))
	for i := range x.Offsets {
		e.array(2)
		e.uint(uint64(x.Offsets[i].Slot))
		e.view(x.Offsets[i].At)
	}
}

func (e *encoder) effects(x *ir.Effects) {
	if x == nil {
		e.null()
		return
	}
	e.array(3)
	e.bool(x.Complete)
	e.array(len(x.Reads))
	for i := range x.Reads {
		r := &x.Reads[i]
		e.array(3 + 2*len(r.Dims))
		e.region(r)
	}
	e.array(len(x.Writes))
	for i := range x.Writes {
		w := &x.Writes[i]
		e.array(4 + 2*len(w.Dims))
		flags := uint64(0)
		if w.Must {
			flags |= writeMust
		}
		if w.Atomic {
			flags |= writeAtomic
		}
		e.uint(flags)
		e.region(&w.Region)
	}
}

func (e *encoder) region(r *ir.Region) {
	e.int(int64(r.Mem))
	e.affine(r.Off)
	e.affine(r.Run)
	for _, d := range r.Dims {
		e.affine(d.Count)
		e.int(d.Stride)
	}
}

func (e *encoder) view(v ir.View) {
	e.array(3)
	e.viewFields(v)
}

func (e *encoder) viewFields(v ir.View) {
	e.int(int64(v.Mem))
	e.affine(v.Off)
	e.affine(v.Len)
}

func (e *encoder) affine(a ir.Affine) {
	ts := a.Terms()
	if len(ts) == 0 {
		e.int(a.Const)
		return
	}
	e.array(1 + 2*len(ts))
	e.int(a.Const)
	for _, t := range ts {
		e.int(int64(t.Param))
		e.int(t.Coeff)
	}
}

func (e *encoder) from(ids []ir.ID) {
	if ids == nil {
		e.null()
		return
	}
	e.array(len(ids))
	for _, id := range ids {
		e.uint(uint64(id))
	}
}
