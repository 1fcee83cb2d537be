package gguf

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Record returns the module of [decoder.Decoder.Module], with the tokenizer. If ctx is cancelled, it returns its error.
func (m *Model) Record(ctx context.Context, o frontend.Options) (_ *ir.Module, err error) {
	defer mmap.Catch(&err)() // it reads the model's file
	l, err := m.Decoder(ctx, o)
	if err != nil {
		return nil, err
	}
	out, err := l.Module()
	if err != nil {
		return nil, err
	}
	return out, frontend.Describe(out, m.spec, frontend.Usual(out))
}

// Decoder gets the model's weights ready. If ctx is cancelled, it returns its error.
func (m *Model) Decoder(ctx context.Context, o frontend.Options) (*decoder.Decoder, error) {
	if err := m.Config.Fill(&o); err != nil {
		return nil, err
	}
	w, err := m.weights(ctx, o)
	if err != nil {
		return nil, err
	}
	return decoder.New(m.Config, w, o), nil
}

// weights gets every tensor ready, once for both graphs: repacked, or as it lies in the file.
func (m *Model) weights(ctx context.Context, o frontend.Options) (map[string]decoder.Weight, error) {
	out, d := map[string]decoder.Weight{}, frontend.NewDigests(o)
	for i, t := range m.File.Tensors {
		if slices.Contains(m.architecture.ropeFactors, t.Name) {
			continue // they are in the configuration
		}
		for _, part := range m.fused.parts(m.Config, t) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			name := part.Name
			if other := m.architecture.ffnNorm; other != "" {
				name = strings.Replace(name, "."+other+".", ".ffn_norm.", 1)
			}
			out[name] = m.weight(part, o, d)
		}
		d.Ready(float64(i+1) / float64(len(m.File.Tensors)))
	}
	return out, d.Compute(ctx)
}

// weight gets a tensor ready, or a part of one.
func (m *Model) weight(t ggufio.Tensor, o frontend.Options, d *frontend.Digests) decoder.Weight {
	w := decoder.Weight{Name: t.Name, K: int64(t.Dims[0]), Type: o.Type, Group: blockElements}
	if len(t.Dims) > 1 {
		w.N = int64(t.Dims[1])
	}
	if len(t.Dims) > 2 {
		w.Experts = int64(t.Dims[2])
	}
	repack := repacked[t.Type]
	switch {
	case numbers[t.Type] != ir.Invalid:
		w.Type, w.Blob = m.dense(t, o, d)
	case repack == nil || o.Blocks:
		w.Format, _ = record.GGMLFormatNamed(t.Type.String())
		w.Blob = m.contents(t, o, d)
	default:
		w.Bits = repack.bits
		w.Codes, w.Scales, w.Biases = repack.repack(m.File.Data(t), named(t), o.Type, d)
	}
	return w
}

// named names the contents of a tensor, or of a part of one, in its file.
func named(t ggufio.Tensor) string {
	return fmt.Sprintf("%d bytes of %s at %d", t.Size, t.Type, t.Offset)
}
