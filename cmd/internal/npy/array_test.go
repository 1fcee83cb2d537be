package npy

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOf(t *testing.T) {
	a, err := Of([]int16{1, -2, 3, 4, 5, 6}, 2, 3)
	require.NoError(t, err)
	assert.Equal(t, &Array{Int16, []int{2, 3}, []byte{1, 0, 0xfe, 0xff, 3, 0, 4, 0, 5, 0, 6, 0}}, a)
	assert.Equal(t, 6, a.Len())
	a, err = Of([]float32{7})
	require.NoError(t, err)
	assert.Equal(t, 1, a.Len(), "a single element has no dimension")

	_, err = Of([]int16{1, 2, 3}, 2, 2)
	assert.EqualError(t, err, "npy: shape (2, 2) of int16 wants 8 bytes, Data has 6")
	_, err = Of([]bool{}, -1)
	assert.EqualError(t, err, "npy: shape (-1,) has a negative dimension")
	_, err = Of([]float64{}, 0, 1<<40, 1<<40)
	assert.EqualError(t, err, "npy: shape (0, 1099511627776, 1099511627776) of float64 has more than 9223372036854775807 bytes")
	_, err = Of([]float64{}, make([]int, 65)...)
	assert.EqualError(t, err, "npy: shape has 65 dimensions, the limit is 64")
}

// All element types survive Of, Save, Load and their accessor.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 5).Draw(t, "shape")
		n := (&Array{Shape: shape}).Len()
		through := func(a *Array, err error) *Array {
			require.NoError(t, err)
			require.NoError(t, Save(path, a))
			b, err := Load(path)
			require.NoError(t, err)
			require.Equal(t, a.DType, b.DType)
			require.Equal(t, append([]int{}, shape...), b.Shape)
			return b
		}
		f32 := rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "f32")
		got32, err := through(Of(f32, shape...)).Float32s()
		require.NoError(t, err)
		require.Equal(t, f32, got32)
		wide, err := through(Of(f32, shape...)).Float64s()
		require.NoError(t, err)
		for i := range f32 {
			require.Equal(t, float64(f32[i]), wide[i])
		}
		f64 := rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "f64")
		got64, err := through(Of(f64, shape...)).Float64s()
		require.NoError(t, err)
		require.Equal(t, f64, got64)
		b := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "bool")
		gotBool, err := through(Of(b, shape...)).Bools()
		require.NoError(t, err)
		require.Equal(t, b, gotBool)
		integers(t, rapid.SliceOfN(rapid.Int8(), n, n).Draw(t, "i8"), shape, through)
		integers(t, rapid.SliceOfN(rapid.Int16(), n, n).Draw(t, "i16"), shape, through)
		integers(t, rapid.SliceOfN(rapid.Int32(), n, n).Draw(t, "i32"), shape, through)
		integers(t, rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "i64"), shape, through)
		integers(t, rapid.SliceOfN(rapid.Uint8(), n, n).Draw(t, "u8"), shape, through)
		integers(t, rapid.SliceOfN(rapid.Uint16(), n, n).Draw(t, "u16"), shape, through)
		integers(t, rapid.SliceOfN(rapid.Uint32(), n, n).Draw(t, "u32"), shape, through)
		integers(t, rapid.SliceOfN(rapid.Uint64Max(math.MaxInt64), n, n).Draw(t, "u64"), shape, through)
	})
}

func integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](
	t *rapid.T, v []T, shape []int, through func(*Array, error) *Array,
) {
	got, err := through(Of(v, shape...)).Int64s()
	require.NoError(t, err)
	for i := range v {
		require.Equal(t, int64(v[i]), got[i])
	}
}

// Accessors refuse types that they could convert only with loss.
func TestAccessorTypes(t *testing.T) {
	a, err := Of([]float64{1})
	require.NoError(t, err)
	_, err = a.Float32s()
	assert.EqualError(t, err, "npy: array of float64, want one of [float32 float16]")
	_, err = a.Int64s()
	assert.ErrorContains(t, err, "npy: array of float64, want one of [int64 ")
	_, err = a.Bools()
	assert.EqualError(t, err, "npy: array of float64, want one of [bool]")
	a, err = Of([]int32{1})
	require.NoError(t, err)
	_, err = a.Float64s()
	assert.EqualError(t, err, "npy: array of int32, want one of [float64 float32 float16]")
	a, err = Of([]uint64{3, math.MaxUint64}, 2)
	require.NoError(t, err)
	_, err = a.Int64s()
	assert.EqualError(t, err, "npy: element 1, 18446744073709551615, is more than an int64 holds")
	_, err = (&Array{Float32, []int{3}, make([]byte, 11)}).Float32s()
	assert.EqualError(t, err, "npy: shape (3,) of float32 wants 12 bytes, Data has 11")
	_, err = (&Array{Shape: []int{0}}).Bools()
	assert.EqualError(t, err, "npy: DType(0) is no element type")
}

// Every half is compared with the formula.
func TestFloat16(t *testing.T) {
	for h := range 1 << 16 {
		sign := 1 - 2*float64(h>>15)
		exp, frac := h>>10&31, float64(h&1023)
		want := sign * math.Ldexp(1+frac/1024, exp-15)
		switch {
		case exp == 0:
			want = sign * math.Ldexp(frac, -24)
		case exp == 31 && frac == 0:
			want = math.Inf(int(sign))
		case exp == 31:
			require.True(t, math.IsNaN(float64(float16(uint16(h)))), "%#04x", h)
			continue
		}
		require.Equal(t, want, float64(float16(uint16(h))), "%#04x", h)
		require.Equal(t, h>>15 == 1, math.Signbit(float64(float16(uint16(h)))), "%#04x", h)
	}
}

func TestSaveErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.npy")
	good, err := Of([]uint8{1, 2}, 2)
	require.NoError(t, err)
	require.NoError(t, Save(path, good))

	bad := &Array{Uint8, []int{3}, []byte{1, 2}}
	assert.EqualError(t, Save(path, bad), "npy: "+path+": not written: shape (3,) of uint8 wants 3 bytes, Data has 2")
	got, err := Load(path)
	require.NoError(t, err)
	assert.Equal(t, good, got, "the old file is whole")

	err = Save(filepath.Join(dir, "none", "a.npy"), good)
	assert.True(t, errors.Is(err, os.ErrNotExist), "%v", err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o777))
	assert.Error(t, Save(filepath.Join(dir, "taken"), good))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2, "nothing half-written: %v", left)
}

func TestWriteErrors(t *testing.T) {
	good, err := Of([]uint8{1, 2}, 2)
	require.NoError(t, err)
	assert.EqualError(t, Write(limited(0), good), "npy: header: full")
	assert.EqualError(t, Write(limited(1), good), "npy: elements: full")
}

// limited is a writer that takes that many writes and then fails.
type limited int

var errFull = errors.New("full")

func (l limited) Write(p []byte) (int, error) {
	if l == 0 || len(p) < 64 {
		return 0, errFull
	}
	return len(p), nil
}
