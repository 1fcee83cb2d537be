package mlxg_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// slack is how many bytes opening a hostile file may allocate, apart from a multiple of the
// file's size.
const slack = 10 << 20

// openMeasured opens data. The test fails if opening panics, allocates too much, or returns
// an error that does not have the promised form.
func openMeasured(t *testing.T, data []byte, verify bool, what string) (*ir.Module, error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := mlxg.OpenBytes(context.Background(), "g.mlxg", data, mlxg.OpenOptions{Verify: verify})
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(len(data)+slack); got > most {
		t.Fatalf("%s: opening %d bytes allocates %d, at most %d", what, len(data), got, most)
	}
	if err != nil && !strings.HasPrefix(err.Error(), "mlxg: g.mlxg: ") {
		t.Fatalf("%s: error does not name the file: %v", what, err)
	}
	return m, err
}

func smallFile(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, mlxg.Write(context.Background(), &b, smallModule(t), mlxg.WriteOptions{}))
	return b.Bytes()
}

func TestTruncatedAtEveryByte(t *testing.T) {
	data := smallFile(t)
	for n := range data {
		_, err := openMeasured(t, data[:n], false, fmt.Sprintf("first %d bytes", n))
		require.Error(t, err, "first %d bytes", n)
	}
	_, err := openMeasured(t, append(bytes.Clone(data), 0), false, "one byte more")
	require.ErrorContains(t, err, "its last section ends at byte")
}

// Opening finds every flipped bit, except in bytes that it does not read, where Verify finds
// it.
func TestEveryBitFlipped(t *testing.T) {
	data := mlxg.Join(slices.Insert(mlxg.Split(smallFile(t)), 3, mlxg.Part{Kind: "note", Flags: 1, Data: []byte("an optional section")})...)
	_, err := mlxg.OpenBytes(context.Background(), "g.mlxg", data, mlxg.OpenOptions{Verify: true})
	require.NoError(t, err)
	weights := len(data) - len(mlxg.Split(data)[3].Data)
	note := bytes.Index(data, []byte("an optional section"))
	for i := range data {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		lazy := i >= weights || i >= note && i < note+19
		for bit := range 8 {
			data[i] ^= 1 << bit
			what := fmt.Sprintf("byte %d, bit %d", i, bit)
			_, err := mlxg.OpenBytes(context.Background(), "g.mlxg", data, mlxg.OpenOptions{})
			if lazy {
				require.NoError(t, err, what)
				_, err = mlxg.OpenBytes(context.Background(), "g.mlxg", data, mlxg.OpenOptions{Verify: true})
			}
			require.Error(t, err, what)
			data[i] ^= 1 << bit
		}
		// Allocations are measured once for each byte, because measuring is slow.
		data[i] ^= 0xff
		_, err := openMeasured(t, data, true, fmt.Sprintf("byte %d inverted", i))
		require.Error(t, err, "byte %d inverted", i)
		data[i] ^= 0xff
	}
}

// If a bit is flipped and the checksums are corrected, opening gives an error or a valid
// module that can be written and opened again.
func TestEveryBitFlippedWithRightChecksums(t *testing.T) {
	data := smallFile(t)
	read := 16 + 28*4 + 4 // the size of the header
	for _, p := range mlxg.Split(data)[:3] {
		read += len(p.Data)
	}
	accepted := 0
	for i := 16; i < read; i++ {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		for bit := range 9 {
			x := bytes.Clone(data)
			if bit < 8 {
				x[i] ^= 1 << bit
			} else {
				x[i] ^= 0xff
			}
			what := fmt.Sprintf("byte %d, bit %d", i, bit)
			m, err := openMeasured(t, mlxg.Resum(x), false, what)
			if err != nil {
				continue
			}
			accepted++
			if bit > 0 {
				continue // writing and comparing takes a hundred times as long
			}
			var b bytes.Buffer
			if mlxg.Write(context.Background(), &b, m, mlxg.WriteOptions{}) != nil {
				continue // a digest is wrong, and opening did not compare digests
			}
			again, err := mlxg.OpenBytes(context.Background(), "again", b.Bytes(), mlxg.OpenOptions{})
			require.NoError(t, err, what)
			require.Empty(t, irtest.Diff(m, again), what)
		}
	}
	assert.Positive(t, accepted, "a changed label is no error")
}

// value says where a msgpack value lies.
type value struct {
	start, end int
	list       bool // an array, str or bin, which has a length
	header     int  // bytes of the header of a list
	code32     byte // the header's code with a length of 32 bits
	n          int
}

// values lists all values of a section, nested ones included.
func values(t *testing.T, data []byte) []value {
	t.Helper()
	var out []value
	var walk func(at int) int
	walk = func(at int) int {
		c := data[at]
		i := len(out)
		out = append(out, value{start: at})
		num := func(width int) int {
			n := 0
			for _, b := range data[at+1 : at+1+width] {
				n = n<<8 | int(b)
			}
			return n
		}
		list := func(header, n int, code32 byte) {
			out[i].list, out[i].header, out[i].n, out[i].code32 = true, header, n, code32
		}
		end := at + 1
		switch {
		case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		case c >= 0x90 && c <= 0x9f:
			list(1, int(c&15), 0xdd)
		case c == 0xdc:
			list(3, num(2), 0xdd)
		case c >= 0xa0 && c <= 0xbf:
			list(1, int(c&31), 0xdb)
		case c == 0xd9:
			list(2, num(1), 0xdb)
		case c == 0xc4:
			list(2, num(1), 0xc6)
		case c == 0xcc, c == 0xd0:
			end = at + 2
		case c == 0xcd, c == 0xd1:
			end = at + 3
		case c == 0xce, c == 0xd2:
			end = at + 5
		case c == 0xcf, c == 0xd3, c == 0xcb:
			end = at + 9
		default:
			t.Fatalf("code %#x at byte %d is not one that the writer uses", c, at)
		}
		if v := out[i]; v.list {
			end = at + v.header
			if v.code32 == 0xdd {
				for range v.n {
					end = walk(end)
				}
			} else {
				end += v.n
			}
		}
		out[i].end = end
		return end
	}
	require.Equal(t, len(data), walk(0))
	return out
}

// eachValue calls f for every value of the small file, with a function that replaces it.
func eachValue(t *testing.T, f func(what string, v value, section []byte, replaced func(from, to int, with []byte) []byte)) {
	parts := mlxg.Split(smallFile(t))
	for i := range 3 {
		original := parts[i].Data
		for _, v := range values(t, original) {
			f(fmt.Sprintf("section %s byte %d", parts[i].Kind, v.start), v, original, func(from, to int, with []byte) []byte {
				changed := slices.Clone(parts)
				changed[i].Data = slices.Concat(original[:from], with, original[to:])
				return mlxg.Join(changed...)
			})
		}
	}
}

// A length that is too great, anywhere in the file, is refused before anything of that length
// is allocated.
func TestLengthsThatLie(t *testing.T) {
	count := 0
	eachValue(t, func(what string, v value, section []byte, replaced func(int, int, []byte) []byte) {
		if !v.list {
			return
		}
		count++
		for _, n := range []uint32{1<<32 - 1, 1 << 31, 1<<31 - 1, 1 << 24, 1 << 16, uint32(len(section)), uint32(len(section) - v.start), uint32(v.n + 1)} {
			head := binary.BigEndian.AppendUint32([]byte{v.code32}, n)
			_, err := openMeasured(t, replaced(v.start, v.start+v.header, head), false, what)
			require.Error(t, err, "%s: %d elements claimed to be %d", what, v.n, n)
			if n >= 1<<24 {
				require.ErrorContains(t, err, fmt.Sprintf("claims %d ", n), "%s", what)
			}
		}
		if v.n > 0 {
			head := binary.BigEndian.AppendUint32([]byte{v.code32}, uint32(v.n-1))
			_, err := openMeasured(t, replaced(v.start, v.start+v.header, head), false, what)
			require.Error(t, err, "%s: %d elements claimed to be one less", what, v.n)
		}
	})
	assert.Greater(t, count, 100, "the small module has many lists")
}

// Lengths may be written in a longer form than necessary.
func TestLongHeadersAreRead(t *testing.T) {
	want := smallModule(t)
	eachValue(t, func(what string, v value, _ []byte, replaced func(int, int, []byte) []byte) {
		if v.list {
			head := binary.BigEndian.AppendUint32([]byte{v.code32}, uint32(v.n))
			got, err := openMeasured(t, replaced(v.start, v.start+v.header, head), false, what)
			require.NoError(t, err, what)
			require.Empty(t, irtest.Diff(want, got), what)
		}
	})
}

// Every value is replaced by a value of each other type, and removed.
func TestOtherTypes(t *testing.T) {
	others := [][]byte{
		{}, {0x80}, {0x81, 0, 0}, {0xc0}, {0xc1}, {0xc3}, {0x90}, {0x91, 0}, {0xa1, 'x'}, {0xa1, 0xff}, {0xc4, 1, 0}, {0xc7, 1, 0, 0}, {0xd4, 0, 0}, {0xca, 0, 0, 0, 0},
		{0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1}, {0xcf, 255, 255, 255, 255, 255, 255, 255, 255}, {0xd3, 128, 0, 0, 0, 0, 0, 0, 0}, {0xff}, {0x7f}, {0x00},
		{0xcc}, {0xcd, 0}, {0xdd, 0}, {0xc6, 0, 0}, {0xdb},
	}
	eachValue(t, func(what string, v value, _ []byte, replaced func(int, int, []byte) []byte) {
		for _, o := range others {
			m, err := openMeasured(t, replaced(v.start, v.end, o), false, fmt.Sprintf("%s: %x", what, o))
			if err == nil {
				require.NoError(t, m.Check())
			}
		}
	})
}

// Only the nesting that the format defines is accepted. A million nested arrays are refused
// at the first level that the format does not have.
func TestDeepNesting(t *testing.T) {
	const depth = 1_000_000
	parts := mlxg.Split(smallFile(t))
	for _, code := range []byte{0x91, 0x81, 0x92, 0x9b} {
		deep := bytes.Repeat([]byte{code}, depth)
		for i := range 3 {
			changed := slices.Clone(parts)
			changed[i].Data = deep
			_, err := openMeasured(t, mlxg.Join(changed...), false, "whole section")
			require.Error(t, err)
		}
	}
	deep := bytes.Repeat([]byte{0x91}, 50_000)
	eachValue(t, func(what string, v value, _ []byte, replaced func(int, int, []byte) []byte) {
		_, err := openMeasured(t, replaced(v.start, v.end, deep), false, what)
		require.Error(t, err, what)
	})
}

// Every list of the file in turn claims as many elements as the remaining bytes allow.
func TestManyGreedyLists(t *testing.T) {
	for _, path := range [][]byte{
		{0x92},                                                             // graphs
		{0x92, 0x91, 0x9a, 0},                                              // params
		{0x92, 0x91, 0x9a, 0, 0x90},                                        // constraints
		{0x92, 0x91, 0x9a, 0, 0x90, 0x90},                                  // memories
		{0x92, 0x91, 0x9a, 0, 0x90, 0x90, 0x90},                            // kernels
		{0x92, 0x91, 0x9a, 0, 0x90, 0x90, 0x90, 0x90},                      // nodes
		{0x92, 0x91, 0x9a, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 2},             // edges
		{0x92, 0x91, 0x9a, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0, 0x90},       // advances
		{0x92, 0x91, 0x9a, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0, 0x90, 0x90}, // outputs of every replay
		{0x92, 0x90}, // data
	} {
		rest := bytes.Repeat([]byte{0xc1}, 1<<20)
		for _, elem := range []uint32{1, 2, 3, 5, 7, 10, 21} {
			meta := slices.Concat(path, binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(len(rest))/elem), rest)
			parts := mlxg.Split(smallFile(t))
			parts[0].Data = meta
			_, err := openMeasured(t, mlxg.Join(parts...), false, fmt.Sprintf("%x", path))
			require.Error(t, err)
		}
	}
}

// Allocation is in proportion to the file, even for the values that need the most memory for
// each of their bytes: less than 100 bytes for each byte of the file.
func TestDenseListsAllocateInProportion(t *testing.T) {
	const n = 1 << 20
	head := func(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n)) }
	graph := []byte{0x92, 0x91, 0x9a, 1, 0x90, 0x90, 0x90, 0x90}
	parts := mlxg.Split(smallFile(t))
	strings := values(t, parts[1].Data)[0].n
	for _, c := range []struct {
		name string
		part int
		data []byte
	}{
		{"barriers", 0, slices.Concat(graph, head(n), bytes.Repeat([]byte{0x91, 3}, n), []byte{0, 0x90, 0x90, 0x90, 0x90})},
		{"empty strings", 1, slices.Concat(head(strings+n), parts[1].Data[3:], bytes.Repeat([]byte{0xa0}, n))},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := slices.Clone(parts)
			changed[c.part].Data = c.data
			data := mlxg.Join(changed...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := mlxg.OpenBytes(context.Background(), "g.mlxg", data, mlxg.OpenOptions{})
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			got := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes allocate %d: %.1f a byte", len(data), got, float64(got)/float64(len(data)))
			// This includes the map of IDs that Check allocates in proportion to the nodes.
			assert.Less(t, got, uint64(len(data)*100+slack))
		})
	}
}

// Every way in which a section table can be wrong is an error.
func TestSectionTable(t *testing.T) {
	good := smallFile(t)
	le := binary.LittleEndian
	entry := func(data []byte, i int) []byte { return data[16+28*i:] }
	size := uint64(len(good))
	for _, c := range []struct {
		name, want string
		change     func(data []byte) []byte
	}{
		{"overlap", "section STRS: begins at byte", func(d []byte) []byte {
			le.PutUint64(entry(d, 1)[8:], le.Uint64(entry(d, 1)[8:])-1)
			return d
		}},
		{"inside the header", "section META: begins at byte 16", func(d []byte) []byte {
			le.PutUint64(entry(d, 0)[8:], 16)
			return d
		}},
		{"all sections one", "section STRS: begins at byte", func(d []byte) []byte {
			for i := 1; i < 4; i++ {
				copy(entry(d, i)[8:24], entry(d, 0)[8:24])
			}
			return d
		}},
		{"offset past the end", "end past the end of the file", func(d []byte) []byte {
			le.PutUint64(entry(d, 3)[8:], size+1)
			return d
		}},
		{"length past the end", "end past the end of the file", func(d []byte) []byte {
			le.PutUint64(entry(d, 3)[16:], size)
			return d
		}},
		{"offset + length wraps", "end past the end of the file", func(d []byte) []byte {
			le.PutUint64(entry(d, 3)[16:], -le.Uint64(entry(d, 3)[8:]))
			return d
		}},
		{"greatest offset", "end past the end of the file", func(d []byte) []byte {
			le.PutUint64(entry(d, 3)[8:], 1<<64-1)
			return d
		}},
		{"weights not aligned", "no multiple of 16384", func(d []byte) []byte {
			le.PutUint64(entry(d, 3)[8:], le.Uint64(entry(d, 3)[8:])-4)
			le.PutUint64(entry(d, 3)[16:], le.Uint64(entry(d, 3)[16:])+4)
			return d
		}},
		{"bytes after the last section", "its last section ends at byte", func(d []byte) []byte {
			le.PutUint64(entry(d, 3)[16:], le.Uint64(entry(d, 3)[16:])-1)
			return d
		}},
		{"section twice", "section META: stands in the section table twice", func(d []byte) []byte {
			copy(entry(d, 1)[:4], "META")
			return d
		}},
		{"unknown required section", "section LATE: this reader (version 3 of the format) does not know", func(d []byte) []byte {
			copy(entry(d, 1)[:4], "LATE")
			return d
		}},
		{"unprintable kind", `section "\x00\x01\x02\x03"`, func(d []byte) []byte {
			copy(entry(d, 1)[:4], "\x00\x01\x02\x03")
			return d
		}},
		{"required section hidden", "section STRS: is missing", func(d []byte) []byte {
			copy(entry(d, 1)[:4], "LATE")
			le.PutUint32(entry(d, 1)[4:], 1)
			return d
		}},
		{"weights hidden", "but the file has no section WGHT", func(d []byte) []byte {
			copy(entry(d, 3)[:4], "LATE")
			le.PutUint32(entry(d, 3)[4:], 1)
			return d
		}},
		{"unknown flag", "flags are 0x2", func(d []byte) []byte {
			le.PutUint32(entry(d, 0)[4:], 2)
			return d
		}},
		{"no sections", "section count is 0", func(d []byte) []byte {
			le.PutUint32(d[12:], 0)
			return d
		}},
		{"too many sections", "section count is 65", func(d []byte) []byte {
			le.PutUint32(d[12:], 65)
			return d
		}},
		{"most sections", "section count is 4294967295", func(d []byte) []byte {
			le.PutUint32(d[12:], 1<<32-1)
			return d
		}},
		{"table past the end", "a header of 64 sections has", func(d []byte) []byte {
			le.PutUint32(d[12:], 64)
			return d[:300]
		}},
		{"newer version", "file has version 4 of the format, this program reads version 3 (update this program)", func(d []byte) []byte {
			le.PutUint32(d[8:], 4)
			return d
		}},
		{"older version", "file has version 2 of the format, this program reads version 3 (record the graph again)", func(d []byte) []byte {
			le.PutUint32(d[8:], 2)
			return d
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.change(bytes.Clone(good))
			if n := le.Uint32(d[12:]); n > 0 && 20+28*int(n) <= len(d) && n <= 64 {
				d = mlxg.Resum(d)
			}
			_, err := openMeasured(t, d, false, c.name)
			assert.ErrorContains(t, err, c.want)
		})
	}
	t.Run("gap", func(t *testing.T) {
		d := bytes.Clone(good)
		weights := int(le.Uint64(entry(d, 3)[8:]))
		d = slices.Insert(d, weights, make([]byte, 2<<20)...)
		le.PutUint64(entry(d, 3)[8:], uint64(weights+2<<20))
		_, err := openMeasured(t, mlxg.Resum(d), false, "gap")
		assert.ErrorContains(t, err, "bytes after what lies before it")
	})
}

func TestUnknownOptionalSection(t *testing.T) {
	parts := mlxg.Split(smallFile(t))
	parts = slices.Insert(parts, 1, mlxg.Part{Kind: "prof", Flags: 1, Data: bytes.Repeat([]byte{0xc1}, 100)})
	m, err := mlxg.OpenBytes(context.Background(), "g.mlxg", mlxg.Join(parts...), mlxg.OpenOptions{Verify: true})
	require.NoError(t, err)
	assert.Empty(t, irtest.Diff(smallModule(t), m))
}

func TestTextModeDamage(t *testing.T) {
	data := smallFile(t)
	for name, change := range map[string]func([]byte) []byte{
		"LF to CR LF": func(d []byte) []byte { return bytes.ReplaceAll(d, []byte("\n"), []byte("\r\n")) },
		"CR LF to LF": func(d []byte) []byte { return bytes.ReplaceAll(d, []byte("\r\n"), []byte("\n")) },
		"seven bits": func(d []byte) []byte {
			d = bytes.Clone(d)
			for i := range d {
				d[i] &= 0x7f
			}
			return d
		},
		"as UTF-8": func(d []byte) []byte { return bytes.ToValidUTF8(d, []byte("\ufffd")) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openMeasured(t, change(data), false, name)
			assert.ErrorContains(t, err, "text mode")
		})
	}
	_, err := openMeasured(t, []byte("graph decode {"), false, "other file")
	assert.ErrorContains(t, err, `it begins with "graph de"`)
}

// Errors name the file, the offset, the section and the element.
func TestErrorForm(t *testing.T) {
	parts := mlxg.Split(smallFile(t))
	meta := parts[0].Data
	i := bytes.Index(meta, []byte{0x92, 4, 0x93}) // no such thing: make one in the dispatch
	require.Negative(t, i)
	at := bytes.Index(meta, []byte{0x9b, 0}) // the dispatch, node 2
	require.Positive(t, at)
	// The fourth byte of the dispatch is its kernel, and the graph has two kernels.
	parts[0].Data = slices.Clone(meta)
	parts[0].Data[at+3] = 9
	_, err := mlxg.OpenBytes(context.Background(), "g.mlxg", mlxg.Join(parts...), mlxg.OpenOptions{})
	offset := 16 + 28*4 + 4 + at + 3
	require.EqualError(t, err, fmt.Sprintf(`mlxg: g.mlxg: offset %d: section META: graph "decode": node 2: kernel is 9, the graph has 2`, offset))
}

// The container has rules about references to strings and blobs that a module does not have.
func TestReferences(t *testing.T) {
	parts := mlxg.Split(smallFile(t))
	for _, c := range []struct {
		name, want string
		part       int
		old, new   []byte
	}{
		{"absolute path", "is absolute", 2, []byte("\xa5w.bin"), []byte("\xa5/.bin")},
		{"zero byte in a path", "contains a zero byte", 2, []byte("\xa5w.bin"), []byte("\xa5w\x00bin")},
		{"short digest", "a SHA-256 has 32", 2, []byte("\xc4\x20"), []byte("\xc4\x1f")},
		{"digest of a library", "a SHA-256 has 32", 0, []byte("\xc4\x20"), []byte("\xc4\x1f")},
		{"blob past the section", "ends past section WGHT", 2, []byte("\x94\xa0\xcd\x01\x00\x06\xc4"), []byte("\x94\xa0\xcd\x01\x00\xcd\x02\x00\xc4")},
		{"blob not aligned", "no multiple of 256", 2, []byte("\x94\xa0\xcd\x01\x00\x06\xc4"), []byte("\x94\xa0\xcd\x01\x01\x06\xc4")},
		{"blobs overlap", "the blob before it ends at", 2, []byte("\x94\xa0\xcd\x01\x00\x06\xc4"), []byte("\x94\xa0\xcd\x00\x00\x06\xc4")},
		{"blob not aligned for its memory", "wants an alignment of 65536", 0, []byte("\x10\xcd\x02\x00"), []byte("\x10\xce\x00\x01\x00\x00")},
		{"first string", "the first string must be empty", 1, []byte("\xa0"), []byte("\xa1x")},
		{"string that is no UTF-8", "is no UTF-8", 1, []byte("layer"), []byte("\xffayer")},
		{"params descend", "want ascending params", 0, []byte("\x95\x00\x00\x01\x01\x01"), []byte("\x95\x00\x01\x01\x00\x01")},
		{"coefficient 0", "leave the param out", 0, []byte("\x95\x00\x00\x01\x01\x01"), []byte("\x95\x00\x00\x01\x01\x00")},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := slices.Clone(parts)
			before := changed[c.part].Data
			require.True(t, bytes.Contains(before, c.old), "% x", before)
			changed[c.part].Data = bytes.Replace(before, c.old, c.new, 1)
			_, err := openMeasured(t, mlxg.Join(changed...), false, c.name)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// A weight that was changed together with its checksum is found by its digest.
func TestVerifyChecksDigests(t *testing.T) {
	data := smallFile(t)
	i := bytes.Index(data, []byte("sixteen weights."))
	require.Positive(t, i)
	data[i] ^= 1
	data = mlxg.Resum(data)
	_, err := mlxg.OpenBytes(context.Background(), "g.mlxg", data, mlxg.OpenOptions{})
	require.NoError(t, err)
	_, err = mlxg.OpenBytes(context.Background(), "g.mlxg", data, mlxg.OpenOptions{Verify: true})
	assert.ErrorContains(t, err, fmt.Sprintf("offset %d: section WGHT: blob 0: ", i))
	assert.ErrorContains(t, err, "the graph was recorded with")
}
