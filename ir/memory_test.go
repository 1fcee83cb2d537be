package ir_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// The first outputs of SplitMix64 for the seed 1234567, as published with the
// generator's reference implementation.
func TestRandomContentsAreSplitMix64(t *testing.T) {
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821}
	got := make([]byte, 8*len(want))
	require.NoError(t, ir.Init{Kind: ir.InitRandom, Seed: 1234567}.Write(got))
	for i, w := range want {
		require.Equal(t, w, binary.LittleEndian.Uint64(got[8*i:]))
	}
	for n := range 17 { // a shorter memory holds a prefix
		part := make([]byte, n)
		require.NoError(t, ir.Init{Kind: ir.InitRandom, Seed: 1234567}.Write(part))
		require.Equal(t, got[:n], part)
	}
}

func TestContents(t *testing.T) {
	dst := []byte{9, 9, 9, 9, 9, 9}
	require.NoError(t, ir.Init{}.Write(dst))
	require.Equal(t, []byte{9, 9, 9, 9, 9, 9}, dst, "undefined contents are left alone")
	require.NoError(t, ir.FillU32(0x04030201).Write(dst))
	require.Equal(t, []byte{1, 2, 3, 4, 1, 2}, dst)
	require.NoError(t, ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob([]byte("abcdef"))}.Write(dst))
	require.Equal(t, "abcdef", string(dst))
	require.EqualError(t, ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob([]byte("abc"))}.Write(dst), "initial contents have 3 bytes, memory has 6")
	require.EqualError(t, ir.Init{Kind: ir.InitBlob, Blob: ir.ExternalBlob("w.bin", 8, 6, ir.Digest{})}.Write(dst),
		`contents of "w.bin" [8:14] are not loaded: open the graph together with that file`)
}

func TestBlob(t *testing.T) {
	const sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc", FIPS 180-2
	b := ir.NewBlob([]byte("abc"))
	require.Equal(t, sha, b.Digest.String())
	require.True(t, b.Loaded())
	require.NoError(t, b.Verify())

	x := ir.ExternalBlob("w.bin", 8, 3, b.Digest)
	require.False(t, x.Loaded())
	require.EqualError(t, x.Verify(), `contents of "w.bin" [8:11] are not loaded: open the graph together with that file`)
	require.EqualError(t, x.Attach([]byte("abcd")), "blob of 3 bytes attached to 4 bytes")
	require.False(t, x.Loaded())
	require.NoError(t, x.Attach([]byte("abd")))
	require.EqualError(t, x.Verify(), `"w.bin" [8:11]: sha256 is a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9, the graph was recorded with `+sha)
	require.NoError(t, x.Attach([]byte("abc")))
	require.NoError(t, x.Verify())
	data, err := x.Bytes()
	require.NoError(t, err)
	require.Equal(t, "abc", string(data))

	lying := ir.MappedBlob([]byte("abd"), b.Digest)
	require.EqualError(t, lying.Verify(), "embedded contents: sha256 is a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9, the graph was recorded with "+sha)

	require.True(t, b.Equal(ir.NewBlob([]byte("abc"))))
	require.True(t, b.Equal(lying), "digests decide")
	require.True(t, (*ir.Blob)(nil).Equal(nil))
	for _, o := range []*ir.Blob{nil, x, ir.NewBlob([]byte("abd")), ir.ExternalBlob("", 8, 3, b.Digest), ir.ExternalBlob("", 0, 4, b.Digest)} {
		require.False(t, b.Equal(o))
	}
}

func TestRoot(t *testing.T) {
	b := ir.NewBuilder("g")
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 100})
	x := b.Alias("x", s, 10, 50)
	y := b.Alias("y", x, 7, 20)
	g, err := b.Graph()
	require.NoError(t, err)
	for m, want := range map[ir.MemID]int64{s: 0, x: 10, y: 17} {
		root, off := g.Root(m)
		require.Equal(t, s, root)
		require.Equal(t, want, off)
	}
}

// Random f32 contents are numbers: the top 24 bits of each word w of the raw
// contents as w/2^23 − 1. Other types, and other contents, are left as they are.
func TestRandomF32ContentsAreUniform(t *testing.T) {
	raw, got := make([]byte, 4098), make([]byte, 4098)
	in := ir.Init{Kind: ir.InitRandom, Seed: 7}
	require.NoError(t, in.Write(raw))
	m := ir.Memory{DType: ir.F32, Init: in}
	require.NoError(t, m.WriteInit(got))
	var sum float64
	for i := 0; i+4 <= len(got); i += 4 {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(got[i:])))
		require.Equal(t, float64(binary.LittleEndian.Uint32(raw[i:])>>8)/(1<<23)-1, v)
		require.True(t, v >= -1 && v < 1)
		sum += v
	}
	require.Less(t, math.Abs(sum/1024), 0.1) // five standard deviations
	require.Equal(t, raw[4096:], got[4096:], "bytes past the last number")

	m.DType = ir.U32
	require.NoError(t, m.WriteInit(got))
	require.Equal(t, raw, got)
	m = ir.Memory{DType: ir.F32, Init: ir.FillU32(0x3f800000)}
	require.NoError(t, m.WriteInit(got[:4]))
	require.Equal(t, []byte{0, 0, 0x80, 0x3f}, got[:4])
	m.Init = ir.Init{Kind: ir.InitBlob, Blob: ir.ExternalBlob("w", 0, 4, ir.Digest{})}
	require.Error(t, m.WriteInit(got[:4]))
}
