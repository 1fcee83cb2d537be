package gguf

import (
	"encoding/binary"
	"math"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// repacking is how blocks of a type become MLX's affine quantization with groups of 32 elements: codes as little-endian words,
// and one scale and one bias for each group.
type repacking struct {
	bits int64
	size int64 // bytes of a block
	// codes writes the codes of some blocks, bits·4 bytes for each.
	codes func(dst, blocks []byte)
	// numbers returns the scale and the bias of a block. Nothing is rounded, because an f16 times 8 or 128 fits an f32.
	numbers func(block []byte) (scale, bias float32)
}

// repacked has the types that are repacked unless [frontend.Options].Blocks says otherwise. All others stay as they are.
var repacked = map[ggufio.Type]*repacking{
	// f16 d, 16 bytes of nibbles q; value d·(q − 8)
	ggufio.Q4_0: {4, 18, func(dst, blocks []byte) { nibbles(dst, blocks, 2) }, func(block []byte) (float32, float32) {
		d := halfToFloat(binary.LittleEndian.Uint16(block))
		return d, -8 * d
	}},
	// f16 d, f16 m, nibbles q; value d·q + m
	ggufio.Q4_1: {4, 20, func(dst, blocks []byte) { nibbles(dst, blocks, 4) }, func(block []byte) (float32, float32) {
		return halfToFloat(binary.LittleEndian.Uint16(block)), halfToFloat(binary.LittleEndian.Uint16(block[2:]))
	}},
	// f16 d, 32 int8 q; value d·q: codes are q + 128
	ggufio.Q8_0: {8, 34, signed, func(block []byte) (float32, float32) {
		d := halfToFloat(binary.LittleEndian.Uint16(block))
		return d, -128 * d
	}},
}

// blockElements is the number of elements in a block of every type that is repacked. It
// is also the size of a group.
const blockElements = 32

// nibbles writes the codes of blocks of 4 bits. In each block they begin behind `head` bytes of scales. Byte i of a block has elements i (low nibble)
// and i+16 (high nibble); MLX's byte i has elements 2i and 2i+1.
func nibbles(dst, blocks []byte, head int) {
	for ; len(dst) > 0; dst, blocks = dst[16:], blocks[head+16:] {
		q, out := blocks[head:head+16], dst[:16]
		for b := range 8 {
			out[b] = q[2*b]&15 | q[2*b+1]&15<<4
			out[b+8] = q[2*b]>>4 | q[2*b+1]>>4<<4
		}
	}
}

// signed writes the codes of blocks of Q8_0.
func signed(dst, blocks []byte) {
	for ; len(dst) > 0; dst, blocks = dst[32:], blocks[34:] {
		out := dst[:32]
		for j, q := range blocks[2:34] {
			out[j] = q ^ 0x80
		}
	}
}

// repack returns the codes, scales and biases of a tensor's blocks. what names the tensor in its file.
func (r *repacking) repack(data []byte, what string, t ir.DType, d *frontend.Digests) (codes, scales, biases *ir.Blob) {
	n := int64(len(data)) / r.size
	codes = d.Made(what+": codes", n*4*r.bits, func(dst []byte, at int64) {
		from := at / (4 * r.bits) * r.size
		r.codes(dst, data[from:from+int64(len(dst))/(4*r.bits)*r.size])
	})
	of := func(which string, pick func(scale, bias float32) float32) *ir.Blob {
		return d.Made(what+": "+which+" as "+t.String(), n*t.Size(), func(dst []byte, at int64) {
			first := at / t.Size()
			values := make([]float32, int64(len(dst))/t.Size())
			for i := range values {
				values[i] = pick(r.numbers(data[(first+int64(i))*r.size:][:r.size]))
			}
			copy(dst, record.Elements(t, values))
		})
	}
	return codes, of("scales", func(scale, _ float32) float32 { return scale }), of("biases", func(_, bias float32) float32 { return bias })
}

// halfToFloat converts an IEEE binary16, exactly.
func halfToFloat(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 31
	man := uint32(h) & 1023
	switch exp {
	case 0:
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}
