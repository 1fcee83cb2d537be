package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// These are the numbers of tokens, of elements of the model's and of an expert's vectors, of
// experts, and of experts for each token.
const (
	tokens  = 4
	width   = 128
	inner   = 256
	experts = 8
	chosen  = 2

	bits  = 4  // of a quantized weight
	group = 32 // weights that share a scale
	eps   = 1e-5
)

// stack holds the quantized matrices [experts, n, k] of one projection. Weight i is
// scale[i/group]·code + bias[i/group].
type stack struct {
	n, k           int
	codes          []byte // two to a byte, the first in the low bits
	scales, biases []float32
}

// weights are the weights of the layer, which are random.
type weights struct {
	norm           []float32 // [width]
	router         []float32 // [experts, width]
	gate, up, down stack
}

func newWeights(seed uint64) *weights {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &weights{norm: make([]float32, width), router: make([]float32, experts*width)}
	for i := range w.norm {
		w.norm[i] = 1 + 0.1*float32(r.NormFloat64())
	}
	for i := range w.router {
		w.router[i] = float32(r.NormFloat64()) / 8
	}
	w.gate, w.up, w.down = newStack(r, inner, width), newStack(r, inner, width), newStack(r, width, inner)
	return w
}

func newStack(r *rand.Rand, n, k int) stack {
	total := experts * n * k
	s := stack{n: n, k: k, codes: make([]byte, total*bits/8), scales: make([]float32, total/group), biases: make([]float32, total/group)}
	for i := range s.codes {
		s.codes[i] = byte(r.Uint32())
	}
	for i := range s.scales {
		s.scales[i] = (1 + r.Float32()) / float32(8*math.Sqrt(float64(k)))
		s.biases[i] = -8 * s.scales[i]
	}
	return s
}

// at returns weight [e, i, j].
func (s *stack) at(e, i, j int) float32 {
	at := (e*s.n+i)*s.k + j
	code := s.codes[at/2] >> (4 * (at % 2)) & 15
	return s.scales[at/group]*float32(code) + s.biases[at/group]
}

// recordLayer records the layer: %x in, %y out.
func recordLayer(w *weights) (*ir.Graph, error) {
	r := record.New("moe")
	x := r.Input("x", ir.F32, tokens, width)
	y := r.Output("y", ir.F32, tokens, width)
	norm := r.Weight("norm", ir.NewBlob(floats(w.norm)), ir.F32, width)
	router := r.Weight("router", ir.NewBlob(floats(w.router)), ir.F32, experts, width)
	gate, up, down := matrix(r, "gate", w.gate), matrix(r, "up", w.up), matrix(r, "down", w.down)

	h := r.Mul(r.RMSNorm(x, eps), norm)
	ids, scores := r.TopK(r.Matmul(h, record.Dense(router), record.Label("router")), chosen)
	share := r.Softmax(scores)
	a := r.Silu(r.GatherMatmul(h, gate, ids, record.Label("gate")))
	b := r.GatherMatmul(h, up, ids, record.Label("up"))
	out := r.GatherMatmul(r.Mul(a, b), down, ids, record.Label("down"))
	r.Add(x, r.WeightedSum(out, share), record.Into(y))
	return r.Graph()
}

// matrix adds a stack's weights to the recording.
func matrix(r *record.Session, name string, s stack) record.Matrix {
	n, k := int64(s.n), int64(s.k)
	return record.Quantized(record.QTensor{
		W:      r.Weight(name, ir.NewBlob(s.codes), ir.U32, experts, n, k*bits/32),
		Scales: r.Weight(name+".scales", ir.NewBlob(floats(s.scales)), ir.F32, experts, n, k/group),
		Biases: r.Weight(name+".biases", ir.NewBlob(floats(s.biases)), ir.F32, experts, n, k/group),
		N:      n, K: k, Bits: bits, Group: group,
	})
}

// floats returns the bytes of v.
func floats(v []float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
