package routes

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Version is which MLX it is whose names and routes are asked for.
type Version int

const (
	// Commit846d1762 is the commit whose host code the stored captures come from.
	Commit846d1762 Version = iota
	// Release0_32_4 is the release whose compiled library testdata/metallib lists. Its names and arguments are those of the
	// library. Its host code, of which there is only the compiled library of its wheel, was read where names or arguments
	// differ: how products of sorted indices are sent, and partial sums of products.
	Release0_32_4
	// August2024 is the commit da691257, between 0.16.3 and 0.17, for quantized products and quantization; all else is as
	// at Commit846d1762.
	August2024
)

// way is one kernel by which an operation can be sent, and the rest of the message.
type way struct {
	kernel string
	send   func()
}

// has reports whether there is a kernel.
func (e *Encoder) has(kernel string) bool { return e.Has == nil || e.Has(kernel) }

// take sends an operation by the first of several ways whose kernel there is. If there is none, it is the first
// way: the kernel that MLX takes is the one that is missing.
func (e *Encoder) take(ways []way) {
	at := 0
	for i := range ways {
		if e.has(ways[i].kernel) {
			at = i
			break
		}
	}
	e.next.Kernel = ways[at].kernel
	ways[at].send()
}

// several returns how many elements a thread takes, and the name of the kernel: with the suffix of several
// elements where each says so and such a kernel is there.
func (e *Encoder) several(form, rest string, large bool, each int64) (string, int64) {
	if name := form + linearSuffix(large, each) + rest; large || e.has(name) {
		return name, each
	}
	return fmt.Sprintf("%s%s", form, rest), 1
}

// widened returns a collapsed layout of up to three dimensions with as many dimensions of one element in front as it
// takes until there is a kernel of its rank; unchanged if there is none, or too many dimensions for one.
func (e *Encoder) widened(kernel func(rank int) string, shape []Size, strides [][]Size) ([]Size, [][]Size) {
	for rank := len(shape); rank <= 3; rank++ {
		if !e.has(kernel(rank)) {
			continue
		}
		front := sizes(make([]int64, rank-len(shape))...)
		wide := make([][]Size, len(strides))
		for i := range strides {
			wide[i] = append(with(front), strides[i]...)
		}
		for i := range front {
			front[i] = ir.Const(1)
		}
		return append(front, shape...), wide
	}
	return shape, strides
}
