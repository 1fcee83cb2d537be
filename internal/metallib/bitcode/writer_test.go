package bitcode_test

import "encoding/binary"

// writer writes a bitstream, to make modules that no compiler writes.
type writer struct {
	bytes []byte
	used  uint // bits of the last byte
}

func (w *writer) fixed(v uint64, n uint) *writer {
	for i := range n {
		if w.used == 0 {
			w.bytes = append(w.bytes, 0)
		}
		w.bytes[len(w.bytes)-1] |= byte(v>>i&1) << w.used
		w.used = (w.used + 1) % 8
	}
	return w
}

func (w *writer) vbr(v uint64, n uint) *writer {
	for most := uint64(1) << (n - 1); ; v >>= n - 1 {
		if v < most {
			return w.fixed(v, n)
		}
		w.fixed(v&(most-1)|most, n)
	}
}

func (w *writer) align() *writer {
	for w.used != 0 || len(w.bytes)%4 != 0 {
		w.fixed(0, 1)
	}
	return w
}

// width is the number of bits of abbreviation numbers in all blocks here.
const width = 4

// block writes a block, whose contents inside writes.
func (w *writer) block(id uint64, outer uint, inside func(w *writer)) *writer {
	w.fixed(1, outer).vbr(id, 8).vbr(width, 4).align()
	at := len(w.bytes)
	w.fixed(0, 32)
	inside(w)
	w.fixed(0, width).align()
	binary.LittleEndian.PutUint32(w.bytes[at:], uint32(len(w.bytes)-at-4)/4)
	return w
}

func (w *writer) record(code uint64, ops ...uint64) *writer {
	w.fixed(3, width).vbr(code, 6).vbr(uint64(len(ops)), 6)
	for _, op := range ops {
		w.vbr(op, 6)
	}
	return w
}

// define begins an abbreviation of n operands.
func (w *writer) define(n uint64) *writer { return w.fixed(2, width).vbr(n, 5) }

func (w *writer) literal(v uint64) *writer { return w.fixed(1, 1).vbr(v, 8) }

func (w *writer) encoding(e uint64) *writer { return w.fixed(0, 1).fixed(e, 3) }

// file writes a file of blocks.
func file(inside func(w *writer)) []byte {
	w := &writer{bytes: []byte("BC\xc0\xde")}
	inside(w)
	return w.bytes
}

// module writes a file with a module of version 2, and a string table.
func module(inside func(w *writer)) []byte {
	return file(func(w *writer) {
		w.block(8, 2, func(w *writer) {
			w.record(1, 2)
			inside(w)
		})
		w.names("kernel")
	})
}

// names writes a string table.
func (w *writer) names(s string) {
	w.block(23, 2, func(w *writer) {
		w.define(2).literal(1).encoding(5)
		w.fixed(4, width).vbr(uint64(len(s)), 6).align()
		for i := range len(s) {
			w.fixed(uint64(s[i]), 8)
		}
		w.align()
	})
}

// strings writes metadata strings.
func (w *writer) strings(list ...string) {
	lengths := &writer{}
	chars := ""
	for _, s := range list {
		lengths.vbr(uint64(len(s)), 6)
		chars += s
	}
	lengths.align()
	w.metadataStrings(uint64(len(list)), uint64(len(lengths.bytes)), string(lengths.bytes)+chars)
}

func (w *writer) metadataStrings(count, at uint64, blob string) {
	w.define(4).literal(35).encoding(2).vbr(6, 5).encoding(2).vbr(6, 5).encoding(5)
	w.fixed(4, width).vbr(count, 6).vbr(at, 6).vbr(uint64(len(blob)), 6).align()
	for i := range len(blob) {
		w.fixed(uint64(blob[i]), 8)
	}
	w.align()
}
