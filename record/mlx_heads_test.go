package record_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// attentionCase is a case of testdata/attention.json (testdata/gen/attention.py).
type attentionCase struct {
	Type                                       string
	Width, Values, Batch, Heads, Queries, Keys int64
	KeyHeads                                   int64 `json:"key_heads"`
	Mask                                       string
	Causal, Sinks                              bool
	Step                                       int
	Exact, MLX                                 string
}

func (c *attentionCase) String() string {
	return fmt.Sprintf("%s %d %d, %d of %d heads by %d, %d of %d%s causal=%t sinks=%t", c.Type, c.Width, c.Values, c.Batch, c.Heads, c.KeyHeads, c.Queries, c.Keys, c.Mask, c.Causal, c.Sinks)
}

// mixed returns hashes, as attention.py makes them.
func mixed(number uint32, count int64) []uint32 {
	out := make([]uint32, count)
	for i := range out {
		h := uint32(i) + number*1000003
		h ^= h >> 16
		h *= 0x7feb352d
		h ^= h >> 15
		h *= 0x846ca68b
		out[i] = h ^ h>>16
	}
	return out
}

// sampled returns numbers of a case.
func sampled(t *testing.T, text string) (out []float64) {
	data, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	for ; len(data) > 0; data = data[4:] {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
	}
	return out
}

// attend computes a case on a device, without a compiled library, and returns the elements that are sampled. Positions may
// lie outside of heads, as layers of models make them.
func (c *attentionCase) attend(t *testing.T, device backend.Device, apart bool, with ...record.Setting) []float64 {
	typ, err := ir.ParseDType(c.Type)
	require.NoError(t, err)
	s := record.New("t", append(with, record.Live(device))...)
	input := func(number uint32, shape ...int64) record.Tensor {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i, h := range mixed(number, n) {
			values[i] = (float32(h>>24) - 128) / 64
		}
		stored, turned := shape, apart && len(shape) == 4
		if turned {
			stored = []int64{shape[0], shape[2], shape[1], shape[3]}
			for i, from := range append([]float32(nil), values...) {
				rest := int64(i)
				d := rest % shape[3]
				rest /= shape[3]
				p := rest % shape[2]
				rest /= shape[2]
				values[((rest/shape[1]*shape[2]+p)*shape[1]+rest%shape[1])*shape[3]+d] = from
			}
		}
		x := s.Input(fmt.Sprint("in", number), typ, stored...)
		require.NoError(t, s.Write(x, record.Elements(typ, values)))
		if turned {
			x = x.Transpose(1, 2)
		}
		return x
	}
	q := input(0, c.Batch, c.Heads, c.Queries, c.Width)
	k := input(1, c.Batch, c.KeyHeads, c.Keys, c.Width)
	v := input(2, c.Batch, c.KeyHeads, c.Keys, c.Values)
	var mask, sinks record.Tensor
	if c.Sinks {
		sinks = input(4, c.Heads)
	}
	switch c.Mask {
	case "added":
		mask = input(3, c.Batch, c.Heads, c.Queries, c.Keys)
	case "bool", "batches":
		shape := []int64{c.Queries, c.Keys}
		if c.Mask == "batches" {
			shape = []int64{c.Batch, 1, c.Queries, c.Keys}
		}
		mask = s.Input("mask", ir.Bool, shape...)
		bits := make([]byte, mask.Elements().Const)
		for i, h := range mixed(3, int64(len(bits))) {
			if bits[i] = byte(h >> 31); int64(i)%c.Keys == 0 {
				bits[i] = 1
			}
		}
		require.NoError(t, s.Write(mask, bits))
	}
	out := s.MLX().Attention(q, k, v, mask, sinks, float32(1/math.Sqrt(float64(c.Width))), c.Causal)
	require.NoError(t, s.Err())
	kept := s.State("out", typ, c.Batch, c.Heads, c.Queries, c.Values)
	s.CopyTo("copy", kept, out)
	_, err = s.Finish()
	require.NoError(t, err)
	data := make([]byte, kept.Elements().Const*typ.Size())
	require.NoError(t, s.Read(kept, data))
	require.NoError(t, s.Close())
	var sample []float64
	for i, x := range wide(typ, data) {
		if i%c.Step == 0 {
			sample = append(sample, x)
		}
	}
	return sample
}

// Attention with heads of which MLX has no fused kernel is the operations that MLX takes, by kernels of our own: against
// float64 and MLX's own results.
func TestAttentionOfOtherHeads(t *testing.T) {
	text, err := os.ReadFile("../testdata/attention.json")
	require.NoError(t, err)
	var file struct{ Cases []attentionCase }
	require.NoError(t, json.Unmarshal(text, &file))
	// What 16 bits may be off: scores and weights are rounded before values are added up. MLX rounds at the same places and
	// adds in other orders, so that a result may become the number beside its.
	exact := map[string]float64{"f32": 2e-6, "f16": 2e-3, "bf16": 2.5e-2}
	theirs := map[string]float64{"f32": 2e-6, "f16": 0x1p-10, "bf16": 0x1p-7}
	for i := range file.Cases {
		c := &file.Cases[i]
		t.Run(c.String(), func(t *testing.T) {
			for _, apart := range []bool{false, true} {
				chip := map[bool]string{false: "applegpu_g13g", true: "applegpu_g16s"}[apart]
				got := c.attend(t, cpu.New(1), apart, record.Chip(chip))
				want, mlx := sampled(t, c.Exact), sampled(t, c.MLX)
				require.Len(t, got, len(want))
				for j, x := range got {
					require.InDelta(t, want[j], x, exact[c.Type], "element %d", j*c.Step)
					require.InDelta(t, mlx[j], x, theirs[c.Type], "element %d, by MLX", j*c.Step)
				}
			}
		})
	}
}
