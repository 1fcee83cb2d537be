package textgen

import (
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
)

// Tokens are drawn by the kernel sample_float32, on the host and on devices, from the logits, the seed and
// the position. So the same logits give the same token wherever it is drawn.

// sampling are the params of a graph that draws its token itself (gguf.Options.Sample).
var sampling = map[string]ir.DType{"temp": ir.F32, "top_p": ir.F32, "seed_low": ir.U32, "seed_high": ir.U32}

// samples reports whether a graph draws its token itself.
func samples(g *ir.Graph) bool {
	for name, t := range sampling {
		if i, ok := g.ParamNamed(name); !ok || g.Params[i].Type != t {
			return false
		}
	}
	return true
}

// setSampling sets the params of a graph that draws its token itself.
func setSampling(g *ir.Graph, set func(name string, v float64) error, o Options) error {
	if !samples(g) {
		return nil
	}
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"temp", float64(float32(o.Temp))}, {"top_p", float64(float32(o.TopP))},
		{"seed_low", float64(uint32(o.Seed))}, {"seed_high", float64(uint32(o.Seed >> 32))},
	} {
		if err := set(p.name, p.value); err != nil {
			return err
		}
	}
	return nil
}

// sample draws a token from the logits of a position.
func sample(logits []float32, position int, o Options) int32 {
	return int32(cpu.Sample(logits, float32(o.Temp), float32(o.TopP), o.Seed, uint32(position)))
}
