package ptxmatrix_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// TestAttention runs attention with heads of all widths, blocks and tiles that are not full, positions before the first query,
// keys between those of other heads and at odd places, and arguments that a table adds to. Values that are infinite or NaN reach the queries
// that see them, and no others.
func TestAttention(t *testing.T) {
	type attention struct {
		name               string
		heads, gqa, width  int
		queries, before    int // keys before the first query
		causal, odd, harsh bool
		launch             nvptx.Launch
		dtype              ir.DType
		gpu                ptxmatrix.GPU
	}
	for _, x := range sample.Of(t, "attention in tiles", []attention{
		{"sdpa_rows_float16_t_64_64", 4, 2, 64, 20, 37, true, false, false, nvptx.Launch{Values: true}, ir.F16, ptxmatrix.Hopper},
		{"sdpa_rows_float16_t_64_64", 1, 1, 64, 70, 0, true, false, true, nvptx.Launch{}, ir.F16, ptxmatrix.Hopper},
		{"sdpa_rows_bfloat16_t_128_128", 2, 2, 128, 66, 64, false, false, false, nvptx.Launch{Values: true, Moving: true}, ir.BF16, ptxmatrix.Hopper},
		{"sdpa_rows_float16_t_128_128", 2, 1, 128, 17, 100, true, true, false, nvptx.Launch{Moving: true}, ir.F16, ptxmatrix.Hopper},
		{"sdpa_rows_bfloat16_t_96_96", 3, 3, 96, 16, 1, true, true, true, nvptx.Launch{Values: true, Programmatic: true}, ir.BF16, ptxmatrix.Hopper},
		{"sdpa_rows_float16_t_96_96", 1, 1, 96, 64, 70, false, false, false, nvptx.Launch{Values: true}, ir.F16, ptxmatrix.Hopper},
		{"sdpa_rows_float16_t_64_64", 2, 1, 64, 70, 3, true, false, true, nvptx.Launch{Values: true}, ir.F16, ada},
		{"sdpa_rows_bfloat16_t_128_128", 2, 2, 128, 20, 64, true, false, true, nvptx.Launch{Moving: true}, ir.BF16, ada},
		{"sdpa_rows_float16_t_96_96", 1, 1, 96, 17, 70, false, true, false, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, ampere},
	}, 5) {
		t.Run(fmt.Sprint(x.name, " ", x.gpu.Major), func(t *testing.T) {
			causal := ir.FunctionConstant{Index: 22, Name: "do_causal", Type: ir.Bool}
			if x.causal {
				causal.Bits = 1
			}
			k, p := describedFor(t, x.gpu, x.name, causal)
			require.Nil(t, ptxmatrix.Of(k, nil, ptxmatrix.GPU{}), "for no GPU there is code")
			r := rand.New(rand.NewPCG(uint64(x.width), uint64(x.queries)))
			n := number16{x.dtype}
			m := &ptxrun.Memory{}
			add := func(b []byte) uint64 {
				if !x.odd {
					return m.Add(b)
				}
				return m.Add(append(make([]byte, 2), b...)) + 2
			}
			keys, kv := x.queries+x.before, x.heads/x.gqa
			q, qb := n.numbers(r, x.queries*x.heads*x.width, normal(2))
			ks, kb := n.numbers(r, keys*kv*x.width, normal(2))
			vs, vb := n.numbers(r, keys*kv*x.width, normal(1))
			if x.harsh {
				for i, v := range []float64{math.Inf(1), math.NaN(), math.Inf(-1)} {
					at := ((keys-3*i-2)*kv)*x.width + 5*i + 1
					vs[at] = v
					binary.LittleEndian.PutUint16(vb[2*at:], n.of(v))
				}
				at := ((keys - 1) * kv) * x.width // a key that only the last query sees
				ks[at] = math.NaN()
				binary.LittleEndian.PutUint16(kb[2*at:], n.of(math.NaN()))
			}
			scale := float32(1 / math.Sqrt(float64(x.width)))
			out := make([]byte, 2*x.queries*x.heads*x.width+2)
			to := m.Add(out)
			if x.odd {
				to, out = to+2, out[2:]
			}
			launched(t, m, k, p, x.launch, true, [3]uint64{uint64(x.heads), uint64(x.queries), 1}, [3]uint64{256, 1, 1}, map[string]any{
				"queries": add(qb), "keys": add(kb), "values": add(vb), "out": to, "gqa_factor": x.gqa, "N": keys,
				"k_head_stride": x.width, "k_seq_stride": kv * x.width, "v_head_stride": x.width, "v_seq_stride": kv * x.width, "scale": scale,
			})
			attended(t, n, out, q, ks, vs, x.heads, x.gqa, x.width, x.queries, keys, x.causal, scale)
		})
	}
}

// attended compares results of attention with what f64 gives.
func attended(t *testing.T, n number16, out []byte, q, ks, vs []float64, heads, gqa, width, queries, keys int, causal bool, scale float32) {
	t.Helper()
	kv := (heads + gqa - 1) / gqa
	for i := range queries {
		visible := keys
		if causal {
			visible = keys - queries + i + 1
		}
		for h := range heads {
			query := q[(i*heads+h)*width:][:width]
			scores, top := make([]float64, visible), math.Inf(-1)
			var off float64 // of a score
			for j := range scores {
				size := 0.0
				for d, v := range query {
					e := v * float64(scale) * ks[(j*kv+h/gqa)*width+d]
					scores[j] += e
					size += math.Abs(e)
				}
				if scores[j] == scores[j] {
					top, off = max(top, scores[j]), max(off, size*float64(width+3)*0x1p-24)
				}
			}
			total := 0.0
			for j := range scores {
				scores[j] = math.Exp(scores[j] - top)
				total += scores[j]
			}
			for d := range width {
				sum, size := 0.0, 0.0
				for j, w := range scores {
					e := w * vs[(j*kv+h/gqa)*width+d]
					sum, size = sum+e, size+math.Abs(e)
				}
				at := (i*heads+h)*width + d
				bits := binary.LittleEndian.Uint16(out[2*at:])
				got, want := n.value(bits), sum/total
				switch {
				case want != want:
					require.True(t, got != got, "query %d, head %d, element %d: %g", i, h, d, got)
				case math.IsInf(want, 0):
					require.Equal(t, want, got, "query %d, head %d, element %d", i, h, d)
				default:
					bound := size / total * (2*off + float64(visible+20)*0x1p-23)
					require.InDelta(t, want, got, bound+0.51*n.ulp(want), "query %d, head %d, element %d", i, h, d)
				}
			}
		}
	}
}
