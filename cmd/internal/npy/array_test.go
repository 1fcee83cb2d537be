package npy

import (
	"encoding/binary"
	"errors"
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
	a, err = Of([]float32{7})
	require.NoError(t, err)
	assert.Equal(t, &Array{Float32, nil, []byte{0, 0, 0xe0, 0x40}}, a, "a single element has no dimension")

	_, err = Of([]int16{1, 2, 3}, 2, 2)
	assert.EqualError(t, err, "npy: shape (2, 2) of int16 wants 8 bytes, Data has 6")
	_, err = Of([]bool{}, -1)
	assert.EqualError(t, err, "npy: shape (-1,) has a negative dimension")
	_, err = Of([]float64{}, 0, 1<<40, 1<<40)
	assert.EqualError(t, err, "npy: shape (0, 1099511627776, 1099511627776) of float64 has more than 9223372036854775807 bytes")
	_, err = Of([]float64{}, make([]int, 65)...)
	assert.EqualError(t, err, "npy: shape has 65 dimensions, the limit is 64")
}

// All element types survive Of, Save and Load.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 5).Draw(t, "shape")
		survives(t, path, shape, rapid.Float32())
		survives(t, path, shape, rapid.Float64())
		survives(t, path, shape, rapid.Bool())
		survives(t, path, shape, rapid.Int8())
		survives(t, path, shape, rapid.Int16())
		survives(t, path, shape, rapid.Int32())
		survives(t, path, shape, rapid.Int64())
		survives(t, path, shape, rapid.Uint8())
		survives(t, path, shape, rapid.Uint16())
		survives(t, path, shape, rapid.Uint32())
		survives(t, path, shape, rapid.Uint64())
	})
}

func survives[T Element](t *rapid.T, path string, shape []int, of *rapid.Generator[T]) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v, got := rapid.SliceOfN(of, n, n).Draw(t, "elements"), make([]T, n)
	a, err := Of(v, shape...)
	require.NoError(t, err)
	require.NoError(t, Save(path, a))
	b, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, a.DType, b.DType)
	require.Equal(t, append([]int{}, shape...), b.Shape)
	_, err = binary.Decode(b.Data, binary.LittleEndian, got)
	require.NoError(t, err)
	require.Equal(t, v, got)
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
