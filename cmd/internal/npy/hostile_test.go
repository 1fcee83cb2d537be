package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// file returns a version 1 file with the given header and elements.
func file(header, elements string) []byte {
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), elements...)
}

// Offsets count from the file's first byte; the header begins at 10.
func TestReadErrors(t *testing.T) {
	const ok = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "offset 0: unexpected EOF: the magic string and version wants 8 bytes, 0 are there"},
		{"magic", "\x93NUMPX\x01\x00", `offset 0: magic string is "\x93NUMPX", want "\x93NUMPY"`},
		{"version", magic + "\x04\x00", "offset 6: version is 4.0, want 1.0, 2.0 or 3.0"},
		{"minor version", magic + "\x01\x01", "offset 6: version is 1.1, want 1.0, 2.0 or 3.0"},
		{"length", magic + "\x01\x00\x01", "offset 9: unexpected EOF: the header's length wants 2 bytes, 1 are there"},
		{"long header", magic + "\x02\x00\x00\x00\x01\x00", "offset 8: header has 65536 bytes, the limit is 65535"},
		{"short header", magic + "\x03\x00\x05\x00\x00\x00{", "offset 13: unexpected EOF: the header wants 5 bytes, 1 are there"},
		{"short elements", string(file(ok, "1234567")), "offset 67: shape (2,) of float32 wants 8 bytes, 7 follow the header"},
		{"no dictionary", string(file("[]", "")), `offset 10: found '[', want '{' to begin the header`},
		{"empty header", string(file("", "")), `offset 10: the header ends, want '{' to begin the header`},
		{"no keys", string(file("{}", "")), "offset 12: the header ends without descr"},
		{"no shape", string(file("{'descr':'<f4','fortran_order':True}", "")), "offset 46: the header ends without shape"},
		{"twice", string(file("{'descr':'<f4','descr':'<f4'}", "")), `offset 25: key "descr" comes twice`},
		{"unknown key", string(file("{'shape':(), 'x':1}", "")), `offset 23: key "x" is not one of descr, fortran_order and shape`},
		{"no comma", string(file("{'shape':() 'x':1}", "")), `offset 22: found '\'', want ',' or '}' after a value`},
		{"two commas", string(file("{'shape':(),,}", "")), `offset 22: found ',', want a string`},
		{"comma first", string(file("{,}", "")), `offset 11: found ',', want a string`},
		{"no colon", string(file("{'shape' ()}", "")), `offset 19: found '(', want ':' after a key`},
		{"key without quotes", string(file("{shape: ()}", "")), `offset 11: found 's', want a string`},
		{"open string", string(file("{'shape", "")), "offset 17: the header ends within a string"},
		{"mixed quotes", string(file(`{'shape": ()}`, "")), "offset 23: the header ends within a string"},
		{"escape", string(file(`{'sh\x61pe': ()}`, "")), `offset 14: found '\\' in a string, want at most 64 plain characters`},
		{"long string", string(file("{'"+strings.Repeat("x", 99)+"'}", "")), `offset 76: found 'x' in a string, want at most 64 plain characters`},
		{"structured", string(file("{'descr': [('a', '<f4')]}", "")), `offset 20: found '[', want a string: structured types are not supported`},
		{"complex", string(file("{'descr': '<c8'}", "")), `offset 20: type "<c8" is not one of b1, i1 to i8, u1 to u8, f2, f4 and f8 after a byte order`},
		{"object", string(file("{'descr': '|O'}", "")), `offset 20: type "|O" is not one of b1, i1 to i8, u1 to u8, f2, f4 and f8 after a byte order`},
		{"size", string(file("{'descr': '<f3'}", "")), `offset 20: type "<f3" is not one of b1, i1 to i8, u1 to u8, f2, f4 and f8 after a byte order`},
		{"no byte order", string(file("{'descr': '|f4'}", "")), `offset 20: type "|f4" has no byte order: want < or > before f4`},
		{"native byte order", string(file("{'descr': '=f4'}", "")), `offset 20: type "=f4" has no byte order: want < or > before f4`},
		{"bool", string(file("{'fortran_order': true}", "")), `offset 28: found 't', want True or False`},
		{"bool as number", string(file("{'fortran_order': 0}", "")), `offset 28: found '0', want True or False`},
		{"shape as number", string(file("{'shape': 3}", "")), `offset 20: found '3', want '(' to begin the shape`},
		{"shape as list", string(file("{'shape': [3]}", "")), `offset 20: found '[', want '(' to begin the shape`},
		{"single without comma", string(file("{'shape': (3)}", "")), `offset 22: found ')', want ',' after a single dimension`},
		{"negative", string(file("{'shape': (-3,)}", "")), `offset 21: found '-', want a dimension`},
		{"float", string(file("{'shape': (3.0,)}", "")), `offset 22: found '.', want ',' in the shape`},
		{"hex", string(file("{'shape': (0x3,)}", "")), `offset 22: found 'x', want ',' in the shape`},
		{"octal", string(file("{'shape': (03,)}", "")), `offset 21: dimension 03 is not a number from 0 to 9223372036854775807`},
		{"great", string(file("{'shape': (9223372036854775808,)}", "")), `offset 21: dimension 9223372036854775808 is not a number from 0 to 9223372036854775807`},
		{"very great", string(file("{'shape': ("+strings.Repeat("9", 1000)+",)}", "")), `offset 21: dimension 999999999999999999999999… is not a number from 0 to 9223372036854775807`},
		{"nested", string(file("{'shape': ((3,),)}", "")), `offset 21: found '(', want a dimension`},
		{"dimensions", string(file("{'shape': ("+strings.Repeat("1,", 65)+")}", "")), `offset 149: the shape has more than 64 dimensions`},
		{"open shape", string(file("{'shape': (3,", "")), `offset 23: the header ends, want a dimension`},
		{"product", string(file("{'descr':'<f8','fortran_order':False,'shape':(4294967296,4294967296)}", "")),
			"offset 79: shape (4294967296, 4294967296) of float64 has more than 9223372036854775807 bytes"},
		{"product and zero", string(file("{'descr':'<f8','fortran_order':False,'shape':(0,4294967296,4294967296)}", "")),
			"offset 81: shape (0, 4294967296, 4294967296) of float64 has more than 9223372036854775807 bytes"},
		{"rest", string(file(ok+" \n x", "")), `offset 70: found 'x' after the header's '}'`},
		{"two dictionaries", string(file(ok+ok, "")), `offset 67: found '{' after the header's '}'`},
		{"code", string(file("{'shape': (len('x'),)}", "")), `offset 21: found 'l', want a dimension`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.file))
			require.EqualError(t, err, "npy: "+c.want)
			path := filepath.Join(t.TempDir(), "a.npy")
			require.NoError(t, os.WriteFile(path, []byte(c.file), 0o666))
			_, err = Load(path)
			require.EqualError(t, err, "npy: "+path+": "+c.want)
		})
	}
}

// Spellings that NumPy does not write, but reads as the same.
func TestReadTolerates(t *testing.T) {
	want := &Array{Uint16, []int{2}, []byte("abcd")}
	for _, header := range []string{
		"{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}",
		"{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }   \n",
		`{"shape":(2,),"descr":"<u2","fortran_order":False,}`,
		"  {\t'fortran_order'\n:True , 'shape':( 2 , ),'descr':'<u2'\r\n}",
		"{'descr': '<u2', 'fortran_order': False, 'shape': (2L,), }",
	} {
		got, err := Read(bytes.NewReader(file(header, "abcd")))
		require.NoError(t, err, header)
		assert.Equal(t, want, got, header)
	}
	got, err := Read(bytes.NewReader(file("{'descr':'>i1','fortran_order':True,'shape':(2,3,),}", "abcdef")))
	require.NoError(t, err)
	assert.Equal(t, &Array{Int8, []int{2, 3}, []byte("acebdf")}, got)
}

func TestLoadErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	_, err := Load(path)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "npy: ")
	require.NoError(t, os.WriteFile(path, file("{'descr':'<u2','fortran_order':False,'shape':(2,)}", "abcdefg"), 0o666))
	_, err = Load(path)
	assert.EqualError(t, err, "npy: "+path+": offset 60: shape (2,) of uint16 wants 4 bytes, 7 follow the header")
	var e *Error
	require.True(t, errors.As(err, &e))
	assert.Equal(t, int64(60), e.Offset)
	assert.Equal(t, path, e.File)
}

// A file cut short at any byte is an error, whether it is read with a known size, as a
// stream or as a file.
func TestTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	for _, name := range []string{"f4_le.npy", "i2_be_fortran.npy", "shape_2x3_v2.npy", "shape_1x2x1x3x2_v3.npy"} {
		whole, err := os.ReadFile(filepath.Join(testdata, name))
		require.NoError(t, err)
		for n := range len(whole) {
			var e *Error
			for _, r := range []io.Reader{bytes.NewReader(whole[:n]), stream{bytes.NewReader(whole[:n])}} {
				_, err := Read(r)
				require.ErrorAs(t, err, &e, "%s, %d bytes", name, n)
				require.LessOrEqual(t, e.Offset, int64(n))
			}
			require.NoError(t, os.WriteFile(path, whole[:n], 0o666))
			_, err := Load(path)
			require.ErrorAs(t, err, &e, "%s, %d bytes", name, n)
		}
	}
}

// stream hides the length of what it reads.
type stream struct{ io.Reader }

// With any bit, or all bits, of a byte flipped, a file gives an error or an array that
// makes sense.
func TestFlipped(t *testing.T) {
	for _, name := range []string{"f4_le.npy", "i2_be_fortran.npy", "shape_2x3_v2.npy", "shape_scalar_v3.npy"} {
		whole, err := os.ReadFile(filepath.Join(testdata, name))
		require.NoError(t, err)
		for i := range whole {
			for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
				b := bytes.Clone(whole)
				b[i] ^= flip
				sensible(t, b)
			}
		}
	}
}

// sensible reads b with and without a known length, compares the results, and checks
// the array.
func sensible(t testing.TB, b []byte) {
	a, err := Read(bytes.NewReader(b))
	a2, err2 := Read(stream{bytes.NewReader(b)})
	if err != nil {
		var e *Error
		require.ErrorAs(t, err, &e)
		require.GreaterOrEqual(t, e.Offset, int64(0))
		require.LessOrEqual(t, e.Offset, int64(len(b)))
		require.Error(t, err2)
		return
	}
	require.NoError(t, err2)
	require.Equal(t, a, a2)
	require.NoError(t, a.check())
	var w bytes.Buffer
	require.NoError(t, Write(&w, a))
	again, err := Read(&w)
	require.NoError(t, err)
	require.Equal(t, a, again)
}

// allocated returns how many bytes f allocates, freed ones included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A shape costs no memory before its bytes were read.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	elements := strings.Repeat("x", 3<<20)
	for _, shape := range []string{"(1000000000000,)", "(9223372036854775807,)", "(3000,1000000)", "(3145729,)", "(2,1572865)"} {
		for _, order := range []string{"False", "True"} {
			b := file("{'descr':'|u1','fortran_order':"+order+",'shape':"+shape+"}", elements)
			path := filepath.Join(dir, "a.npy")
			require.NoError(t, os.WriteFile(path, b, 0o666))
			limit := uint64(len(b) + 1<<20)
			var err error
			got := allocated(func() { _, err = Read(bytes.NewReader(b)) })
			require.Error(t, err)
			assert.Less(t, got, uint64(1<<20), "sized, %s", shape)
			got = allocated(func() { _, err = Read(stream{bytes.NewReader(b)}) })
			require.Error(t, err)
			assert.Less(t, got, limit, "stream, %s", shape)
			got = allocated(func() { _, err = Load(path) })
			require.Error(t, err)
			assert.Less(t, got, uint64(1<<20), "file, %s", shape)
		}
	}
	// A valid file costs its own size, in either order of elements.
	for _, order := range []string{"False", "True"} {
		b := file("{'descr':'<u2','fortran_order':"+order+",'shape':(3,524288)}", elements)
		path := filepath.Join(dir, "b.npy")
		require.NoError(t, os.WriteFile(path, b, 0o666))
		var err error
		got := allocated(func() { _, err = Load(path) })
		require.NoError(t, err)
		assert.Less(t, got, uint64(len(b)+1<<20))
		_, err = Read(stream{bytes.NewReader(b)})
		require.NoError(t, err)
	}
	// The header claims a great length that the file does not have.
	for _, b := range []string{magic + "\x02\x00\xff\xff\xff\xff", magic + "\x02\x00\xff\xff\x00\x00"} {
		var err error
		got := allocated(func() { _, err = Read(stream{strings.NewReader(b)}) })
		require.Error(t, err)
		assert.Less(t, got, uint64(1<<20))
	}
}

func FuzzRead(f *testing.F) {
	for path := range numpyFiles(f) {
		b, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add(file("{'descr':'<f8','fortran_order':True,'shape':(0,4294967296,2)}", ""))
	f.Fuzz(func(t *testing.T, b []byte) { sensible(t, b) })
}
