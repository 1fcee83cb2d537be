package randomterm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
)

// Launch is one launch of a generated kernel's PTX entry (nvptx.Compile).
type Launch struct {
	// Memory has the contents of the kernel's arguments, in order; Results are the indices of arguments that it writes.
	Memory  [][]byte
	Results []int
	Grid    [3]uint32 // blocks
	Block   uint32    // threads

	// Moves are the parameters, by bit, to which a moving entry adds the number that its table has for the parameter.
	Moves uint64

	moving bool
	values map[int]bool // by argument: it is passed by value
	r      *rand.Rand
	sizes  []uint32 // extents of the grid, followed by those of a threadgroup
}

// NewLaunch draws a launch over some rows and columns, whose elements have any size and include edge cases. In one of
// three launches the grid is whole threadgroups, and the parameters say so.
func NewLaunch(d *decl.Decl, how nvptx.Launch, seed uint64) *Launch {
	r := rand.New(rand.NewPCG(seed, 1))
	l := &Launch{r: r, moving: how.Moving, values: map[int]bool{}, Moves: r.Uint64()}
	rows, columns := 1+r.IntN(5), 40+r.IntN(100)
	group := [3]uint32{32, 2, 1}
	p := elementwise.Compile(d)
	if p.Flat {
		rows, group = 1, [3]uint32{64, 1, 1}
	}
	whole := r.IntN(3) == 0
	if whole {
		columns = (columns + int(group[0]) - 1) / int(group[0]) * int(group[0])
		rows = (rows + int(group[1]) - 1) / int(group[1]) * int(group[1])
	}
	for i, a := range d.Args {
		size := int(a.Elem.Size())
		l.values[i] = how.Values && slices.Contains(p.Constants, a.Slot)
		n := rows * columns
		if a.Mode == decl.Write {
			l.Results = append(l.Results, i)
		} else {
			n = 1
			for _, o := range p.Operands {
				if o.Slot == a.Slot {
					n = map[elementwise.Index]int{elementwise.Full: rows * columns, elementwise.Row: columns, elementwise.Column: rows, elementwise.One: 1}[o.Index]
				}
			}
		}
		b := make([]byte, n*size)
		for k := range n {
			var e [8]byte
			binary.LittleEndian.PutUint64(e[:], element(r, a.Elem))
			copy(b[k*size:][:size], e[:])
		}
		l.Memory = append(l.Memory, b)
	}
	l.Moves &= 1<<(len(d.Args)+3) - 1 // the extents of a threadgroup are never moved
	l.sizes = append([]uint32{uint32(columns), uint32(rows), 1}, group[:]...)
	if whole {
		l.sizes[5] |= nvptx.WholeThreadgroups
	}
	l.Block = group[0] * group[1] * group[2]
	for i := range l.Grid {
		l.Grid[i] = (l.sizes[i] + group[i] - 1) / group[i]
		if how.Moving {
			l.Grid[i]++ // also launch threadgroups outside of the grid
		}
	}
	return l
}

// Threads returns the number of threads in the grid.
func (l *Launch) Threads() int { return int(l.sizes[0] * l.sizes[1] * l.sizes[2]) }

// element draws a number of any size, or an edge case.
func element(r *rand.Rand, t ir.DType) uint64 {
	switch {
	case t == ir.BF16 && r.IntN(4) == 0:
		return one(r, []uint64{0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x3f80})
	case t == ir.BF16:
		return uint64(uint16(r.Uint32()))
	case t == ir.F16:
		if r.IntN(4) == 0 {
			return one(r, []uint64{0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x3c00})
		}
		return uint64(uint16(r.Uint32()))
	}
	switch r.IntN(4) {
	case 0:
		return one(r, []uint64{0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x3f800000})
	case 1:
		return uint64(r.Uint32())
	}
	return uint64(math.Float32bits(float32(r.NormFloat64() * 4)))
}

// Params returns the parameters of the entry, for arguments at the given addresses. For a moving entry, table has the
// numbers to add, without which the parameters are wrong; its address and Moves are two more parameters.
func (l *Launch) Params(addresses []uint64) (params []uint64, table []byte) {
	add := func(v uint64, mask uint64) {
		by := uint64(0)
		if l.moving {
			some := l.r.Uint64()
			table = binary.LittleEndian.AppendUint64(table, some)
			if l.Moves>>len(params)&1 != 0 {
				by = some
			}
		}
		params = append(params, (v-by)&mask)
	}
	for i, at := range addresses {
		if l.values[i] {
			var word [8]byte
			copy(word[:], l.Memory[i])
			at = binary.LittleEndian.Uint64(word[:])
		}
		add(at, math.MaxUint64)
	}
	for _, n := range l.sizes {
		add(uint64(n), math.MaxUint32)
	}
	return params, table
}
