//go:build unix

package softmetal_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/record"
)

// host is a session on software Metal whose operations take MLX's compiled kernels, with what its inputs hold.
type host struct {
	t *testing.T
	*record.Session
	random *rand.Rand
	typ    ir.DType
	values map[ir.MemID][]float64
}

// input returns an input of random numbers of the type that is tested.
func (h *host) input(shape ...int64) record.Tensor {
	x := h.Input(fmt.Sprint("in", len(h.values)), h.typ, shape...)
	values := make([]float32, x.Elements().Const)
	for i := range values {
		values[i] = h.random.Float32()*2 - 1
	}
	data := record.Elements(h.typ, values)
	require.NoError(h.t, h.Write(x, data))
	h.values[x.Mem] = h.numbers(data, h.typ)
	return x
}

// bytes returns an input of given or random bytes.
func (h *host) bytes(t ir.DType, data []byte, shape ...int64) record.Tensor {
	x := h.Input(fmt.Sprint("in", len(h.values)), t, shape...)
	require.NoError(h.t, h.Write(x, data))
	h.values[x.Mem] = nil
	return x
}

func (h *host) of(x record.Tensor) []float64 { return h.values[x.Mem] }

func (h *host) numbers(data []byte, t ir.DType) (out []float64) {
	for i := 0; i < len(data); i += int(t.Size()) {
		switch t {
		case ir.F16:
			out = append(out, term.F16Value(binary.LittleEndian.Uint16(data[i:])))
		case ir.BF16:
			out = append(out, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[i:]))<<16)))
		default:
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))))
		}
	}
	return out
}

// attention is softmax(scale·q·kᵀ)·v in float64, of the keys that a query sees.
func attention(q, k, v []float64, batch, heads, keyHeads, queries, keys, width int, scale float64, sees func(query, key int) bool) []float64 {
	out := make([]float64, len(q))
	for at := range batch * heads {
		kv := (at/heads*keyHeads + at%heads*keyHeads/heads) * keys * width
		for i := range queries {
			row := (at*queries + i) * width
			scores, sum := make([]float64, keys), 0.0
			for j := range keys {
				if sees(i, j) {
					for d := range width {
						scores[j] += q[row+d] * k[kv+j*width+d]
					}
					scores[j] = math.Exp(scale * scores[j])
				}
				sum += scores[j]
			}
			for j := range keys {
				for d := range width {
					out[row+d] += scores[j] / sum * v[kv+j*width+d]
				}
			}
		}
	}
	return out
}

// turned brings the rows of a position together, which heads have apart.
func turned(x []float64, batch, heads, rows, width int) (out []float64) {
	for b := range batch {
		for i := range rows {
			for h := range heads {
				out = append(out, x[((b*heads+h)*rows+i)*width:][:width]...)
			}
		}
	}
	return out
}

// product is x·wᵀ for a batch of quantized matrices of 4 bits in groups of 64.
func product(x []float64, codes []byte, scales, biases []float64, batch, rows, n, k int) (out []float64) {
	for b := range batch {
		for r := range rows {
			for c := range n {
				sum := 0.0
				for i := range k {
					at := (b*n+c)*k + i
					code := float64(codes[at/2] >> (4 * (at % 2)) & 15)
					sum += x[(b*rows+r)*k+i] * (scales[at/64]*code + biases[at/64])
				}
				out = append(out, sum)
			}
		}
	}
	return out
}

// compiledByMLX describes the kernels of MLX 0.32.4's compiled library.
func compiledByMLX(t *testing.T) func(function string) (ir.Kernel, bool) {
	library, path := metallibs.Open(t, "0.32.4"), metallibs.Path(t, "0.32.4")
	digest := ir.Digest(sha256.Sum256(metallibs.Bytes(t, "0.32.4")))
	return func(function string) (ir.Kernel, bool) {
		k, err := library.Describe(function)
		if err != nil {
			return ir.Kernel{}, false
		}
		out, err := bind.Kernel(k, ir.Library{Kind: ir.Metallib, Path: path, Digest: digest})
		return out, err == nil
	}
}

// What MLX's operations compute on its own compiled kernels and on ours, held against float64: every form of attention,
// products of a batch, a rotation by a table, and a reduction. A run takes one in four, of one type.
func TestMLXOperationsCompute(t *testing.T) {
	sample.Long(t)
	ctx := context.Background()
	compiled := compiledByMLX(t)
	d, err := softmetal.New(ctx, softmetal.Options{Trust: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	// Those for which our library has kernels take these without a compiled library: on the CPU, to which the conformance
	// suite holds all devices.
	ours := []string{"attention by the vector kernel", "attention of many queries", "attention of wide heads, masked", "a rotation by a table",
		"attention of a long cache", "attention of a long cache, grouped", "attention by operations", "attention by operations, causal"}
	ofOurs := cpu.New(1)
	t.Cleanup(func() { assert.NoError(t, ofOurs.Close()) })
	everything := func(int, int) bool { return true }
	attend := func(h *host, heads, keyHeads, queries, keys, width int, mask bool, causal bool) (record.Tensor, []float64) {
		q := h.input(2, int64(heads), int64(queries), int64(width))
		k, v := h.input(2, int64(keyHeads), int64(keys), int64(width)), h.input(2, int64(keyHeads), int64(keys), int64(width))
		sees, m := everything, record.Tensor{}
		if mask {
			data := make([]byte, queries*keys)
			for i := range data {
				data[i] = byte(1 - min(i%3, 1))
			}
			m = h.bytes(ir.Bool, data, int64(queries), int64(keys))
			sees = func(i, j int) bool { return data[i*keys+j] != 0 }
		}
		if causal {
			sees = func(i, j int) bool { return j <= keys-queries+i }
		}
		want := attention(h.of(q), h.of(k), h.of(v), 2, heads, keyHeads, queries, keys, width, 0.125, sees)
		return h.MLX().Attention(q, k, v, m, record.Tensor{}, 0.125, causal), want
	}
	quantized := func(h *host, batch, rows, n, k int) (record.Tensor, []float64) {
		codes := make([]byte, batch*n*k/2)
		for i := range codes {
			codes[i] = byte(h.random.Uint32())
		}
		x := h.input(int64(batch), int64(rows), int64(k))
		w := record.AffineMatrix{
			Codes:  h.bytes(ir.U32, codes, int64(batch), int64(n), int64(k/8)),
			Scales: h.input(int64(batch), int64(n), int64(k/64)), Biases: h.input(int64(batch), int64(n), int64(k/64)),
			Bits: 4, Group: 64, Transposed: true,
		}
		return h.MLX().QuantizedMatmul(x, w), product(h.of(x), codes, h.of(w.Scales), h.of(w.Biases), batch, rows, n, k)
	}
	operations := map[string]func(h *host) (record.Tensor, []float64){
		"attention by the vector kernel":  func(h *host) (record.Tensor, []float64) { return attend(h, 4, 2, 3, 20, 64, true, false) },
		"attention of wide heads, masked": func(h *host) (record.Tensor, []float64) { return attend(h, 4, 2, 2, 20, 256, true, false) },
		"attention of many queries": func(h *host) (record.Tensor, []float64) {
			got, want := attend(h, 2, 2, 33, 40, 64, false, true)
			return got.Transpose(1, 2), turned(want, 2, 2, 33, 64)
		},
		// As many keys as these are split among threadgroups, in two passes; eight query heads that share a key head have a kernel of their own.
		"attention of a long cache":          func(h *host) (record.Tensor, []float64) { return attend(h, 4, 2, 2, 4200, 64, true, false) },
		"attention of a long cache, grouped": func(h *host) (record.Tensor, []float64) { return attend(h, 8, 1, 1, 8200, 64, false, false) },
		"attention by operations":            func(h *host) (record.Tensor, []float64) { return attend(h, 4, 2, 9, 20, 32, true, false) },
		"attention by operations, causal": func(h *host) (record.Tensor, []float64) {
			return attend(h, 2, 1, 10, 20, 32, false, true)
		},
		"products of a batch":              func(h *host) (record.Tensor, []float64) { return quantized(h, 2, 3, 40, 192) },
		"products of a batch of many rows": func(h *host) (record.Tensor, []float64) { return quantized(h, 2, 40, 40, 64) },
		"a product in parts":               func(h *host) (record.Tensor, []float64) { return quantized(h, 1, 33, 40, 512) },
		"products of rows in the order of their matrices": func(h *host) (record.Tensor, []float64) {
			const experts, rows, n, k = 3, 40, 48, 128
			codes := make([]byte, experts*n*k/2)
			for i := range codes {
				codes[i] = byte(h.random.Uint32())
			}
			x := h.input(rows, 1, k)
			w := record.AffineMatrix{
				Codes:  h.bytes(ir.U32, codes, experts, n, k/8),
				Scales: h.input(experts, n, k/64), Biases: h.input(experts, n, k/64),
				Bits: 4, Group: 64, Transposed: true,
			}
			var of []byte
			var want []float64
			for i := range rows {
				e := 2 * min(i/17, 1) // none of matrix 1
				of = append(of, byte(e), 0, 0, 0)
				scales, biases := h.of(w.Scales)[e*n*k/64:][:n*k/64], h.of(w.Biases)[e*n*k/64:][:n*k/64]
				want = append(want, product(h.of(x)[i*k:][:k], codes[e*n*k/2:], scales, biases, 1, 1, n, k)...)
			}
			return h.MLX().GatherQMM(x, w, record.Tensor{}, h.bytes(ir.U32, of, rows), true), want
		},
		"a sum over an axis of the middle": func(h *host) (record.Tensor, []float64) {
			x := h.input(3, 50, 20)
			want := make([]float64, 3*20)
			for i, v := range h.of(x) {
				want[i/1000*20+i%20] += v
			}
			return h.MLX().Reduce("sum", x, []int{1}), want
		},
		"a rotation by a table": func(h *host) (record.Tensor, []float64) {
			x := h.input(1, 2, 5, 8)
			freqs := []float32{1, 3, 10}
			table := h.bytes(ir.F32, record.Elements(ir.F32, freqs), 3)
			offset := h.bytes(ir.I32, []byte{7, 0, 0, 0}, 1)
			want := append([]float64(nil), h.of(x)...)
			for row := range 10 {
				for i, f := range freqs {
					sin, cos := math.Sincos(float64(7+row%5) / float64(f))
					a, b := h.of(x)[row*8+i], h.of(x)[row*8+i+3]
					want[row*8+i], want[row*8+i+3] = a*cos-b*sin, a*sin+b*cos
				}
			}
			return h.MLX().Rope(x, offset, table, record.Rope{Dims: 6, Scale: 1}), want
		},
	}
	for i, name := range slices.Sorted(maps.Keys(operations)) {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		do := operations[name]
		for i, typ := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
			if !sample.Whole() && i != sample.Run()%3 {
				continue // a run takes one type
			}
			tolerance := map[ir.DType]float64{ir.F32: 1e-5, ir.F16: 1e-2, ir.BF16: 1e-1}[typ]
			options := map[string][]record.Setting{"": {record.Live(d), record.Compiled(compiled)}}
			if slices.Contains(ours, name) {
				options[" by our kernels"] = []record.Setting{record.Live(ofOurs)}
			}
			if strings.HasPrefix(name, "attention by operations") { // whose kernels work together
				options[" by our kernels on software Metal"] = []record.Setting{record.Live(d)}
			}
			for by, options := range options {
				t.Run(fmt.Sprint(name, " ", typ, by), func(t *testing.T) {
					s := record.New("t", options...)
					h := &host{t, s, rand.New(rand.NewPCG(1, 2)), typ, map[ir.MemID][]float64{}}
					got, want := do(h)
					require.NoError(t, s.Err())
					var shape []int64
					for _, n := range got.Shape {
						shape = append(shape, n.Const)
					}
					out := s.State("out", typ, shape...)
					s.CopyTo("copy", out.Reshape(got.Elements()), s.MLX().Contiguous(got).Reshape(got.Elements()))
					_, err := s.Finish()
					require.NoError(t, err)
					data := make([]byte, out.Elements().Const*typ.Size())
					require.NoError(t, s.Read(out, data))
					require.Len(t, want, int(out.Elements().Const))
					most := 1.0
					for _, w := range want {
						most = max(most, math.Abs(w))
					}
					for i, x := range h.numbers(data, typ) {
						require.InDelta(t, want[i], x, tolerance*most, "element %d", i)
					}
					require.NoError(t, s.Close())
				})
			}
		}
	}
}
