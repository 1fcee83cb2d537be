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

// TestDecode runs attention of few queries with heads of all widths, and with as many that share keys as fill clusters and as do not; with fewer
// keys than there are warps, and with some thousands; with keys between those of other heads and at odd places, and arguments that a table adds to.
// Values that are infinite or NaN reach the queries that see them, and no others.
func TestDecode(t *testing.T) {
	type decode struct {
		name               string
		heads, gqa, width  int
		multiprocessors    int
		queries, before    int // keys before the first query
		causal, odd, harsh bool
		launch             nvptx.Launch
		dtype              ir.DType
	}
	for _, x := range sample.Of(t, "attention of few queries", []decode{
		{"sdpa_rows_float16_t_128_128", 8, 4, 128, 4, 1, 599, true, false, false, nvptx.Launch{Values: true, Programmatic: true}, ir.F16},
		{"sdpa_rows_float16_t_128_128", 8, 4, 128, 32, 1, 2500, false, false, true, nvptx.Launch{Values: true}, ir.F16},
		{"sdpa_rows_float16_t_64_64", 9, 3, 64, 132, 1, 0, true, false, false, nvptx.Launch{Values: true}, ir.F16},
		{"sdpa_rows_bfloat16_t_64_64", 3, 3, 64, 4, 3, 1100, true, true, true, nvptx.Launch{Values: true, Moving: true}, ir.BF16},
		{"sdpa_rows_bfloat16_t_96_96", 7, 7, 96, 4, 1, 800, false, false, true, nvptx.Launch{Moving: true, Programmatic: true}, ir.BF16},
		{"sdpa_rows_float16_t_96_96", 5, 2, 96, 4, 2, 28, true, true, false, nvptx.Launch{}, ir.F16},
		{"sdpa_rows_float16_t_256_256", 2, 1, 256, 4, 1, 1300, true, false, false, nvptx.Launch{Values: true}, ir.F16},
		{"sdpa_rows_bfloat16_t_256_256", 16, 8, 256, 4, 1, 100, false, false, true, nvptx.Launch{Values: true}, ir.BF16},
		{"sdpa_rows_bfloat16_t_128_128", 12, 12, 128, 4, 2, 260, true, true, true, nvptx.Launch{Values: true, Moving: true}, ir.BF16},
		{"sdpa_rows_float16_t_64_64", 4, 4, 64, 4, 15, 3, true, false, false, nvptx.Launch{Values: true}, ir.F16},
	}, 5) {
		t.Run(fmt.Sprint(x.name, " ", x.gqa), func(t *testing.T) {
			causal := ir.FunctionConstant{Index: 22, Name: "do_causal", Type: ir.Bool}
			if x.causal {
				causal.Bits = 1
			}
			k, p := described(t, x.name, causal)
			r := rand.New(rand.NewPCG(uint64(x.width), uint64(x.before)))
			n := number16{x.dtype}
			m := &ptxrun.Memory{}
			add := func(b []byte) uint64 {
				if !x.odd {
					return m.Add(b)
				}
				return m.Add(append(make([]byte, 2), b...)) + 2
			}
			keys, kv := x.queries+x.before, (x.heads+x.gqa-1)/x.gqa
			q, qb := n.numbers(r, x.queries*x.heads*x.width, normal(2))
			ks, kb := n.numbers(r, keys*kv*x.width, normal(2))
			vs, vb := n.numbers(r, keys*kv*x.width, normal(1))
			if x.harsh {
				for i, v := range []float64{math.Inf(1), math.NaN(), math.Inf(-1)} {
					at := ((keys-i-1)*kv)*x.width + 5*i + 1
					vs[at] = v
					binary.LittleEndian.PutUint16(vb[2*at:], n.of(v))
				}
			}
			// Behind the last key nothing is read.
			scale := float32(1 / math.Sqrt(float64(x.width)))
			out := make([]byte, 2*x.queries*x.heads*x.width+2)
			for i := range out {
				out[i] = 0x5A
			}
			to := m.Add(out)
			if x.odd {
				to, out = to+2, out[2:]
			}
			launchedOn(t, x.multiprocessors, m, k, p, x.launch, true, [3]uint64{uint64(x.heads), uint64(x.queries), 1}, [3]uint64{256, 1, 1}, map[string]any{
				"queries": add(qb), "keys": add(kb), "values": add(vb), "out": to, "gqa_factor": x.gqa, "N": keys,
				"k_head_stride": x.width, "k_seq_stride": kv * x.width, "v_head_stride": x.width, "v_seq_stride": kv * x.width, "scale": scale,
			})
			attended(t, n, out, q, ks, vs, x.heads, x.gqa, x.width, x.queries, keys, x.causal, scale)
		})
	}
}

var _, _ = ptxmatrix.Fit{}, require.Equal
