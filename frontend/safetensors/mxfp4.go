package safetensors

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// mxfp4 is the mode of MLX's whose codes are floats of 4 bits: 32 of them have an exponent of 8 bits, and nothing else.
const mxfp4 = "mxfp4"

// checkFloats compares codes and exponents of a matrix, or a stack of such, with its shape.
func (m *Model) checkFloats(codes, scales place, shape []int64) error {
	k, rows := shape[len(shape)-1], shape[:len(shape)-1]
	if k%32 != 0 || !slices.Equal(codes.Shape, append(slices.Clone(rows), k/8)) || scales.Type != ir.U8 || !slices.Equal(scales.Shape, append(slices.Clone(rows), k/32)) {
		return fmt.Errorf("codes are %v, exponents %s%v, want %v in floats of 4 bits", codes.Shape, scales.Type, scales.Shape, shape)
	}
	return nil
}

// blocks makes GGML's blocks of such codes: the exponent, and behind it 16 bytes, of which byte i has codes i and i + 16,
// where MLX's has 2i and 2i + 1. Exponents and codes mean the same in both.
func blocks(codes, scales []byte) []byte {
	out := make([]byte, 17*len(scales))
	for b, scale := range scales {
		in, to := codes[16*b:16*b+16], out[17*b:17*b+17]
		to[0] = scale
		for i := range 8 {
			to[1+2*i] = in[i]&15 | in[i+8]<<4
			to[2+2*i] = in[i]>>4 | in[i+8]&0xf0
		}
	}
	return out
}
