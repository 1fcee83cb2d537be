package prove

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// matching says for every command after, in order, which commands before it is
// meant to implement; none where nobody knows. It is a hint: nothing is
// believed because of it.
type matching struct {
	ends []int32 // by command: where its list ends
	list []int32
}

func (m *matching) of(i int32) []int32 {
	from := int32(0)
	if i > 0 {
		from = m.ends[i-1]
	}
	return m.list[from:m.ends[i]:m.ends[i]]
}

// end ends the list of the next command, which began at from.
func (m *matching) end(from int) {
	if set := m.list[from:]; len(set) > 1 {
		slices.Sort(set)
		m.list = m.list[:from+len(slices.Compact(set))]
	}
	m.ends = append(m.ends, int32(len(m.list)))
}

func (m *matching) equal(n *matching) bool {
	return slices.Equal(m.ends, n.ends) && slices.Equal(m.list, n.list)
}

// byProvenance reads the matching that the graph after carries.
func byProvenance(b *model, after *ir.Graph) *matching {
	out := &matching{ends: make([]int32, 0, len(b.ops)), list: make([]int32, 0, len(b.ops))}
	for _, n := range after.Nodes {
		id, ok := ir.NodeID(n)
		if !ok {
			continue
		}
		first := len(out.list)
		add := func(f ir.ID) bool {
			j, ok := b.byID.find(f)
			out.list = append(out.list, j)
			return ok
		}
		known := true
		for _, f := range ir.NodeFrom(n) {
			known = add(f) && known
		}
		if len(out.list) == first {
			known = add(id)
		}
		if !known {
			out.list = out.list[:first]
		}
		out.end(first)
	}
	return out
}

// byStructure guesses a matching of graphs whose provenance is lost or wrong:
// commands are alike that are the same command and read the results of alike
// commands at the same places. Commands that are alike are matched in order.
func byStructure(b *model, after *ir.Graph) *matching {
	a := recordedModel(b.ctx, after, b)
	seed := maphash.MakeSeed()
	names := map[uint64][]int32{}
	for i, h := range hashes(b, seed) {
		names[h] = append(names[h], int32(i))
	}
	out := &matching{}
	for _, h := range hashes(a, seed) {
		from := len(out.list)
		if list := names[h]; len(list) > 0 {
			out.list = append(out.list, list[0])
			names[h] = list[1:]
		}
		out.end(from)
	}
	return out
}

// hashes gives each command a number that says what it computes.
func hashes(m *model, seed maphash.Seed) []uint64 {
	out := make([]uint64, len(m.ops))
	h := newHistory(m)
	var buf []byte
	num := func(v int64) { buf = binary.LittleEndian.AppendUint64(buf, uint64(v)) }
	text := func(s string) {
		num(int64(len(s)))
		buf = append(buf, s...)
	}
	affine := func(a ir.Affine) {
		num(a.Const)
		num(int64(len(a.Terms())))
		for _, t := range a.Terms() {
			num(int64(t.Param))
			num(t.Coeff)
		}
	}
	for i := range m.ops {
		o := &m.ops[i]
		buf = buf[:0]
		num(int64(o.era))
		switch n := o.node.(type) {
		case *ir.Copy:
			text("copy")
			affine(n.Src.Len)
		case *ir.Fill:
			text("fill")
			num(int64(n.Value))
			affine(n.Dst.Len)
		case *ir.Dispatch:
			k := &m.g.Kernels[n.Kernel]
			text(k.Function)
			num(int64(k.Library.Kind))
			buf = append(buf, k.Library.Digest[:]...)
			for _, c := range k.Constants {
				num(int64(c.Index))
				num(int64(c.Bits))
			}
			for j := range n.Grid {
				affine(n.Grid[j].Num)
				num(n.Grid[j].Div)
				num(int64(n.Threadgroup[j]))
			}
			for j := range n.Bindings {
				x := &n.Bindings[j]
				num(int64(x.Slot))
				text(string(x.Bytes))
				affine(x.Expr)
				if x.Kind == ir.BindView {
					affine(x.View.Len)
				}
			}
		}
		for k := o.rlo; k < o.rhi; k++ {
			r := h.reading(&m.reads[k], h.read(&m.reads[k]))
			affine(m.region(r.at).Run)
			if r.initial {
				text(m.g.Memories[r.at.mem].Name)
				affine(m.off(r.at))
			}
			// Writes that lie apart may have come in any order.
			sum := uint64(0)
			for _, nr := range r.writes {
				w := &m.writes[nr]
				at := len(buf)
				affine(m.off(&w.access).Sub(m.off(r.at)))
				num(int64(nr - m.ops[w.op].wlo))
				num(int64(out[w.op]))
				sum += maphash.Bytes(seed, buf[at:])
				buf = buf[:at]
			}
			num(int64(sum))
		}
		out[i] = maphash.Bytes(seed, buf)
		if !o.known {
			h.pillar()
		}
		for w := o.wlo; w < o.whi; w++ {
			h.add(w)
		}
	}
	return out
}
