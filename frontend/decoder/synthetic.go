package decoder

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// syntheticGroup is the number of codes of a synthetic model that share a scale.
const syntheticGroup = 32

// Synthetic is a model of a given shape with made-up weights: uniform random numbers with the variance of usual
// initial weights, so that all values stay finite. It is for measurements, because the time of a step does not
// depend on its weights. It has no file and no vocabulary.
type Synthetic struct {
	Config
	// Bits is the number of bits of a matrix's codes, 4 or 8, in groups of 32; EmbeddingBits is that of the embedding. 16: elements are no codes, and have
	// the type of activations, which is not f32.
	Bits, EmbeddingBits int64
	// Untied: the head has a matrix of its own, with codes of Bits bits, instead of the embedding's.
	Untied bool
}

// Decoder makes the weights, which are the same in every call.
func (m *Synthetic) Decoder(ctx context.Context, o frontend.Options) (*Decoder, error) {
	for _, bits := range []int64{m.Bits, m.EmbeddingBits} {
		if bits != 4 && bits != 8 && (bits != 16 || o.Type == ir.F32) {
			return nil, fmt.Errorf("weights of %d bits beside %s: want codes of 4 or 8, or elements of 16 of the same type", bits, o.Type)
		}
	}
	if err := m.Config.Fill(&o); err != nil {
		return nil, err
	}
	l := &Decoder{m.Config, map[string]Weight{}, o}
	for i := range m.Layers {
		shapes := m.LayerTensors()
		for _, name := range slices.Sorted(maps.Keys(shapes)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := l.make(fmt.Sprintf("blk.%d.%s.weight", i, name), m.Bits, shapes[name]...); err != nil {
				return nil, err
			}
		}
		if o.Progress != nil {
			o.Progress(float64(i+1) / float64(m.Layers+1))
		}
	}
	err := l.make("token_embd.weight", m.EmbeddingBits, m.Embedding, m.Vocab)
	if err == nil && m.Untied {
		err = l.make("output.weight", m.Bits, m.Embedding, m.Vocab)
	}
	if err == nil {
		err = l.make("output_norm.weight", 0, m.Embedding)
	}
	return l, err
}

// Record returns a module as [Decoder.Module] does, without a vocabulary.
func (m *Synthetic) Record(ctx context.Context, o frontend.Options) (*ir.Module, error) {
	l, err := m.Decoder(ctx, o)
	if err != nil {
		return nil, err
	}
	return l.Module()
}

// make adds a weight with the given dimensions, innermost first: a vector of ones, or a random matrix.
func (m *Decoder) make(name string, bits int64, dims ...int64) error {
	t := m.options.Type
	w := Weight{Name: name, K: dims[0], Type: t, Group: syntheticGroup}
	blob := func(of string, size int64, value func(i uint64) uint32) *ir.Blob {
		data := make([]byte, (size+3)/4*4)
		together(len(data), func(begin, end int) {
			for i := begin; i < end; i += 4 {
				binary.LittleEndian.PutUint32(data[i:], value(uint64(i)))
			}
		})
		label := fmt.Appendf(nil, "synthetic %s %s %d %d", name, of, bits, dims)
		if t != ir.F32 {
			label = fmt.Appendf(label, " %s", t)
		}
		return ir.MappedBlob(data[:size], sha256.Sum256(label))
	}
	constant := func(v float64) func(uint64) uint32 {
		word := binary.LittleEndian.Uint32(record.Elements(t, []float32{float32(v), float32(v)}))
		return func(uint64) uint32 { return word }
	}
	if len(dims) == 1 {
		w.Blob = blob("", t.Size()*w.K, constant(1))
		m.weights[name] = w
		return nil
	}
	w.N = dims[1]
	first := sha256.Sum256([]byte(name))
	seed := binary.LittleEndian.Uint64(first[:])
	if bits == 16 {
		elements := numbers(t, w.K)
		w.Blob = blob("", t.Size()*w.K*w.N, func(i uint64) uint32 {
			r := random(seed, i)
			return uint32(elements[r&0xffff]) | uint32(elements[r>>16])<<16
		})
		m.weights[name] = w
		return nil
	}
	w.Bits = bits
	if w.K%syntheticGroup != 0 {
		return fmt.Errorf("%s: rows of %d elements are no whole groups of %d", name, w.K, syntheticGroup)
	}
	middle := float64(int64(1)<<bits-1) / 2
	scale := math.Sqrt(3/float64(w.K)) / middle // so that the weights have variance 1/k
	w.Codes = blob("codes", w.N*w.K*bits/8, func(i uint64) uint32 { return random(seed, i) })
	w.Scales = blob("scales", t.Size()*w.N*w.K/syntheticGroup, constant(scale))
	w.Biases = blob("biases", t.Size()*w.N*w.K/syntheticGroup, constant(-middle*scale))
	m.weights[name] = w
	return nil
}

// random is a number for each i, by SplitMix64's output function (Steele, Lea, Flood 2014).
func random(seed, i uint64) uint32 {
	z := (seed + i) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	return uint32((z ^ z>>27) * 0x94d049bb133111eb >> 32)
}

// numbers are 65,536 elements of a type of 16 bits, evenly spaced, with a mean of 0 and a variance of 1/k.
func numbers(t ir.DType, k int64) []uint16 {
	values := make([]float32, 1<<16)
	for i := range values {
		values[i] = float32(math.Sqrt(3/float64(k)) * (float64(i)/(1<<15) - 1))
	}
	data := record.Elements(t, values)
	out := make([]uint16, len(values))
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	return out
}

// together calls do concurrently for parts of [0, n), whose bounds are multiples of 4096, on all cores.
func together(n int, do func(begin, end int)) {
	const page = 4096
	workers := runtime.GOMAXPROCS(0)
	part := (n/workers + page) / page * page
	var wait sync.WaitGroup
	for begin := 0; begin < n; begin += part {
		wait.Go(func() { do(begin, min(n, begin+part)) })
	}
	wait.Wait()
}
