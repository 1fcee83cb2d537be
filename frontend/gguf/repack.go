package gguf

import (
	"encoding/binary"
	"math"

	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// affine is a matrix in MLX's affine quantization with groups of 32 elements: codes as
// little-endian words, and one scale and one bias for each group, in f32.
type affine struct {
	codes, scales, biases []byte
	bits                  int64
}

// repacked has the types that are repacked unless [frontend.Options].Blocks says otherwise. All others stay as they are.
var repacked = map[ggufio.Type]func(data []byte) affine{
	ggufio.Q4_0: func(data []byte) affine { return repackQ4(data, false) },
	ggufio.Q4_1: func(data []byte) affine { return repackQ4(data, true) },
	ggufio.Q8_0: repackQ8,
}

// blockElements is the number of elements in a block of every type that is repacked. It
// is also the size of a group.
const blockElements = 32

// repackQ4 repacks blocks of Q4_0 (f16 d, 16 bytes of nibbles q; value d·(q − 8)) or
// Q4_1 (f16 d, f16 m, nibbles q; value d·q + m) into 4-bit codes. Byte i of a block
// holds elements i (low nibble) and i+16 (high nibble); MLX's byte i holds elements 2i
// and 2i+1. Nothing is rounded, because an f16 times 8 fits an f32.
func repackQ4(data []byte, withMin bool) affine {
	head := 2
	if withMin {
		head = 4
	}
	size := head + 16
	n := len(data) / size
	a := affine{make([]byte, 16*n), make([]byte, 4*n), make([]byte, 4*n), 4}
	for i := range n {
		block := data[i*size : (i+1)*size]
		d := halfToFloat(binary.LittleEndian.Uint16(block))
		m := -8 * d
		if withMin {
			m = halfToFloat(binary.LittleEndian.Uint16(block[2:]))
		}
		put(a.scales, i, d)
		put(a.biases, i, m)
		q, out := block[head:], a.codes[16*i:16*i+16]
		for b := range 8 {
			out[b] = q[2*b]&15 | q[2*b+1]&15<<4
			out[b+8] = q[2*b]>>4 | q[2*b+1]>>4<<4
		}
	}
	return a
}

// repackQ8 repacks blocks of Q8_0 (f16 d, 32 int8 q; value d·q) into 8-bit codes q +
// 128 with bias −128·d.
func repackQ8(data []byte) affine {
	const size = 34
	n := len(data) / size
	a := affine{make([]byte, 32*n), make([]byte, 4*n), make([]byte, 4*n), 8}
	for i := range n {
		block := data[i*size : (i+1)*size]
		d := halfToFloat(binary.LittleEndian.Uint16(block))
		put(a.scales, i, d)
		put(a.biases, i, -128*d)
		out := a.codes[32*i : 32*i+32]
		for j, q := range block[2:] {
			out[j] = q ^ 0x80 // int8 q as unsigned q + 128
		}
	}
	return a
}

// convert converts f32 elements to a type.
func convert(data []byte, t ir.DType) []byte {
	values := make([]float32, len(data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return record.Elements(t, values)
}

func put(b []byte, i int, v float32) { binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v)) }

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
