package ggufio_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	parser "github.com/gpustack/gguf-parser-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio/ggufwrite"
)

// demoModel is the path of SmolLM2-135M-Instruct Q4_1.
func demoModel(t testing.TB) string {
	path := os.Getenv("MODEL")
	if path == "" {
		path = filepath.Join("..", "..", "..", "testdata", "model", "SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	_, err := os.Stat(path)
	require.NoError(t, err, "these tests need the demo model: set MODEL, or put it at testdata/model")
	return path
}

// TestDemoModelAgainstParser compares all metadata and the whole tensor table
// with what github.com/gpustack/gguf-parser-go reads.
func TestDemoModelAgainstParser(t *testing.T) {
	path := demoModel(t)
	f, err := ggufio.Open(path)
	require.NoError(t, err)
	defer f.Close()
	want, err := parser.ParseGGUFFile(path)
	require.NoError(t, err)

	assert.EqualValues(t, want.Header.Version, f.Version)
	assert.EqualValues(t, want.TensorDataStartOffset, f.DataStart)

	require.Equal(t, len(want.Header.MetadataKV), f.KV.Len())
	keys := slices.Collect(f.KV.Keys())
	for i, kv := range want.Header.MetadataKV {
		require.Equal(t, kv.Key, keys[i], "key %d", i)
		got, err := f.KV.Value(kv.Key)
		require.NoError(t, err)
		typ, elem, n, ok := f.KV.Type(kv.Key)
		require.True(t, ok)
		assert.EqualValues(t, kv.ValueType, typ, kv.Key)
		if typ != ggufio.Array {
			assert.Equal(t, kv.Value, got, kv.Key)
			continue
		}
		arr := kv.ValueArray()
		assert.EqualValues(t, arr.Type, elem, kv.Key)
		assert.EqualValues(t, arr.Len, n, kv.Key)
		switch got := got.(type) {
		case []string:
			assert.Empty(t, cmp.Diff(arr.ValuesString(), got), kv.Key)
		case []int32:
			assert.Empty(t, cmp.Diff(arr.ValuesInt32(), got), kv.Key)
		default:
			t.Errorf("%s: array of %s, which this comparison does not handle", kv.Key, elem)
		}
	}

	require.Equal(t, len(want.TensorInfos), len(f.Tensors))
	for i, w := range want.TensorInfos {
		g := f.Tensors[i]
		assert.Equal(t, w.Name, g.Name)
		assert.Equal(t, w.Dimensions, g.Dims, w.Name)
		assert.Equal(t, w.Type.String(), g.Type.String(), w.Name)
		assert.EqualValues(t, want.TensorDataStartOffset+int64(w.Offset), g.Offset, w.Name)
		assert.EqualValues(t, w.Bytes(), g.Size, w.Name)
		assert.EqualValues(t, w.Elements(), g.Elements(), w.Name)
		assert.EqualValues(t, g.Size, len(f.Data(g)), w.Name)
	}
}

// TestDemoModelFacts pins facts about the model that were established with other
// tools, so that the two parsers cannot be wrong together.
func TestDemoModelFacts(t *testing.T) {
	f, err := ggufio.Open(demoModel(t))
	require.NoError(t, err)
	defer f.Close()
	assert.EqualValues(t, 3, f.Version)
	assert.EqualValues(t, 32, f.Alignment)
	assert.EqualValues(t, 1_785_664, f.DataStart)
	assert.Equal(t, 33, f.KV.Len())
	assert.Len(t, f.Tensors, 272)
	byType := map[ggufio.Type]int{}
	total := int64(0)
	for _, x := range f.Tensors {
		byType[x.Type]++
		total += x.Size
	}
	assert.Equal(t, map[ggufio.Type]int{ggufio.Q4_1: 210, ggufio.F32: 61, ggufio.Q8_0: 1}, byType)
	assert.EqualValues(t, 96_576_768, total)
	q, ok := f.Tensor("blk.0.attn_q.weight")
	require.True(t, ok)
	assert.Equal(t, "0f30d8b9458765406f65164b677664502267655a", hex.EncodeToString(f.Data(q)[:20]))
	_, ok = f.Tensor("output.weight")
	assert.False(t, ok, "the head is tied to the embedding")
}

func TestTypesAgainstParser(t *testing.T) {
	for n := range uint32(64) {
		got := ggufio.Type(n)
		want, ok := parser.GGMLType(n).Trait()
		// The other library keeps sizes for layouts that ggml has withdrawn.
		if got.Removed() || !ok {
			assert.False(t, got.Known(), "%s", got)
			continue
		}
		assert.Equal(t, parser.GGMLType(n).String(), got.String())
		assert.Equal(t, want.BlockSize, got.BlockElements(), "%s", got)
		assert.Equal(t, want.TypeSize, got.BlockBytes(), "%s", got)
	}
	assert.Equal(t, "type(99)", ggufio.Type(99).String())
}

// drawValue draws one value of a type that ggufwrite can write.
func drawValue(t *rapid.T, label string) any {
	str := rapid.StringN(0, 8, 32)
	f32 := rapid.Float32()
	gens := []*rapid.Generator[any]{
		rapid.Uint8().AsAny(), rapid.Int8().AsAny(), rapid.Uint16().AsAny(), rapid.Int16().AsAny(),
		rapid.Uint32().AsAny(), rapid.Int32().AsAny(), rapid.Uint64().AsAny(), rapid.Int64().AsAny(),
		f32.AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(), str.AsAny(),
		rapid.SliceOfN(rapid.Uint8(), 0, 5).AsAny(), rapid.SliceOfN(rapid.Int8(), 0, 5).AsAny(),
		rapid.SliceOfN(rapid.Uint16(), 0, 5).AsAny(), rapid.SliceOfN(rapid.Int16(), 0, 5).AsAny(),
		rapid.SliceOfN(rapid.Uint32(), 0, 5).AsAny(), rapid.SliceOfN(rapid.Int32(), 0, 5).AsAny(),
		rapid.SliceOfN(rapid.Uint64(), 0, 5).AsAny(), rapid.SliceOfN(rapid.Int64(), 0, 5).AsAny(),
		rapid.SliceOfN(f32, 0, 5).AsAny(), rapid.SliceOfN(rapid.Float64(), 0, 5).AsAny(),
		rapid.SliceOfN(rapid.Bool(), 0, 5).AsAny(), rapid.SliceOfN(str, 0, 5).AsAny(),
	}
	return rapid.OneOf(gens...).Draw(t, label)
}

// TestReadsWhatIsWritten checks that any pairs and tensors come back equal and in
// order.
func TestReadsWhatIsWritten(t *testing.T) {
	types := []ggufio.Type{ggufio.F32, ggufio.F16, ggufio.Q4_1, ggufio.Q8_0, ggufio.Q6_K, ggufio.I8, ggufio.Q1_0}
	rapid.Check(t, func(t *rapid.T) {
		w := ggufwrite.File{Version: rapid.SampledFrom([]uint32{2, 3}).Draw(t, "version")}
		align := rapid.SampledFrom([]uint32{1, 8, 32, 64, 4096}).Draw(t, "alignment")
		w.KV("general.alignment", align)
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9_.]{0,20}`), 0, 8, rapid.ID[string]).Draw(t, "keys")
		values := make([]any, len(keys))
		for i, k := range keys {
			values[i] = drawValue(t, "value")
			w.KV(k, values[i])
		}
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 12, 64), 0, 6, rapid.ID[string]).Draw(t, "names")
		var dims [][]uint64
		var datas [][]byte
		for _, n := range names {
			typ := rapid.SampledFrom(types).Draw(t, "type")
			d := rapid.SliceOfN(rapid.Uint64Range(1, 3), 1, 4).Draw(t, "dims")
			d[0] *= typ.BlockElements()
			size := typ.BlockBytes()
			for i, x := range d {
				if i == 0 {
					x /= typ.BlockElements()
				}
				size *= x
			}
			data := rapid.SliceOfN(rapid.Byte(), int(size), int(size)).Draw(t, "data")
			dims, datas = append(dims, d), append(datas, data)
			w.Tensor(n, typ, d, data)
		}
		b, err := w.Bytes()
		require.NoError(t, err)
		f, err := ggufio.Parse("x.gguf", b)
		require.NoError(t, err)
		assert.Equal(t, append([]string{"general.alignment"}, keys...), slices.Collect(f.KV.Keys()))
		for i, k := range keys {
			got, err := f.KV.Value(k)
			require.NoError(t, err)
			assert.Equal(t, values[i], got, k)
		}
		require.Len(t, f.Tensors, len(names))
		for i, x := range f.Tensors {
			assert.Equal(t, names[i], x.Name)
			assert.Equal(t, dims[i], x.Dims)
			assert.Equal(t, datas[i], f.Data(x))
			assert.Zero(t, x.Offset%int64(align))
		}
	})
}

func TestScalarTensorAndNaN(t *testing.T) {
	var w ggufwrite.File
	w.KV("nan", math.Float32frombits(0x7fc0_1234))
	w.Tensor("scalar", ggufio.F32, nil, []byte{1, 2, 3, 4})
	b, err := w.Bytes()
	require.NoError(t, err)
	f, err := ggufio.Parse("x", b)
	require.NoError(t, err)
	v, err := f.KV.Float32("nan")
	require.NoError(t, err)
	assert.EqualValues(t, 0x7fc0_1234, math.Float32bits(v), "bits of a NaN are kept")
	assert.EqualValues(t, 1, f.Tensors[0].Elements())
	assert.Equal(t, []byte{1, 2, 3, 4}, f.Data(f.Tensors[0]))
}

func TestAccessorErrors(t *testing.T) {
	var w ggufwrite.File
	w.KV("a.string", "x")
	w.KV("a.count", uint32(7))
	w.KV("a.list", []string{"p", "q"})
	b, err := w.Bytes()
	require.NoError(t, err)
	f, err := ggufio.Parse("m.gguf", b)
	require.NoError(t, err)

	_, err = f.KV.Uint32("a.nothing")
	assert.EqualError(t, err, `m.gguf: key "a.nothing" is missing (want u32)`)
	assert.ErrorIs(t, err, ggufio.ErrMissing)
	_, err = f.KV.Value("a.nothing")
	assert.ErrorIs(t, err, ggufio.ErrMissing)
	// 24 header + 8 length + 8 key + 4 type: the value starts at 44.
	_, err = f.KV.Uint32("a.string")
	assert.EqualError(t, err, `m.gguf: offset 44: key "a.string" is string, want u32`)
	assert.NotErrorIs(t, err, ggufio.ErrMissing)
	_, err = f.KV.Int32("a.count")
	assert.ErrorContains(t, err, `key "a.count" is u32, want i32`)
	_, err = f.KV.Strings("a.count")
	assert.ErrorContains(t, err, `key "a.count" is u32, want array of string`)
	_, err = f.KV.Float32s("a.list")
	assert.ErrorContains(t, err, `key "a.list" is array of string, want array of f32`)
	_, err = f.KV.String("a.list")
	assert.ErrorContains(t, err, `key "a.list" is array of string, want string`)
	var e *frontend.Error
	require.True(t, errors.As(err, &e))
	assert.Equal(t, "m.gguf", e.File)
	assert.True(t, f.KV.Has("a.list"))
	assert.False(t, f.KV.Has("a.nothing"))
}

func TestOpenAndClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	var w ggufwrite.File
	w.KV("k", "v")
	w.Tensor("t", ggufio.I8, []uint64{3}, []byte{1, 2, 3})
	require.NoError(t, w.WriteFile(path))
	f, err := ggufio.Open(path)
	require.NoError(t, err)
	d := f.Data(f.Tensors[0])
	assert.Equal(t, []byte{1, 2, 3}, d)
	assert.Equal(t, 3, cap(d), "an append must not reach the next tensor")
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "second Close")
	_, err = f.KV.String("k")
	assert.ErrorContains(t, err, "after Close")
	assert.Panics(t, func() { f.Data(f.Tensors[0]) })

	_, err = ggufio.Open(path + ".absent")
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("GGUF\x01\x00\x00\x00"), 0o600))
	_, err = ggufio.Open(path)
	assert.EqualError(t, err, fmt.Sprintf("%s: offset 4: GGUF version 1 is not supported (its lengths have 32 bits); convert the model again to version 3", path))
}
