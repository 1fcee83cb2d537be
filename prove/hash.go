package prove

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/ir"
)

// hasher gives each command of a graph a hash of what it computes. The hash is made of the
// command's own form and of the hashes of the writes that it reads. Equal hashes prove nothing;
// they say which commands are worth comparing.
type hasher struct {
	m      *model
	t      *readings
	seed   maphash.Seed
	writes []uint64 // by write
	buf    []byte
}

func newHasher(m *model, t *readings, seed maphash.Seed) *hasher {
	return &hasher{m: m, t: t, seed: seed, writes: make([]uint64, len(m.writes))}
}

func (h *hasher) num(v int64) { h.buf = binary.LittleEndian.AppendUint64(h.buf, uint64(v)) }

func (h *hasher) text(s string) {
	h.num(int64(len(s)))
	h.buf = append(h.buf, s...)
}

func (h *hasher) affine(a ir.Affine) {
	h.num(a.Const)
	h.num(int64(len(a.Terms())))
	for _, t := range a.Terms() {
		h.num(int64(t.Param))
		h.num(t.Coeff)
	}
}

// op returns the hash of op i. Those of all earlier ops must have been noted.
func (h *hasher) op(i int32) uint64 {
	o := &h.m.ops[i]
	h.buf = h.buf[:0]
	h.num(int64(o.era))
	h.command(o.node)
	for k := o.rlo; k < o.rhi; k++ {
		h.reading(k)
	}
	return maphash.Bytes(h.seed, h.buf)
}

// note gives the writes of op i their hashes, given the hash `what` of what it
// computes.
func (h *hasher) note(i int32, what uint64) {
	o := &h.m.ops[i]
	for w := o.wlo; w < o.whi; w++ {
		h.writes[w] = mix.Word(what, uint64(w-o.wlo))
	}
}

// command adds a node to the hash, except for where its views lie.
func (h *hasher) command(n ir.Node) {
	switch n := n.(type) {
	case *ir.Copy:
		h.text("copy")
		h.affine(n.Src.Len)
	case *ir.Carry:
		h.text("carry")
		h.affine(n.Src.Len)
	case *ir.Fill:
		h.text("fill")
		h.num(int64(n.Value))
		h.affine(n.Dst.Len)
	case *ir.Dispatch:
		k := &h.m.g.Kernels[n.Kernel]
		h.text(k.Function)
		h.num(int64(k.Library.Kind))
		h.buf = append(h.buf, k.Library.Digest[:]...)
		for _, c := range k.Constants {
			h.num(int64(c.Index))
			h.num(int64(c.Bits))
		}
		for j := range n.Grid {
			h.affine(n.Grid[j].Num)
			h.num(n.Grid[j].Div)
			h.num(int64(n.Threadgroup[j]))
		}
		if n.Counts() != nil {
			h.text("counts")
		}
		for j := range n.Bindings {
			b := n.Bindings[j]
			if h.m.arguments {
				b = h.m.g.Resolve(b)
			}
			h.num(int64(b.Slot))
			h.text(string(b.Bytes))
			h.affine(b.Expr)
			if b.Kind == ir.BindView {
				h.affine(b.View.Len)
			}
		}
	}
}

func (h *hasher) reading(k int32) {
	m, r := h.m, h.t.reading(k)
	h.affine(m.region(r.at).Run)
	if r.initial && !r.given() {
		h.text(m.g.Memories[r.at.mem].Name)
		h.affine(m.off(r.at))
	}
	// Writes that do not overlap may stand in any order, so their hashes are added up.
	sum := uint64(0)
	for _, w := range r.last() {
		x := mix.Word(h.writes[w], 1)
		d := m.off(&m.writes[w].access).Sub(m.off(r.at))
		sum += d.Hash(x)
	}
	h.num(int64(sum))
	h.num(int64(len(r.writes)))
}

// last returns the writes of a reading, or only the last ones if they are many.
func (r *reading) last() []int32 {
	const most = 16
	if r.part == nil || len(r.writes) <= most {
		return r.writes
	}
	return r.writes[len(r.writes)-most:]
}
