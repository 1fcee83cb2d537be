package textgen

import "github.com/mlxc/mlxc/backend/cpu"

// sample draws a token from the logits of a position. The kernel sample_float32 does it, on the host and on devices,
// from the logits, the seed and the position: the same logits give the same token wherever it is drawn.
func sample(logits []float32, position int, o Options) int32 {
	return int32(cpu.Sample(logits, float32(o.Temp), float32(o.TopP), o.Seed, uint32(position)))
}
