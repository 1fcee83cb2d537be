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

// within is what some kernels are told besides: how many keys a query sees at most, 0: all of them; within which bounds scores are kept, 0: none; and whether there are sinks.
type within struct {
	window int
	cap    float32
	sinks  bool
}

// unread is how many keys are before all windows, if the first query has so many before it.
func (x within) unread(before int) int {
	if x.window == 0 {
		return 0
	}
	return max(0, before+1-x.window)
}

// form is how the names of such kernels begin behind what all have in common.
func (x within) form() string {
	switch {
	case x.sinks:
		return "sinks_"
	case x.cap > 0:
		return "capped_"
	case x.window > 0:
		return "window_"
	}
	return ""
}

// arguments adds what a kernel is told to its arguments, and returns the sinks.
func (x within) arguments(r *rand.Rand, n number16, heads int, add func([]byte) uint64, args map[string]any) (sinks []float64) {
	if x.window > 0 {
		args["window"] = x.window
	}
	if x.cap > 0 {
		args["cap"] = x.cap
	}
	if x.sinks {
		var b []byte
		sinks, b = n.numbers(r, heads, normal(6))
		args["sinks"] = add(b)
	}
	return sinks
}

// TestAttention runs attention with heads of all widths, blocks and tiles that are not full, positions before the first query,
// keys between those of other heads and at odd places, and arguments that a table adds to; within windows that begin and end in all places of a tile, with scores that are kept within bounds, and with
// sinks. Values that are infinite or NaN reach the queries that see them, and no others.
func TestAttention(t *testing.T) {
	type attention struct {
		name               string
		heads, gqa, width  int
		queries, before    int // keys before the first query
		causal, odd, harsh bool
		launch             nvptx.Launch
		dtype              ir.DType
		gpu                ptxmatrix.GPU
		within             within
	}
	for _, x := range sample.Of(t, "attention in tiles", []attention{
		{"sdpa_rows_float16_t_64_64", 4, 2, 64, 20, 37, true, false, false, nvptx.Launch{Values: true}, ir.F16, ptxmatrix.Hopper, within{}},
		{"sdpa_rows_float16_t_64_64", 1, 1, 64, 70, 0, true, false, true, nvptx.Launch{}, ir.F16, ptxmatrix.Hopper, within{}},
		{"sdpa_rows_bfloat16_t_128_128", 2, 2, 128, 66, 64, false, false, false, nvptx.Launch{Values: true, Moving: true}, ir.BF16, ptxmatrix.Hopper, within{}},
		{"sdpa_rows_float16_t_128_128", 2, 1, 128, 17, 100, true, true, false, nvptx.Launch{Moving: true}, ir.F16, ptxmatrix.Hopper, within{}},
		{"sdpa_rows_bfloat16_t_96_96", 3, 3, 96, 16, 1, true, true, true, nvptx.Launch{Values: true, Programmatic: true}, ir.BF16, ptxmatrix.Hopper, within{}},
		{"sdpa_rows_float16_t_96_96", 1, 1, 96, 64, 70, false, false, false, nvptx.Launch{Values: true}, ir.F16, ptxmatrix.Hopper, within{}},
		{"sdpa_rows_float16_t_64_64", 2, 1, 64, 70, 3, true, false, true, nvptx.Launch{Values: true}, ir.F16, ada, within{}},
		{"sdpa_rows_bfloat16_t_128_128", 2, 2, 128, 20, 64, true, false, true, nvptx.Launch{Moving: true}, ir.BF16, ada, within{}},
		{"sdpa_rows_float16_t_96_96", 1, 1, 96, 17, 70, false, true, false, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, ampere, within{}},
		{"sdpa_rows_float16_t_256_256", 2, 1, 256, 66, 37, true, false, true, nvptx.Launch{Values: true}, ir.F16, ptxmatrix.Hopper, within{}},
		{"sdpa_rows_bfloat16_t_256_256", 1, 1, 256, 17, 20, false, true, false, nvptx.Launch{Values: true}, ir.BF16, ampere, within{}},
		{"sdpa_rows_window_float16_t_64_64", 2, 1, 64, 130, 150, true, false, true, nvptx.Launch{Values: true, Moving: true}, ir.F16, ptxmatrix.Hopper, within{window: 41}},
		{"sdpa_rows_window_bfloat16_t_128_128", 2, 2, 128, 66, 300, true, true, true, nvptx.Launch{Values: true}, ir.BF16, ptxmatrix.Hopper, within{window: 128}},
		{"sdpa_rows_window_float16_t_256_256", 1, 1, 256, 40, 100, true, false, true, nvptx.Launch{Values: true}, ir.F16, ptxmatrix.Hopper, within{window: 33}},
		{"sdpa_rows_window_float16_t_96_96", 1, 1, 96, 70, 3, true, false, true, nvptx.Launch{}, ir.F16, ada, within{window: 1}},
		{"sdpa_rows_capped_bfloat16_t_256_256", 2, 1, 256, 66, 10, true, false, true, nvptx.Launch{Values: true}, ir.BF16, ptxmatrix.Hopper, within{window: 40, cap: 4}},
		{"sdpa_rows_capped_float16_t_128_128", 1, 1, 128, 20, 70, true, false, false, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, ptxmatrix.Hopper, within{window: math.MaxInt32, cap: 50}},
		{"sdpa_rows_sinks_bfloat16_t_64_64", 4, 4, 64, 70, 140, true, false, true, nvptx.Launch{Values: true}, ir.BF16, ptxmatrix.Hopper, within{window: 63, sinks: true}},
		{"sdpa_rows_sinks_float16_t_64_64", 3, 1, 64, 20, 0, true, true, false, nvptx.Launch{Moving: true}, ir.F16, ada, within{window: math.MaxInt32, sinks: true}},
	}, 7) {
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
				if x.within.window > 0 { // values of keys that are before the windows of later queries
					for i, v := range []float64{math.NaN(), math.Inf(1)} {
						at := ((x.before+3*i)*kv)*x.width + 7*i + 2
						vs[at] = v
						binary.LittleEndian.PutUint16(vb[2*at:], n.of(v))
					}
				}
				at := ((keys - 1) * kv) * x.width // a key that only the last query sees
				ks[at] = math.NaN()
				binary.LittleEndian.PutUint16(kb[2*at:], n.of(math.NaN()))
			}
			// Keys that are before all windows are not read: they are nobody's memory, as nothing lies before the first that there is.
			unread := 2 * x.within.unread(x.before) * kv * x.width
			keysAt := add(kb[unread:]) - uint64(unread)
			scale := float32(1 / math.Sqrt(float64(x.width)))
			out := make([]byte, 2*x.queries*x.heads*x.width+2)
			to := m.Add(out)
			if x.odd {
				to, out = to+2, out[2:]
			}
			args := map[string]any{
				"queries": add(qb), "keys": keysAt, "values": add(vb), "out": to, "gqa_factor": x.gqa, "N": keys,
				"k_head_stride": x.width, "k_seq_stride": kv * x.width, "v_head_stride": x.width, "v_seq_stride": kv * x.width, "scale": scale,
			}
			sinks := x.within.arguments(r, n, x.heads, add, args)
			launched(t, m, k, p, x.launch, true, [3]uint64{uint64(x.heads), uint64(x.queries), 1}, [3]uint64{256, 1, 1}, args)
			attended(t, n, out, q, ks, vs, x.heads, x.gqa, x.width, x.queries, keys, x.causal, scale, x.within, sinks)
		})
	}
}

// TestAttentionAtTheEnds has numbers that recorders do not refuse at the ends of what there is, of many queries and of few: sinks that are infinite, NaN, or far beyond all scores, a window of one
// key and one longer than all that there are, bounds that are next to 0 and nearly infinite, and scales that are 0 or negative.
func TestAttentionAtTheEnds(t *testing.T) {
	for _, x := range sample.Of(t, "attention at the ends", []struct {
		of     string
		dtype  ir.DType
		within within
		sinks  []float64
		scale  float32
	}{
		{"sinks_float16_t", ir.F16, within{window: 30, sinks: true}, []float64{math.Inf(1), math.Inf(-1), math.NaN()}, 0.1},
		{"sinks_bfloat16_t", ir.BF16, within{window: math.MaxInt32, sinks: true}, []float64{0x1p127, -0x1p127, 0}, 0.1},
		{"window_float16_t", ir.F16, within{window: 1}, nil, 0.1},
		{"window_bfloat16_t", ir.BF16, within{window: math.MaxInt32}, nil, 0},
		{"window_float16_t", ir.F16, within{window: 3}, nil, -0.3},
		{"capped_float16_t", ir.F16, within{window: 30, cap: 0x1p-126}, nil, 0.1},
		{"capped_bfloat16_t", ir.BF16, within{window: 30, cap: 0x1p100}, nil, 0.1},
	}, 4) {
		for _, queries := range []int{20, 4, 1} {
			t.Run(fmt.Sprint(x.of, " ", x.within.window, " ", queries), func(t *testing.T) {
				const heads, width, before = 3, 64, 11
				k, p := described(t, "sdpa_rows_"+x.of+"_64_64")
				r, n, m := rand.New(rand.NewPCG(3, uint64(queries))), number16{x.dtype}, &ptxrun.Memory{}
				keys := queries + before
				q, qb := n.numbers(r, queries*heads*width, normal(2))
				ks, kb := n.numbers(r, keys*heads*width, normal(2))
				vs, vb := n.numbers(r, keys*heads*width, normal(1))
				out := make([]byte, 2*queries*heads*width)
				args := map[string]any{
					"queries": m.Add(qb), "keys": m.Add(kb), "values": m.Add(vb), "out": m.Add(out), "gqa_factor": 1, "N": keys,
					"k_head_stride": width, "k_seq_stride": heads * width, "v_head_stride": width, "v_seq_stride": heads * width, "scale": x.scale,
				}
				x.within.arguments(r, n, heads, m.Add, args)
				if x.sinks != nil {
					var b []byte
					for _, v := range x.sinks {
						b = n.put(b, v)
					}
					args["sinks"] = m.Add(b)
				}
				launched(t, m, k, p, nvptx.Launch{Values: true}, true, [3]uint64{heads, uint64(queries), 1}, [3]uint64{256, 1, 1}, args)
				attended(t, n, out, q, ks, vs, heads, 1, width, queries, keys, true, x.scale, x.within, x.sinks)
			})
		}
	}
}

// TestAttentionFits: blocks of prompts have as much shared memory as a GPU has, or other code is launched; of fewer queries within a window each has a cluster of its own.
func TestAttentionFits(t *testing.T) {
	prompt := [3]uint64{8, 70, 1}
	for _, x := range []struct {
		name string
		gpu  ptxmatrix.GPU
		fits bool
	}{
		{"sdpa_rows_float16_t_256_256", ampere, true}, {"sdpa_rows_capped_bfloat16_t_256_256", ada, false}, {"sdpa_rows_window_float16_t_q8_0_256_256", ada, true},
		{"sdpa_rows_sinks_bfloat16_t_128_128", ada, true},
	} {
		_, p := describedFor(t, x.gpu, x.name)
		f := p.Fit(prompt, ptxmatrix.Given{})
		require.Equal(t, x.fits, f.Fits(), x.name)
		if !x.fits {
			continue
		}
		grid, threads, shared := p.Launch(prompt, f)
		require.Equal(t, [3]uint64{8, 2, 1}, grid, x.name)
		require.EqualValues(t, 128, threads, x.name)
		require.LessOrEqual(t, int(shared), x.gpu.Memory-1<<10, x.name)
	}
	for name, rows := range map[string]int{"sdpa_rows_bfloat16_t_64_64": 2, "sdpa_rows_window_bfloat16_t_64_64": 1} {
		_, p := described(t, name)
		f := p.Fit([3]uint64{32, 15, 1}, ptxmatrix.Given{Multiprocessors: 132, Constant: func(string) (int64, bool) { return 4, true }})
		require.Equal(t, rows, f.Rows, name)
		require.Equal(t, 4, f.Heads, name)
	}
}

// attended compares results of attention with what f64 gives.
func attended(t *testing.T, n number16, out []byte, q, ks, vs []float64, heads, gqa, width, queries, keys int, causal bool, scale float32, within within, sinks []float64) {
	t.Helper()
	kv := (heads + gqa - 1) / gqa
	for i := range queries {
		visible := keys
		if causal {
			visible = keys - queries + i + 1
		}
		first := 0
		if within.window > 0 {
			first = max(0, visible-within.window)
		}
		visible -= first
		for h := range heads {
			query := q[(i*heads+h)*width:][:width]
			scores, top := make([]float64, visible), math.Inf(-1)
			var off float64 // of a score
			for j := range scores {
				size := 0.0
				for d, v := range query {
					e := v * float64(scale) * ks[((first+j)*kv+h/gqa)*width+d]
					scores[j] += e
					size += math.Abs(e)
				}
				more := 0.0
				if c := float64(within.cap); c > 0 {
					scores[j] = c * math.Tanh(scores[j]/c)
					more = 8 * math.Abs(scores[j]) * 0x1p-24
				}
				if scores[j] == scores[j] {
					top, off = max(top, scores[j]), max(off, size*float64(width+3)*0x1p-24+more)
				}
			}
			total := 0.0
			if sinks != nil {
				top = max(top, sinks[h])
				total = math.Exp(sinks[h] - top)
			}
			for j := range scores {
				scores[j] = math.Exp(scores[j] - top)
				total += scores[j]
			}
			for d := range width {
				sum, size := 0.0, 0.0
				for j, w := range scores {
					e := w * vs[((first+j)*kv+h/gqa)*width+d]
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
