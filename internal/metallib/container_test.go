package metallib_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
)

var smallNames = []string{"gg1_copybool_bool_", "rmsfloat32", "gemv_wide_bfloat16_nv2_kl16"}

// A library that package metallibs wrote is read like those of Apple's tools.
func TestSmall(t *testing.T) {
	data := metallibs.Small(t, smallNames...)
	lib, err := metallib.Parse("small.metallib", data)
	require.NoError(t, err)
	require.NoError(t, lib.Verify(context.Background()))
	assert.Equal(t, [2]int{2, 7}, lib.Version)
	assert.Equal(t, [2]int{14, 0}, lib.System)
	whole := metallibs.Open(t, "0.32.4")
	require.Len(t, lib.Kernels, 3)
	for i, name := range smallNames {
		k := &lib.Kernels[i]
		assert.Equal(t, name, k.Name)
		from, err := whole.Kernel(name)
		require.NoError(t, err)
		assert.Equal(t, from.Hash, k.Hash)
		assert.Equal(t, from.Size, k.Size)
		got, err := lib.Describe(name)
		require.NoError(t, err)
		want, err := whole.Describe(name)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		a, err := lib.Bitcode(name)
		require.NoError(t, err)
		b, err := whole.Bitcode(name)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(a, b))
	}
	_, err = lib.Describe("nobody")
	assert.EqualError(t, err, `small.metallib has no kernel "nobody"`)

	functions := metallibs.Functions(t, smallNames...)
	functions[1].Type = 1
	lib, err = metallib.Parse("f", metallibs.Write(functions))
	require.NoError(t, err)
	assert.Equal(t, []int{2, 1}, []int{len(lib.Kernels), lib.Skipped})
	_, err = lib.Bitcode("rmsfloat32")
	assert.EqualError(t, err, `f: function "rmsfloat32" is no kernel`)

	lib, err = metallib.Parse("none", metallibs.Write(nil))
	require.NoError(t, err)
	assert.Empty(t, lib.Kernels)
}

// at returns the offset of the n-th occurrence of text, counted from 0.
func at(t *testing.T, data []byte, text string, n int) int {
	from := 0
	for {
		i := bytes.Index(data[from:], []byte(text))
		require.GreaterOrEqual(t, i, 0, "no %q", text)
		if from += i; n == 0 {
			return from
		}
		n--
		from++
	}
}

// A malformed library is an error with file, offset and reason.
func TestRefused(t *testing.T) {
	small := metallibs.Small(t, smallNames...)
	le := binary.LittleEndian
	put32 := func(b []byte, at int, v uint32) { le.PutUint32(b[at:], v) }
	put64 := func(b []byte, at int, v uint64) { le.PutUint64(b[at:], v) }
	const list = 88
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		want string
	}{
		{"empty", func(b []byte) []byte { return nil }, "x.metallib: offset 0: is no Metal library: it is empty"},
		{"text", func(b []byte) []byte { return []byte("hello") }, `x.metallib: offset 0: is no Metal library: it does not begin with "MTLB"`},
		{"a wheel", func(b []byte) []byte { return []byte("PK\x03\x04abc") }, "ZIP archive"},
		{"a model", func(b []byte) []byte { return []byte("GGUF\x03") }, "a GGUF model"},
		{"a graph", func(b []byte) []byte { return []byte("mlxt 1\n") }, "a graph as text"},
		{"a header", func(b []byte) []byte { return b[:87] }, "offset 87: the file ends in its header, which has 88 bytes"},
		{"a version", func(b []byte) []byte { b[6] = 3; return b }, "offset 6: a container of version 3.7, version 2 is expected"},
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, "it was cut"},
		{"longer", func(b []byte) []byte { return append(b, 0) }, "something was appended"},
		{"list behind the file", func(b []byte) []byte { put64(b, 24, 1<<40); return b }, "offset 24: the list of functions: "},
		{"list in the header", func(b []byte) []byte { put64(b, 24, 16); return b }, "do not lie behind the header"},
		{"list too long", func(b []byte) []byte { put64(b, 32, 1<<63); return b }, "offset 24: the list of functions: 9223372036854775808 bytes from offset 88"},
		{"list of the whole file", func(b []byte) []byte { put64(b, 32, uint64(len(b)-88)); return b }, "ends 4 bytes behind the file"},
		{"bitcode wraps around", func(b []byte) []byte { put64(b, 72, 1<<64-1); return b }, "offset 72: bitcode: "},
		{"many functions", func(b []byte) []byte { put32(b, list, 1<<32-1); return b }, "offset 88: 4294967295 functions are listed in"},
		{"one function more", func(b []byte) []byte { put32(b, list, 4); return b }, "the list of functions ends after 3 of 4"},
		{"one function less", func(b []byte) []byte { put32(b, list, 2); return b }, "bytes follow the last function of the list"},
		{"a long entry", func(b []byte) []byte { put32(b, list+4, 1<<31); return b }, "offset 92: a function's entry has 2147483648 bytes"},
		{"a short entry", func(b []byte) []byte { put32(b, list+4, 7); return b }, "offset 92: a function's entry has 7 bytes"},
		{"an entry that ends early", func(b []byte) []byte { put32(b, list+4, 12); return b }, "offset 96: record \"NAME\" has "},
		{"a long record", func(b []byte) []byte { copy(b[at(t, b, "NAME", 0)+4:], "\xff\xff"); return b }, "offset 96: record \"NAME\" has 65535 bytes"},
		{"records without end", func(b []byte) []byte { copy(b[at(t, b, "ENDT", 0):], "MORE"); return b }, "record \"MORE\" has no length"},
		{"records end early", func(b []byte) []byte { copy(b[at(t, b, "MDSZ", 0):], "ENDT"); return b }, "bytes follow the records of the function"},
		{"no digest", func(b []byte) []byte { copy(b[at(t, b, "HASH", 1):], "HUSH"); return b }, `kernel "rmsfloat32": the function has no record "HASH"`},
		{"no name", func(b []byte) []byte { copy(b[at(t, b, "NAME", 1):], "NOME"); return b }, `the function has no record "NAME"`},
		{"two sizes", func(b []byte) []byte { copy(b[at(t, b, "RFLT", 0):], "MDSZ"); return b }, `a second record "MDSZ"`},
		{"a long type", func(b []byte) []byte { copy(b[at(t, b, "RFLT", 0):], "TYPE"); return b }, `second record "TYPE"`},
		{"a digest of 8 bytes", func(b []byte) []byte {
			copy(b[at(t, b, "HASH", 0):], "HUSH")
			copy(b[at(t, b, "RFLT", 0):], "HASH")
			return b
		}, `record "HASH" has 8 bytes, 32 are expected`},
		{"a name without end", func(b []byte) []byte { b[at(t, b, "rmsfloat32\x00", 0)+10] = 'x'; return b }, "a name does not end in NUL"},
		{"a name with an end inside", func(b []byte) []byte { b[at(t, b, "rmsfloat32\x00", 0)+4] = 0; return b }, "is no text"},
		{"a name that is no text", func(b []byte) []byte { b[at(t, b, "rmsfloat32\x00", 0)+4] = 0xff; return b }, "is no text"},
		{"bitcode outside", func(b []byte) []byte { put64(b, at(t, b, "MDSZ", 1)+6, 1<<32); return b }, `kernel "rmsfloat32": 4294967296 bytes of bitcode from`},
		{"bitcode of half of everything", func(b []byte) []byte { put64(b, at(t, b, "MDSZ", 1)+6, 1<<63); return b }, "bitcode of 9223372036854775808 bytes"},
		{"bitcode behind the section", func(b []byte) []byte {
			i := at(t, b, "MDSZ", 2) + 6
			put64(b, i, le.Uint64(b[i:])+1)
			return b
		}, `kernel "gemv_wide_bfloat16_nv2_kl16": 9841 bytes of bitcode from 9360 lie outside the section of 19200 bytes`},
		{"bitcode from far away", func(b []byte) []byte { put64(b, at(t, b, "OFFT", 1)+6+16, 1<<64-8); return b }, "lie outside the section"},
		{"metadata from far away", func(b []byte) []byte { put64(b, at(t, b, "OFFT", 1)+6, 1<<64-8); return b }, "public metadata at 18446744073709551608 lies outside"},
		{"one name twice", func(b []byte) []byte {
			f := metallibs.Functions(t, "rmsfloat32", "rmsfloat32")
			return metallibs.Write(f)
		}, `kernel "rmsfloat32": another function has this name`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.edit(bytes.Clone(small))
			_, err := metallib.Parse("x.metallib", b)
			var e *metallib.Error
			require.ErrorAs(t, err, &e)
			assert.Contains(t, e.Error(), c.want)
			assert.LessOrEqual(t, e.Offset, int64(len(b)))
		})
	}
}

// Damage to one kernel is an error of that kernel alone, and of Verify.
func TestDamagedKernels(t *testing.T) {
	small := metallibs.Small(t, smallNames...)
	open := func(b []byte) *metallib.Library {
		lib, err := metallib.Parse("x.metallib", b)
		require.NoError(t, err)
		return lib
	}
	flipped := bytes.Clone(small)
	flipped[len(flipped)-100] ^= 4 // in the last kernel
	lib := open(flipped)
	_, err := lib.Describe(smallNames[0])
	require.NoError(t, err)
	for _, err := range []error{
		func() error { _, err := lib.Bitcode(smallNames[2]); return err }(),
		func() error { _, err := lib.Describe(smallNames[2]); return err }(),
		lib.Verify(context.Background()),
	} {
		assert.ErrorContains(t, err, `kernel "gemv_wide_bfloat16_nv2_kl16": its`)
		assert.ErrorContains(t, err, "the file is damaged")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, lib.Verify(ctx), context.Canceled)

	functions := metallibs.Functions(t, smallNames...)
	fail := func(want string, edit func(f []metallibs.Function)) {
		t.Helper()
		f := slices.Clone(functions)
		for i := range f {
			f[i].Bitcode, f[i].Constants = bytes.Clone(f[i].Bitcode), bytes.Clone(f[i].Constants)
		}
		edit(f)
		lib := open(metallibs.Write(f))
		_, err := lib.Describe(f[2].Name)
		var e *metallib.Error
		require.ErrorAs(t, err, &e)
		assert.ErrorContains(t, err, want)
		assert.Equal(t, f[2].Name, e.Kernel)
	}
	fail(`the bitcode has the kernel "gemv_wide_bfloat16_nv2_kl16"`, func(f []metallibs.Function) { f[2].Name = "other" })
	fail("is no LLVM bitcode", func(f []metallibs.Function) { f[2].Bitcode = []byte("none") })
	fail("the library lists the function constants [], the bitcode has", func(f []metallibs.Function) { f[2].Constants = nil })
	fail("the library lists the function constants [{gemv_wide_has_batch 5 bool}", func(f []metallibs.Function) { f[2].Constants[2+len("gemv_wide_has_batch")+2] = 5 })
	fail("the list of function constants ends too early", func(f []metallibs.Function) { f[2].Constants = f[2].Constants[:9] })
	fail("the list of function constants ends too early", func(f []metallibs.Function) { f[2].Constants = []byte{0} })
	fail("has the unknown type 0x99", func(f []metallibs.Function) { f[2].Constants[2+len("gemv_wide_has_batch")+1] = 0x99 })
	fail("bitcode: block", func(f []metallibs.Function) { // the length of the module's block
		i := bytes.Index(f[2].Bitcode, []byte("BC\xc0\xde"))
		binary.LittleEndian.PutUint32(f[2].Bitcode[i+8:], 1<<20)
	})
}

// Randomly damaged libraries are read or refused, without a panic.
func TestRandomDamage(t *testing.T) {
	small := metallibs.Small(t, smallNames...)
	r := rand.New(rand.NewPCG(3, 4))
	try := func(b []byte) {
		lib, err := metallib.Parse("x", b)
		if err != nil {
			return
		}
		for i := range lib.Kernels {
			_, _ = lib.Describe(lib.Kernels[i].Name)
		}
	}
	end := at(t, small, "BC\xc0\xde", 0)
	for range 5000 {
		b := bytes.Clone(small)
		for range 1 + r.IntN(3) {
			b[r.IntN(end)] = byte(r.Uint32())
		}
		try(b)
	}
	for n := range end {
		b := bytes.Clone(small[:n])
		if n >= 24 {
			binary.LittleEndian.PutUint64(b[16:], uint64(n)) // so that not all are refused because of their size
		}
		try(b)
	}
}

// FuzzParse feeds libraries that are nearly right.
func FuzzParse(f *testing.F) {
	f.Add(metallibs.Small(f, smallNames[:2]...))
	f.Add(metallibs.Small(f, smallNames[2]))
	f.Add(metallibs.Write(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		lib, err := metallib.Parse("x", data)
		if (err == nil) == (lib == nil) {
			t.Fatal("a library or an error")
		}
		if lib == nil {
			return
		}
		for i := range min(len(lib.Kernels), 10) {
			_, _ = lib.Describe(lib.Kernels[i].Name)
		}
		_ = lib.Verify(context.Background())
	})
}

// Opening a library copies its names, and nothing else of it.
func TestOpeningIsCheap(t *testing.T) {
	data := metallibs.Bytes(t, "0.32.4")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	lib, err := metallib.Parse("mlx", data)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, lib.Kernels, 17248)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

func BenchmarkParse(b *testing.B) {
	data := metallibs.Bytes(b, "0.32.4")
	for b.Loop() {
		if _, err := metallib.Parse("mlx", data); err != nil {
			b.Fatal(err)
		}
	}
}

// All kernels of a library, one after another.
func BenchmarkDescribe(b *testing.B) {
	lib := metallibs.Open(b, "0.32.4")
	for b.Loop() {
		for i := range lib.Kernels {
			if _, err := lib.Describe(lib.Kernels[i].Name); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(lib.Kernels)), "µs/kernel")
}

func BenchmarkVerify(b *testing.B) {
	lib := metallibs.Open(b, "0.32.4")
	for b.Loop() {
		if err := lib.Verify(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// Several goroutines may use one library.
func TestConcurrentUse(t *testing.T) {
	lib := metallibs.Open(t, "0.32.4")
	want, err := lib.Describe("rmsfloat32")
	require.NoError(t, err)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				k, err := lib.Describe("rmsfloat32")
				assert.NoError(t, err)
				assert.Equal(t, want, k)
				_, err = lib.Describe(lib.Kernels[(w*1000+i)%len(lib.Kernels)].Name)
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
}
