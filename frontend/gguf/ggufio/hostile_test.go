package ggufio_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio/ggufwrite"
)

// sample returns a file with an example of everything. Its last byte belongs to a
// tensor, so that every truncation loses something.
func sample(t testing.TB) []byte {
	var w ggufwrite.File
	w.KV("general.architecture", "llama")
	w.KV("general.alignment", uint32(32))
	w.KV("u8", uint8(200))
	w.KV("i64", int64(-5))
	w.KV("f64", 1.5)
	w.KV("yes", true)
	w.KV("strings", []string{"a", "", "ccc"})
	w.KV("ints", []int32{1, -2, 3})
	w.KV("bools", []bool{true, false})
	w.KV("empty", []float32{})
	w.Tensor("scalar", ggufio.F32, nil, make([]byte, 4))
	w.Tensor("norm", ggufio.F32, []uint64{4}, make([]byte, 16))
	w.Tensor("w", ggufio.Q4_1, []uint64{32, 2}, make([]byte, 40))
	b, err := w.Bytes()
	require.NoError(t, err)
	_, err = ggufio.Parse("sample", b)
	require.NoError(t, err)
	return b
}

// check parses b, and checks what the package promises: either an error in the
// documented form with an offset in the file, or a file all of whose parts can be read.
func check(t testing.TB, b []byte) error {
	f, err := ggufio.Parse("F", b)
	if err != nil {
		var e *frontend.Error
		require.True(t, errors.As(err, &e), "%v", err)
		require.True(t, e.Offset >= 0 && e.Offset <= int64(len(b)), "%v (file of %d)", err, len(b))
		require.True(t, strings.HasPrefix(err.Error(), fmt.Sprintf("F: offset %d: ", e.Offset)), "%v", err)
		return err
	}
	for k := range f.KV.Keys() {
		if _, err := f.KV.Value(k); err != nil {
			require.ErrorContains(t, err, "cannot be read", k)
		}
	}
	end := int64(0)
	for _, x := range f.Tensors {
		require.EqualValues(t, x.Size, len(f.Data(x)))
		require.Zero(t, x.Elements()%x.Type.BlockElements())
		require.EqualValues(t, x.Size, x.Elements()/x.Type.BlockElements()*x.Type.BlockBytes())
		end = max(end, x.Offset+x.Size)
	}
	require.LessOrEqual(t, end, int64(len(b)))
	return nil
}

func TestTruncatedAtEveryByte(t *testing.T) {
	b := sample(t)
	for n := range len(b) {
		require.Error(t, check(t, b[:n:n]), "cut to %d of %d bytes", n, len(b))
	}
}

// A flipped byte inside a number or a text cannot be noticed (GGUF has no checksum). So
// either result is right here, as long as it is consistent.
func TestEveryByteFlipped(t *testing.T) {
	b := sample(t)
	refused := 0
	for i := range b {
		old := b[i]
		for v := range 256 {
			b[i] = byte(v)
			if byte(v) != old && check(t, b) != nil {
				refused++
			}
		}
		b[i] = old
	}
	t.Logf("%d of %d single-byte changes are refused", refused, len(b)*255)
	assert.Greater(t, refused, len(b)*255/4)
}

// patch overwrites bytes in a copy.
func patch(b []byte, off int, v []byte) []byte {
	c := append([]byte(nil), b...)
	copy(c[off:], v)
	return c
}

func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// build returns the file that fill adds to.
func build(t *testing.T, fill func(*ggufwrite.File)) []byte {
	var w ggufwrite.File
	fill(&w)
	b, err := w.Bytes()
	require.NoError(t, err)
	return b
}

// oneTensor returns a file with a single tensor "t", whose row starts at byte 24: name
// length 24, name 32, dimension count 33, dims 37, type 37+8n, offset 41+8n.
func oneTensor(t *testing.T, typ ggufio.Type, dims []uint64, data int) []byte {
	return build(t, func(w *ggufwrite.File) { w.Tensor("t", typ, dims, make([]byte, data)) })
}

func TestHostile(t *testing.T) {
	header := func(version uint32, tensors, keys uint64) []byte {
		b := append([]byte("GGUF"), u32(version)...)
		return append(append(b, u64(tensors)...), u64(keys)...)
	}
	// key "k" with the given type and value bytes; the value starts at 24+8+1+4 = 37.
	key := func(typ uint32, value ...byte) []byte {
		b := append(header(3, 0, 1), u64(1)...)
		return append(append(append(b, 'k'), u32(typ)...), value...)
	}
	nested := func(depth int) []byte {
		var v []byte
		for range depth {
			v = append(append(v, u32(9)...), u64(1)...)
		}
		return key(9, append(append(v, u32(0)...), u64(0)...)...)
	}
	f4 := []uint64{4}
	cases := []struct {
		name   string
		data   []byte
		offset int64
		reason string
	}{
		{"empty", nil, 0, "magic needs 4 bytes, 0 are left"},
		{"magic", []byte("GGUX\x03\x00\x00\x00"), 0, `magic is "GGUX", want "GGUF"`},
		{"predecessor", []byte("tjgg\x03\x00\x00\x00"), 0, "this is a GGJT file"},
		{"version 1", header(1, 0, 0), 4, "GGUF version 1 is not supported"},
		{"version 0", header(0, 0, 0), 4, "GGUF version 0 is unknown"},
		{"version 4", header(4, 0, 0), 4, "GGUF version 4 is unknown; versions 2 and 3 are supported"},
		{"big-endian", header(0x03000000, 0, 0), 4, "this is a big-endian GGUF file (version 3)"},
		{"tensor count", header(3, 1<<63, 0), 8, "tensor count is 9223372036854775808, but the 8 bytes left hold at most 0"},
		{"key count", header(3, 0, 1<<40), 16, "key count is 1099511627776, but the 0 bytes left hold at most 0"},
		{"too many keys", append(header(3, 0, 20000), make([]byte, 300000)...), 16, "key count is 20000, at most 16384 are supported"},
		{"too many tensors", append(header(3, 40000, 0), make([]byte, 1100000)...), 8, "tensor count is 40000, at most 32768 are supported"},
		{"key length", patch(key(0, 1), 24, u64(1<<60)), 24, "key 0 is said to be 1152921504606846976 bytes long, 6 are left"},
		{"key too long", append(append(header(3, 0, 1), u64(70000)...), make([]byte, 80000)...), 24, "key 0 is 70000 bytes long, at most 65535 are allowed"},
		{"key empty", append(append(header(3, 0, 1), u64(0)...), make([]byte, 6)...), 24, "key 0 is empty"},
		{"key not ASCII", patch(key(0, 1), 32, []byte{0xff}), 24, "holds byte 0xff; keys are printable ASCII"},
		{"value type", key(13, 0), 33, `value of "k" has type number 13; GGUF has 0 to 12`},
		{"value cut", key(10, 1, 2, 3), 37, `value of "k" needs 8 bytes, 3 are left`},
		{"bool", key(7, 2), 37, `value of "k" is a bool of value 2`},
		{"string length", key(8, u64(5)...), 37, `value of "k" is said to be 5 bytes long, 0 are left`},
		{"array element type", key(9, append(u32(77), u64(0)...)...), 37, `elements of "k" has type number 77`},
		{"array count", key(9, append(u32(4), u64(1<<62)...)...), 41, `element count of "k" is 4611686018427387904, but the 0 bytes left hold at most 0`},
		{"array of strings", key(9, append(append(u32(8), u64(1)...), u64(9)...)...), 49, `string 0 of "k" is said to be 9 bytes long, 0 are left`},
		{"array of bools", key(9, append(append(u32(7), u64(2)...), 1, 3)...), 50, `element 1 of "k" is a bool of value 3`},
		{"nested arrays", nested(4), 37 + 4*12, `"k" nests arrays deeper than 4`},
		{"deeply nested arrays", nested(100_000), 37 + 4*12, `"k" nests arrays deeper than 4`},
		{"duplicate key", build(t, func(w *ggufwrite.File) { w.KV("k", uint8(1)); w.KV("k", "x") }), 38, `key "k" appears a second time; first at offset 24`},
		{"alignment 0", build(t, func(w *ggufwrite.File) { w.KV("general.alignment", uint32(0)) }), 53, "general.alignment is 0, want a power of two"},
		{"alignment 24", build(t, func(w *ggufwrite.File) { w.KV("general.alignment", uint32(24)) }), 53, "general.alignment is 24, want a power of two"},
		{"alignment 2^31", build(t, func(w *ggufwrite.File) { w.KV("general.alignment", uint32(1<<31)) }), 53, "general.alignment is 2147483648"},
		{"alignment type", build(t, func(w *ggufwrite.File) { w.KV("general.alignment", uint64(32)) }), 53, `key "general.alignment" is u64, want u32`},
		{"tensor name empty", patch(oneTensor(t, ggufio.F32, f4, 16), 24, u64(0)), 24, "tensor 0 has no name"},
		{"tensor name too long", build(t, func(w *ggufwrite.File) { w.Tensor(strings.Repeat("n", 65), ggufio.I8, f4, make([]byte, 4)) }), 24, "name of tensor 0 is 65 bytes long, at most 64 are allowed"},
		{"tensor name not UTF-8", patch(oneTensor(t, ggufio.F32, f4, 16), 32, []byte{0xc3}), 24, "is not UTF-8"},
		{"duplicate tensor", build(t, func(w *ggufwrite.File) {
			w.Tensor("t", ggufio.I8, f4, make([]byte, 4))
			w.Tensor("t", ggufio.I8, f4, make([]byte, 4))
		}), 57, `tensor "t" appears a second time; first at offset 24`},
		{"5 dimensions", oneTensor(t, ggufio.I8, []uint64{1, 1, 1, 1, 1}, 1), 33, `tensor "t" has 5 dimensions, at most 4 are allowed`},
		{"dimension 0", oneTensor(t, ggufio.I8, []uint64{4, 0}, 1), 45, `dimension 1 of tensor "t" is 0`},
		{"dims overflow 64 bits", oneTensor(t, ggufio.I8, []uint64{1 << 32, 1 << 32, 1 << 32}, 1), 45, `tensor "t" has more than 9223372036854775807 elements`},
		{"dims wrap to a small size", oneTensor(t, ggufio.I8, []uint64{1 << 63, 2}, 1), 37, `tensor "t" has more than 9223372036854775807 elements`},
		{"bytes overflow 64 bits", oneTensor(t, ggufio.F64, []uint64{1 << 62}, 1), 37, `tensor "t" (F64 [4611686018427387904]) is larger than the file's`},
		{"removed type", oneTensor(t, 4, f4, 16), 45, `tensor "t" has type Q4_2 (4), which ggml removed`},
		{"removed repacked type", oneTensor(t, 31, f4, 16), 45, `tensor "t" has type Q4_0_4_4 (31), which ggml removed`},
		{"unknown type", oneTensor(t, 99, f4, 16), 45, `tensor "t" has type number 99, which is not known here`},
		{"row not in blocks", oneTensor(t, ggufio.Q4_K, []uint64{128, 2}, 144), 37, `tensor "t" (Q4_K) has rows of 128 elements, not a multiple of its block of 256`},
		{"tensor cut short", oneTensor(t, ggufio.F32, f4, 15), 24, `tensor "t" takes bytes 64 to 80; the file has 79 (cut short?)`},
		{"tensor offset absurd", build(t, func(w *ggufwrite.File) { w.TensorAt("t", ggufio.I8, f4, 1<<63, make([]byte, 4)) }), 49, `tensor "t" starts 9223372036854775808 bytes into the data`},
		{"tensor offset not aligned", build(t, func(w *ggufwrite.File) { w.TensorAt("t", ggufio.I8, f4, 8, make([]byte, 40)) }), 49, `tensor "t" starts 8 bytes into the data, not a multiple of the alignment 32`},
		{"tensor outside", build(t, func(w *ggufwrite.File) { w.TensorAt("t", ggufio.I8, f4, 64, make([]byte, 4)) }), 24, `tensor "t" takes bytes 128 to 132; the file has 68`},
		{"overlap", build(t, func(w *ggufwrite.File) {
			w.TensorAt("a", ggufio.I8, []uint64{33}, 0, make([]byte, 33))
			w.TensorAt("b", ggufio.I8, f4, 32, make([]byte, 4))
		}), 57, `tensor "b" at bytes 128 to 132 overlaps "a" at bytes 96 to 129`},
		{"same place", build(t, func(w *ggufwrite.File) {
			w.TensorAt("a", ggufio.I8, f4, 0, make([]byte, 4))
			w.TensorAt("b", ggufio.I8, f4, 0, make([]byte, 4))
		}), 57, `tensor "b" at bytes 96 to 100 overlaps "a" at bytes 96 to 100`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := check(t, c.data)
			require.Error(t, err)
			assert.ErrorContains(t, err, c.reason)
			var e *frontend.Error
			require.True(t, errors.As(err, &e))
			assert.Equal(t, c.offset, e.Offset, "%v", err)
		})
	}
}

// allocated returns how many bytes f allocates, garbage included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestAllocationIsBounded builds the files that cost the most memory for their size.
func TestAllocationIsBounded(t *testing.T) {
	const slack = 10 << 20
	le := binary.LittleEndian
	header := func(tensors, keys uint64) []byte {
		b := le.AppendUint32([]byte("GGUF"), 3)
		return le.AppendUint64(le.AppendUint64(b, tensors), keys)
	}
	name := func(b []byte, i int) []byte {
		b = le.AppendUint64(b, 3)
		return append(b, byte('!'+i/8836%94), byte('!'+i/94%94), byte('!'+i%94))
	}
	manyKeys := header(0, 1<<14)
	for i := range 1 << 14 {
		manyKeys = append(le.AppendUint32(name(manyKeys, i), 0), 7)
	}
	manyTensors := header(1<<15, 0)
	for i := range 1 << 15 {
		manyTensors = le.AppendUint32(name(manyTensors, i), 4)
		for range 4 {
			manyTensors = le.AppendUint64(manyTensors, 1)
		}
		manyTensors = le.AppendUint64(le.AppendUint32(manyTensors, uint32(ggufio.I8)), uint64(32*i))
	}
	manyTensors = append(manyTensors, make([]byte, 32*(1<<15))...)
	array := func(elem uint32, n int, each []byte) []byte {
		b := le.AppendUint64(header(0, 1), 1)
		b = le.AppendUint32(append(b, 'k'), 9)
		b = le.AppendUint64(le.AppendUint32(b, elem), uint64(n))
		for range n {
			b = append(b, each...)
		}
		return b
	}
	cases := []struct {
		name string
		data []byte
		ok   bool
	}{
		{"as many keys as allowed", manyKeys, true},
		{"as many tensors as allowed", manyTensors, true},
		{"as many strings as allowed", array(8, 1<<20, u64(0)), true},
		{"more strings than allowed", array(8, 3<<20, u64(0)), true}, // Strings refuses
		{"a million arrays in an array", array(9, 1<<20, append(u32(0), u64(0)...)), true},
		{"an array count from nowhere", array(4, 0, nil)[:0:0], false},
		{"2^40 tensors", header(1<<40, 0), false},
		{"2^40 keys", header(0, 1<<40), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var err error
			got := allocated(func() {
				var f *ggufio.File
				if f, err = ggufio.Parse("F", c.data); err == nil {
					for k := range f.KV.Keys() {
						f.KV.Value(k) //nolint:errcheck // only its cost matters here
					}
				}
			})
			assert.Equal(t, c.ok, err == nil, "%v", err)
			t.Logf("file %d bytes, allocated %d", len(c.data), got)
			assert.LessOrEqual(t, got, uint64(len(c.data)+slack))
		})
	}
}

func FuzzParse(f *testing.F) {
	b := sample(f)
	f.Add(b)
	f.Add(b[:100])
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b) }) //nolint:errcheck // check fails t itself
}
