package record_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// wordsOf are numbers as elements of u32 or i32.
func wordsOf(v ...uint32) (out []byte) {
	for _, v := range v {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

// A slice begins where memory says, and stays within its array.
func TestSlicesAtPlacesInMemory(t *testing.T) {
	for _, c := range []struct{ start, at uint32 }{{0, 0}, {2, 2}, {3, 3}, {4, 3}, {1 << 30, 3}, {0xffffffff, 0}} { // the last one is −1
		s := record.New("t", record.Live(cpu.New(1)))
		x, start := s.State("x", ir.U32, 5, 3), s.Input("start", ir.I32, 1)
		y := s.Output("y", ir.U32, 2, 3)
		var first []uint32
		for i := range uint32(15) {
			first = append(first, i)
		}
		require.NoError(t, s.Write(x, wordsOf(first...)))
		require.NoError(t, s.Write(start, wordsOf(c.start)))
		s.SliceAt(x, start, []int{0}, []int64{2, 3}, record.Into(y))
		// The first row that was read is written where a slice of one row begins.
		s.UpdateAt(x, y.Rows(ir.Const(0), ir.Const(1)), start, []int{0})
		_, err := s.Finish()
		require.NoError(t, err)
		got, err := s.Bytes(y)
		require.NoError(t, err)
		require.Equal(t, wordsOf(first[3*c.at:3*c.at+6]...), got)
		got, err = s.Bytes(x)
		require.NoError(t, err)
		to := min(c.start, 4) // a slice of one row reaches further
		if c.start > 1<<31 {
			to = 0
		}
		want := append([]uint32(nil), first...)
		copy(want[3*to:3*to+3], first[3*c.at:])
		require.Equal(t, wordsOf(want...), got)
		require.NoError(t, s.Close())
	}
}

func TestWrongPlaces(t *testing.T) {
	for _, c := range []struct {
		do   func(s *record.Session, x, at record.Tensor)
		want string
	}{
		{func(s *record.Session, x, at record.Tensor) { s.SliceAt(x, at, []int{0}, []int64{6, 3}) }, "a slice [6 3] of"},
		{func(s *record.Session, x, at record.Tensor) { s.SliceAt(x, at, []int{2}, []int64{1, 3}) }, "has no axes [2]"},
		{func(s *record.Session, x, at record.Tensor) { s.SliceAt(x, at, []int{0, 1}, []int64{1, 3}) }, "want an i32 for each"},
		{func(s *record.Session, x, at record.Tensor) { s.SliceAt(x, at, []int{0}, []int64{3}) }, "as many in both"},
		{func(s *record.Session, x, at record.Tensor) { s.SliceAt(x, x, []int{0}, []int64{1, 3}) }, "want an i32 for each"},
		{func(s *record.Session, x, at record.Tensor) { s.SliceAt(at, at, []int{0}, []int64{1}) }, "takes u32 or f16, not i32"},
		{func(s *record.Session, x, at record.Tensor) { s.UpdateAt(x.Transpose(0, 1), x, at, []int{0}) }, "row-contiguous memory to write into"},
		{func(s *record.Session, x, at record.Tensor) { s.UpdateAt(x, s.Input("h", ir.F16, 1, 3), at, []int{0}) }, "want one type"},
	} {
		s := record.New("t")
		c.do(s, s.State("x", ir.U32, 5, 3), s.Input("at", ir.I32, 1))
		require.ErrorContains(t, s.Err(), c.want)
	}
}

// MLX's operations on integers need no compiled library.
func TestIntegersWithoutALibrary(t *testing.T) {
	a, b := []uint32{7, 0xffffffff, 1 << 31, 5}, []uint32{3, 2, 1 << 31, 33}
	for name, want := range map[string][]uint32{
		"add": {10, 1, 0, 38}, "subtract": {4, 0xfffffffd, 0, 0xffffffe4}, "multiply": {21, 0xfffffffe, 0, 165},
		"maximum": {7, 0xffffffff, 1 << 31, 33}, "minimum": {3, 2, 1 << 31, 5},
		"bitwise_and": {3, 2, 1 << 31, 1}, "bitwise_or": {7, 0xffffffff, 1 << 31, 37}, "bitwise_xor": {4, 0xfffffffd, 0, 36},
		"left_shift": {56, 0xfffffffc, 1 << 31, 10}, "right_shift": {0, 0x3fffffff, 1 << 31, 2},
	} {
		s := record.New("t", record.Live(cpu.New(1)))
		x, y := s.Input("a", ir.U32, 2, 2), s.Input("b", ir.U32, 2, 2)
		require.NoError(t, s.Write(x, wordsOf(a...)))
		require.NoError(t, s.Write(y, wordsOf(b...)))
		z := s.Output("z", ir.U32, 2, 2)
		s.MLX().Elementwise(name, []record.Tensor{x, y}, record.Into(z))
		_, err := s.Finish()
		require.NoError(t, err)
		got, err := s.Bytes(z)
		require.NoError(t, err)
		require.Equal(t, wordsOf(want...), got, name)
		require.NoError(t, s.Close())
	}
}
