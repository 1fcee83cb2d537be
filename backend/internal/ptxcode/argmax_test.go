package ptxcode

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
)

// TestArgmaxInTwoSteps runs an argmax in two steps, and in one, on the interpreter of PTX: NaN never wins, the
// maximum of a part is +0 rather than −0, but the two are equal where the place is looked for, and of equal elements
// the first is found.
func TestArgmaxInTwoSteps(t *testing.T) {
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	type kernel struct {
		*ptxrun.Program
		args []string
	}
	kernels := map[string]kernel{}
	for _, name := range []string{"argmax_float32", "max_parts_float32", "argmax_parts_float32"} {
		c, err := s.Find(t.Context(), builtin(name))
		require.NoError(t, err)
		text, err := c.PTX(t.Context(), nvptx.Launch{Values: true})
		require.NoError(t, err)
		// As in TestGemv.
		begin, entry, ok := bytes.Cut(text, []byte(".func"))
		if ok {
			_, entry, _ = bytes.Cut(entry, []byte(".visible .entry"))
			text = append(append(bytes.Clone(begin), ".visible .entry"...), calls.ReplaceAll(entry, []byte("ret;"))...)
		}
		p, err := ptxrun.Parse(text)
		require.NoError(t, err)
		k := kernel{Program: p}
		for i := range c.Kernel.Args {
			if a := &c.Kernel.Args[i]; a.Attribute == "" {
				k.args = append(k.args, a.Name)
			}
		}
		kernels[name] = k
	}
	run := func(m *ptxrun.Memory, name string, groups [3]uint32, threads uint32, values map[string]uint64) {
		t.Helper()
		k := kernels[name]
		var params []uint64
		for _, a := range k.args {
			v, ok := values[a]
			require.True(t, ok, "%s: argument %s", name, a)
			params = append(params, v)
		}
		params = append(params, uint64(groups[0]*threads), uint64(groups[1]), 1, uint64(threads), 1, 1|nvptx.WholeThreadgroups)
		require.NoError(t, k.Run(m, ptxrun.Launch{Params: params, Grid: groups, Block: threads}), name)
	}
	nan, inf, minus := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
	r := rand.New(rand.NewPCG(11, 12))
	pools := [][]float32{{nan}, {-inf, nan}, {minus, 0}, {-1, nan, minus, 0}, {1, 2, 2, nan}, {3, -inf, inf, nan}, {-7, -8, -9}}
	for n := range 40 {
		rows, parts, off := uint32(1+r.IntN(2)), uint32(1+r.IntN(150)), r.IntN(2)
		size := int(16 * parts)
		x := make([]float32, int(rows)*size)
		data := make([]byte, 4*off, 4*(off+len(x)))
		pool := pools[n%len(pools)]
		rare := 1 + r.IntN(40)
		for i := range x {
			if x[i] = pool[0]; r.IntN(rare) == 0 {
				x[i] = pool[r.IntN(len(pool))]
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x[i]))
		}
		top, one, two := make([]byte, 4*rows*parts), make([]byte, 4*rows), make([]byte, 4*rows)
		long := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
		m := &ptxrun.Memory{}
		at := m.Add(data) + uint64(4*off)
		values := map[string]uint64{
			"x": at, "in": at, "top": m.Add(top), "parts": uint64(parts), "shape": m.Add(binary.LittleEndian.AppendUint32(nil, rows)),
			"in_strides": m.Add(long(int64(size))), "out_strides": m.Add(long(1)), "ndim": 1, "axis_stride": 1, "axis_size": uint64(size),
		}
		lanes := min(1024, (parts+127)/128*32)
		values["out"] = m.Add(one)
		run(m, "argmax_float32", [3]uint32{1, rows, 1}, 64, values)
		run(m, "max_parts_float32", [3]uint32{(parts + 63) / 64, rows, 1}, 256, values)
		values["out"] = m.Add(two)
		run(m, "argmax_parts_float32", [3]uint32{rows, 1, 1}, lanes, values)
		for row := range int(rows) {
			best, place := -inf, uint32(0)
			for i, v := range x[row*size : (row+1)*size] {
				if v > best {
					best, place = v, uint32(i)
				}
			}
			require.Equal(t, place, binary.LittleEndian.Uint32(one[4*row:]), "argmax of row %d of %d, %v", row, size, pool)
			require.Equal(t, place, binary.LittleEndian.Uint32(two[4*row:]), "argmax in two steps of row %d of %d, %v", row, size, pool)
			for p := range int(parts) {
				numbers := slices.DeleteFunc(slices.Clone(x[row*size+16*p:][:16]), func(v float32) bool { return v != v })
				want := slices.Max(append(numbers, -inf))
				require.Equal(t, math.Float32bits(want), binary.LittleEndian.Uint32(top[4*(row*int(parts)+p):]), "part %d of row %d, %v", p, row, pool)
			}
		}
	}
}
