package bitcode_test

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/metallib/bitcode"
)

// Read finds what a module has: types, symbols, constants, strings, and nodes that refer to later ones.
func TestRead(t *testing.T) {
	data := module(func(w *writer) {
		w.block(17, width, func(w *writer) {
			w.record(1, 9)
			w.record(7, 32)       // 0: i32
			w.record(3)           // 1: float
			w.record(11, 10, 1)   // 2: [10 x float]
			w.record(18, 0, 0, 2) // 3: { i32, [10 x float] }
			w.record(2)           // 4: void
			w.record(8, 2, 1)     // 5: [10 x float] addrspace(1)*
			w.record(21, 0, 4, 5) // 6: void (…*)
			w.record(7, 1)        // 7: i1
			w.record(8, 2, 3)     // 8: [10 x float] addrspace(3)*
		})
		text := func(s string) (ops []uint64) {
			for _, c := range []byte(s) {
				ops = append(ops, uint64(c))
			}
			return ops
		}
		w.record(2, text("air64")...)
		w.record(3, text("e-i64:64")...)
		w.record(7, 0, 1, 3, 3<<2|2, 0, 3, 5, 0)        // "k": explicit type, threadgroup, aligned to 16
		w.record(7, 1, 1, 8, 0, 0, 3, 0, 0, 0, 0, 0, 1) // "e": by pointer, initialized from outside
		w.record(8, 0, 6, 6, 0, 0, 0)                   // "kernel", defined
		w.record(8, 2, 2, 6, 0, 1, 0)                   // "rn", declared
		w.block(11, width, func(w *writer) {
			w.record(1, 0)
			w.record(2)                 // 4: 0
			w.record(4, 7<<1)           // 5: 7
			w.record(4, 7<<1|1)         // 6: -7
			w.record(1, 7).record(4, 3) // 7: true
			w.record(1, 1).record(6, 5) // 8: a float
		})
		w.block(15, width, func(w *writer) {
			w.strings("air", "", "a longer string of metadata")
			w.record(2, 6, 2) // 3: the function
			w.record(2, 0, 5) // 4: 7
			w.record(2, 0, 6) // 5: −7
			w.record(2, 7, 7) // 6: true
			w.record(2, 0, 0) // 7: the variable
			w.record(2, 1, 8) // 8: a float
			w.record(2, 0, 4) // 9: 0
			w.record(3, 3+1, 0, 2+1, 11+1, 4+1, 5+1, 6+1, 7+1, 8+1, 9+1, 99)
			w.record(5, 10+1) // 11: refers back
			w.record(4, text("air.kernel")...).record(10, 10)
			w.record(4, text("other")...).record(10, 3, 11)
		})
	})
	for _, wrapped := range []bool{false, true} {
		if wrapped {
			w := binary.LittleEndian.AppendUint32(nil, 0x0B17C0DE)
			for _, v := range []uint32{0, 20, uint32(len(data)), 0xffffffff} {
				w = binary.LittleEndian.AppendUint32(w, v)
			}
			data = append(append(w, data...), 0, 0, 0)
		}
		m, err := bitcode.Read(data)
		require.NoError(t, err)
		assert.Equal(t, "air64", m.Triple)
		require.Len(t, m.Globals, 2)
		k, e := m.Globals[0], m.Globals[1]
		assert.Equal(t, []any{"k", uint64(3), int64(44), int64(16), false}, []any{k.Name, k.AddressSpace, k.Size, k.Align, k.ExternallyInitialized})
		assert.Equal(t, []any{"e", uint64(3), int64(40), int64(4), true}, []any{e.Name, e.AddressSpace, e.Size, e.Align, e.ExternallyInitialized})
		require.Len(t, m.Functions, 2)
		assert.Equal(t, []any{"kernel", true, 1, "rn", false}, []any{m.Functions[0].Name, m.Functions[0].Defined, m.Functions[0].Params, m.Functions[1].Name, m.Functions[1].Defined})

		nodes := m.Named("air.kernel")
		require.Len(t, nodes, 1)
		n := nodes[0]
		require.Equal(t, 11, n.Len())
		f, ok := n.Operand(0).Function()
		assert.True(t, ok)
		assert.Equal(t, &m.Functions[0], f)
		_, ok = n.Operand(1).Node()
		assert.False(t, ok, "none")
		s, ok := n.Operand(2).Text()
		assert.True(t, ok)
		assert.Equal(t, "a longer string of metadata", s)
		behind, ok := n.Operand(3).Node()
		require.True(t, ok)
		back, ok := behind.Operand(0).Node()
		assert.True(t, ok)
		assert.Equal(t, n, back)
		seven, ok := n.Operand(4).Int()
		assert.True(t, ok)
		minus, _ := n.Operand(5).Int()
		assert.Equal(t, []int64{7, -7}, []int64{seven, minus})
		yes, ok := n.Operand(6).Bool()
		assert.True(t, yes && ok)
		_, ok = n.Operand(4).Bool()
		assert.False(t, ok, "7 is no bool")
		g, ok := n.Operand(7).Global()
		assert.True(t, ok)
		assert.Equal(t, &m.Globals[0], g)
		_, ok = n.Operand(8).Int()
		assert.False(t, ok, "a float is no integer")
		zero, ok := n.Operand(9).Int()
		assert.True(t, ok && zero == 0)
		for _, i := range []int{-1, 10, 11} {
			assert.Equal(t, bitcode.Operand{}, n.Operand(i), "%d refers to nothing", i)
		}
		assert.Len(t, m.Named("other"), 1, "3 is no node")
		assert.Empty(t, m.Named("nobody"))
	}
}

// A malformed module is an error with the offset.
func TestRefused(t *testing.T) {
	types := func(w *writer) {
		w.block(17, width, func(w *writer) { w.record(7, 32).record(2).record(21, 0, 1) })
	}
	metadata := func(inside func(w *writer)) []byte {
		return module(func(w *writer) {
			types(w)
			w.block(15, width, inside)
		})
	}
	wrapper := func(off, n uint32) []byte {
		b := binary.LittleEndian.AppendUint32(nil, 0x0B17C0DE)
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint32(b, off)
		b = binary.LittleEndian.AppendUint32(b, n)
		return append(binary.LittleEndian.AppendUint32(b, 7), "BC\xc0\xde"...)
	}
	whole := module(func(*writer) {})
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "offset 0: is no LLVM bitcode"},
		{"other magic", []byte("BC\xc0\xdf"), "offset 0: is no LLVM bitcode"},
		{"magic alone", []byte("BC\xc0\xde"), "offset 4: there is no module"},
		{"odd bytes", append([]byte(nil), whole[:len(whole)-1]...), "words of 4 bytes"},
		{"half a wrapper", wrapper(20, 4)[:12], "the wrapper of the bitcode has 12 bytes, 20 are expected"},
		{"a wrapper of too much", wrapper(20, 5), "5 bytes from offset 20, there are 24"},
		{"a wrapper in itself", wrapper(8, 4), "4 bytes from offset 8"},
		{"a wrapper of 4 GiB", wrapper(0xffffffff, 0xffffffff), "there are 24"},
		{"cut", whole[:len(whole)-8], "are left"},
		{"a block too long", append([]byte("BC\xc0\xde"), 0x21, 0xc, 0, 0, 0xff, 0xff, 0xff, 0xff), "offset 12: block 8 has 17179869180 bytes, 0 are left"},
		{"a block ends early", func() []byte {
			b := append([]byte(nil), whole...)
			binary.LittleEndian.PutUint32(b[8:], binary.LittleEndian.Uint32(b[8:])+1)
			return b
		}(), "block 8 ends here, its length says 4 bytes further on"},
		{"a block ends outside", file(func(w *writer) { w.fixed(0, 2).align() }), "ends outside of every block"},
		{"a record outside", file(func(w *writer) { w.fixed(3, 2).align() }), "stands outside of every block"},
		{"numbers of one bit", file(func(w *writer) { w.fixed(1, 2).vbr(8, 8).vbr(1, 4).align().fixed(0, 32) }), "abbreviation numbers of 1 bits"},
		{"numbers of 33 bits", file(func(w *writer) { w.fixed(1, 2).vbr(8, 8).vbr(33, 4).align().fixed(0, 32) }), "abbreviation numbers of 33 bits"},
		{"an older module", file(func(w *writer) { w.block(8, 2, func(w *writer) { w.record(1, 1) }) }), "a module of version 1, version 2 is expected"},
		{"two modules", file(func(w *writer) {
			for range 2 {
				w.block(8, 2, func(w *writer) { w.record(1, 2) })
			}
		}), "there is a second module"},
		{"two type tables", module(func(w *writer) { types(w); types(w) }), "a second table of types"},
		{"an unknown abbreviation", module(func(w *writer) { w.fixed(9, width) }), "block 8 has no abbreviation 9"},
		{"an abbreviation of nothing", module(func(w *writer) { w.define(0) }), "an abbreviation has 0 operands"},
		{"an abbreviation of much", module(func(w *writer) { w.define(65) }), "an abbreviation has 65 operands"},
		{"an array of bits without bits", module(func(w *writer) { w.define(3).literal(1).encoding(3).encoding(1).vbr(0, 5) }), "elements without bits"},
		{"an array of literals", module(func(w *writer) { w.define(3).literal(1).encoding(3).literal(7) }), "elements without bits"},
		{"an array of arrays", module(func(w *writer) { w.define(4).literal(1).encoding(3).encoding(3).encoding(4) }), "not its last operand but one"},
		{"an array first", module(func(w *writer) { w.define(2).encoding(3).encoding(4) }), "not its last operand but one, or is its first"},
		{"a blob in the middle", module(func(w *writer) { w.define(3).literal(1).encoding(5).literal(7) }), "a blob of an abbreviation"},
		{"an unknown encoding", module(func(w *writer) { w.define(1).encoding(7) }), "the unknown encoding 7"},
		{"operands of 65 bits", module(func(w *writer) { w.define(1).encoding(1).vbr(65, 5) }), "an operand of an abbreviation has 65 bits"},
		{"chunks of one bit", module(func(w *writer) { w.define(1).encoding(2).vbr(1, 5) }), "an operand of an abbreviation has 1 bits"},
		{"a long array", module(func(w *writer) {
			w.define(3).literal(1).encoding(3).encoding(1).vbr(1, 5)
			w.fixed(4, width).vbr(1<<40, 6)
		}), "an array of 1099511627776 elements"},
		{"a long blob", module(func(w *writer) {
			w.define(2).literal(1).encoding(5)
			w.fixed(4, width).vbr(1<<62, 6).align()
		}), "a blob has 4611686018427387904 bytes"},
		{"a long record", module(func(w *writer) { w.fixed(3, width).vbr(1, 6).vbr(1<<60, 6) }), "a record of 1152921504606846976 operands"},
		{"a long integer", module(func(w *writer) {
			w.fixed(3, width)
			for range 13 {
				w.fixed(63, 6)
			}
		}), "an integer has more than 64 bits"},
		{"abbreviations of no block", file(func(w *writer) {
			w.block(0, 2, func(w *writer) { w.define(1).literal(1) })
		}), "abbreviations of no block"},
		{"a type without operands", module(func(w *writer) { w.block(17, width, func(w *writer) { w.record(11, 1) }) }), "type record 11 has 1 operands"},
		{"an integer of no bits", module(func(w *writer) { w.block(17, width, func(w *writer) { w.record(7, 0) }) }), "an integer type has 0 bits"},
		{"a type of far away", module(func(w *writer) { w.block(17, width, func(w *writer) { w.record(11, 1, 1<<40) }) }), "there is no type 1099511627776"},
		{"a variable of no type", module(func(w *writer) { w.record(7, 0, 1, 5, 2, 0, 0, 0, 0) }), "there is no type 5, there are 0"},
		{"a variable without operands", module(func(w *writer) { w.record(7, 0, 1) }), "record 7 has 2 operands, number 3 is missing"},
		{"a variable that is no pointer", module(func(w *writer) { types(w); w.record(7, 0, 1, 0, 0, 0, 0, 0, 0) }), "a global variable is no pointer"},
		{"a variable of wide alignment", module(func(w *writer) { types(w); w.record(7, 0, 1, 0, 2, 0, 0, 40, 0) }), "aligned to 2^39 bytes"},
		{"a function that is a number", module(func(w *writer) { types(w); w.record(8, 0, 1, 0, 0, 0, 0) }), "a type that is none of a function"},
		{"a name outside", module(func(w *writer) { types(w); w.record(8, 1, 6, 2, 0, 0, 0) }), "a name of 6 bytes at 1 lies outside the string table of 6 bytes"},
		{"a name far outside", module(func(w *writer) { types(w); w.record(8, 1<<63, 1<<63, 2, 0, 0, 0) }), "lies outside the string table"},
		{"a constant without type", module(func(w *writer) { w.block(11, width, func(w *writer) { w.record(2) }) }), "a constant has no type"},
		{"a constant of no type", module(func(w *writer) { w.block(11, width, func(w *writer) { w.record(1, 3) }) }), "there is no type 3"},
		{"more strings than lengths", metadata(func(w *writer) { w.metadataStrings(1<<30, 4, "    ") }), "1073741824 metadata strings have 4 bytes of lengths"},
		{"strings of no characters", metadata(func(w *writer) { w.metadataStrings(1, 5, "    ") }), "begin at 5 of 4 bytes"},
		{"a string too long", metadata(func(w *writer) { w.metadataStrings(1, 4, "\x05\x00\x00\x00abcd") }), "a metadata string has 5 bytes, 4 are left"},
		{"lengths that end", metadata(func(w *writer) { w.metadataStrings(1, 1, "\xff") }), "bits are expected"},
		{"a node of far away", metadata(func(w *writer) { w.record(3, 1<<40) }), "refers to metadata 1099511627775"},
		{"a value of far away", metadata(func(w *writer) { w.record(2, 0, 1<<40) }), "a metadata value has no type and value"},
		{"a name of far away", metadata(func(w *writer) { w.record(4, 'x').record(10, 1<<40) }), "refers to metadata 1099511627776"},
		{"a name of wide characters", metadata(func(w *writer) { w.record(4, 'x', 300) }), "a character of number 300"},
		{"no name", metadata(func(w *writer) { w.record(10, 1) }), "has no name"},
		{"metadata of a later LLVM", metadata(func(w *writer) { w.record(200, 1) }), "metadata record 200 is of no known sort"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := bitcode.Read(c.data)
			var e *bitcode.Error
			require.ErrorAs(t, err, &e)
			assert.Contains(t, e.Error(), c.want)
			assert.LessOrEqual(t, e.Offset, int64(len(c.data)))
		})
	}
	_, err := bitcode.Read(whole)
	require.NoError(t, err)
}

// Modules that are crafted to take much memory or time take little; each has a megabyte.
func TestCrafted(t *testing.T) {
	const size = 1 << 20
	fill := func(w *writer, each func()) {
		for len(w.bytes) < size {
			each()
		}
	}
	// An abbreviation with which a record takes four bits.
	literals := func(w *writer, code uint64, ops ...uint64) {
		w.define(uint64(len(ops) + 1)).literal(code)
		for _, op := range ops {
			w.literal(op)
		}
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"types", module(func(w *writer) {
			w.block(17, width, func(w *writer) { literals(w, 2); fill(w, func() { w.fixed(4, width) }) })
		}), "more than 65536 types"},
		{"members of types", module(func(w *writer) {
			w.block(17, width, func(w *writer) {
				w.record(7, 8)
				literals(w, 18, make([]uint64, 60)...)
				fill(w, func() { w.fixed(4, width) })
			})
		}), "members"},
		{"constants", module(func(w *writer) {
			w.block(17, width, func(w *writer) { w.record(7, 8) })
			w.block(11, width, func(w *writer) { w.record(1, 0); literals(w, 2); fill(w, func() { w.fixed(4, width) }) })
		}), "more than 1048576 values"},
		{"nodes", module(func(w *writer) {
			w.block(15, width, func(w *writer) { literals(w, 3); fill(w, func() { w.fixed(4, width) }) })
		}), "more metadata than 1048576"},
		{"operands of nodes", module(func(w *writer) {
			w.block(15, width, func(w *writer) { literals(w, 3, make([]uint64, 63)...); fill(w, func() { w.fixed(4, width) }) })
		}), "more than 4194304 operands"},
		{"names that share bytes", file(func(w *writer) {
			w.block(8, 2, func(w *writer) {
				w.record(1, 2)
				w.block(17, width, func(w *writer) { w.record(2).record(21, 0, 0) })
				literals(w, 8, 0, 50000, 1, 0, 1, 0)
				for range 60000 {
					w.fixed(4, width)
				}
			})
			w.names(strings.Repeat("n", 50000))
		}), "names have more than 16777216 bytes"},
		{"abbreviations", module(func(w *writer) { fill(w, func() { w.define(1).literal(0) }) }), "more than 4096 abbreviations"},
		{"blocks", module(func(w *writer) { fill(w, func() { w.block(99, width, func(*writer) {}) }) }), ""},
		{"an array of bits", module(func(w *writer) {
			w.define(3).literal(99).encoding(3).encoding(1).vbr(1, 5)
			w.fixed(4, width).vbr(size*8, 6)
			for range size / 8 {
				w.fixed(1<<64-1, 64)
			}
		}), ""},
		{"arrays in arrays", module(func(w *writer) {
			w.block(17, width, func(w *writer) {
				w.record(7, 8)
				n := uint64(0)
				fill(w, func() { w.record(11, 2, n); n = min(n+1, 60000) })
			})
		}), "types"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := bitcode.Read(c.data)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.want)
			}
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(150<<20))
			assert.Less(t, took, time.Minute) // with room for a busy machine: it takes milliseconds
		})
	}
}
