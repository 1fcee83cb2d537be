package safetensors

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
)

// mxfp4 is the mode of MLX's whose codes are floats of 4 bits: 32 of them have an exponent of 8 bits, and nothing else.
const mxfp4 = "mxfp4"

// takeApart gives the tensors of experts, as OpenAI has published them, the names and shapes that MLX gives them: blocks of 16
// bytes become words, and gate and up, whose rows take turns in one tensor, become two. What does not have the shape is left
// for check to name.
func (m *Model) takeApart() {
	for _, name := range slices.Collect(maps.Keys(m.tensors)) {
		at, rest, ok := strings.Cut(name, ".mlp.experts.")
		if !ok {
			continue
		}
		for from, to := range map[string][]string{"gate_up_proj": {"gate_proj", "up_proj"}, "down_proj": {"down_proj"}} {
			for suffix, part := range map[string]string{"_blocks": ".weight", "_scales": ".scales", "_bias": ".bias"} {
				if rest == from+suffix {
					m.divide(name, at+".mlp.experts.", to, part)
				}
			}
		}
	}
}

// divide puts tensors at+name+part, which take turns in its rows, in the place of a tensor.
func (m *Model) divide(from, at string, names []string, part string) {
	t, ok := m.tensors[from]
	many := int64(len(names))
	if !ok || len(t.Shape) < 2 || t.Shape[1]%many != 0 {
		return
	}
	shape := slices.Clone(t.Shape)
	shape[1] /= many
	if part == ".weight" {
		if len(shape) != 4 || t.Type != ir.U8 || shape[3] != 16 {
			return
		}
		shape, t.Type = []int64{shape[0], shape[1], shape[2] * 4}, ir.U32
	}
	t.rows = t.Shape[0] * t.Shape[1]
	t.Shape = shape
	delete(m.tensors, from)
	for i, name := range names {
		if t.Name = at + name + part; many > 1 {
			t.first, t.step = int64(i), many
		}
		m.tensors[t.Name] = t
	}
}

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
func blocks(codes, scales *place, d *frontend.Digests) *ir.Blob {
	return d.Made("blocks of "+codes.named()+" and "+scales.named(), 17*scales.all(), func(dst []byte, at int64) {
		first, n := at/17, int64(len(dst))/17
		in := codes.data(16*first, 16*n)
		for b, scale := range scales.data(first, n) {
			in, to := in[16*b:16*b+16], dst[17*b:17*b+17]
			to[0] = scale
			for i := range 8 {
				to[1+2*i] = in[i]&15 | in[i+8]<<4
				to[2+2*i] = in[i]>>4 | in[i+8]&0xf0
			}
		}
	})
}
