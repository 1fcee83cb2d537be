package decoder

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Weight is one weight of a model, ready to be bound by a recorder. It is a vector or a matrix of numbers (Blob), a matrix
// in blocks of GGML's (Blob and Format), or a matrix in MLX's affine quantization (Codes, Scales, Biases).
type Weight struct {
	Name    string
	N, K    int64             // N rows of K elements; N = 0: a vector
	Experts int64             // so many matrices; 0: one
	Type    ir.DType          // of numbers, or of scales and biases
	Format  record.GGMLFormat // of blocks; 0: none
	Blob    *ir.Blob          // nil: affine codes

	Codes, Scales, Biases *ir.Blob
	Bits, Group           int64 // bits of a code, codes that share a scale
}

func (l *recording) has(name string) bool {
	_, ok := l.weights[name]
	return ok
}

func (l *recording) vector(name string) record.Tensor {
	w := l.weights[name]
	return l.Weight(name, w.Blob, w.Type, w.K)
}

func (l *recording) matrix(name string) record.Matrix {
	w := l.weights[name]
	shape := func(row int64) []int64 {
		if w.Experts > 0 {
			return []int64{w.Experts, w.N, row}
		}
		return []int64{w.N, row}
	}
	if w.Format != 0 {
		blocks := l.Weight(name, w.Blob, ir.U8, shape(w.Format.RowBytes(w.K))...)
		return record.Blocks(record.GGMLMatrix{Format: w.Format, Blocks: blocks, N: w.N, K: w.K})
	}
	if w.Blob != nil {
		return record.Dense(l.Weight(name, w.Blob, w.Type, shape(w.K)...))
	}
	return record.Quantized(record.QTensor{
		W:      l.Weight(name, w.Codes, ir.U32, shape(w.K*w.Bits/32)...),
		Scales: l.Weight(name+".scales", w.Scales, w.Type, shape(w.K/w.Group)...),
		Biases: l.Weight(name+".biases", w.Biases, w.Type, shape(w.K/w.Group)...),
		N:      w.N, K: w.K, Bits: w.Bits, Group: w.Group,
	})
}
