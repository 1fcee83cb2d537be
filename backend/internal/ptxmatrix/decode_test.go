package ptxmatrix_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// TestDecode runs attention of few queries with heads of all widths, and with as many that share keys as fill clusters and as do not; with fewer
// keys than there are warps, and with some thousands; within windows, with scores that are kept within bounds, and with sinks; with one query to a cluster and with several, of which the last cluster may not have all, and whose last keys are of one chunk
// or of two; with keys between those of other heads and at odd places, and arguments that a table adds to.
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
		within             within
	}
	for _, x := range sample.Of(t, "attention of few queries", []decode{
		{"sdpa_rows_float16_t_128_128", 8, 4, 128, 4, 1, 599, true, false, false, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{}},
		{"sdpa_rows_float16_t_128_128", 8, 4, 128, 32, 1, 2500, false, false, true, nvptx.Launch{Values: true}, ir.F16, within{}},
		{"sdpa_rows_float16_t_64_64", 9, 3, 64, 96, 1, 0, true, false, false, nvptx.Launch{Values: true}, ir.F16, within{}},
		{"sdpa_rows_bfloat16_t_64_64", 3, 3, 64, 4, 3, 1100, true, true, true, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, ir.BF16, within{}},
		{"sdpa_rows_bfloat16_t_96_96", 7, 7, 96, 4, 1, 800, false, false, true, nvptx.Launch{Moving: true, Programmatic: true}, ir.BF16, within{}},
		{"sdpa_rows_float16_t_96_96", 5, 2, 96, 4, 2, 28, true, true, false, nvptx.Launch{}, ir.F16, within{}},
		{"sdpa_rows_float16_t_256_256", 2, 1, 256, 4, 1, 1300, true, false, false, nvptx.Launch{Values: true}, ir.F16, within{}},
		{"sdpa_rows_bfloat16_t_256_256", 16, 8, 256, 4, 1, 100, false, false, true, nvptx.Launch{Values: true}, ir.BF16, within{}},
		{"sdpa_rows_bfloat16_t_128_128", 12, 12, 128, 4, 2, 260, true, false, true, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, ir.BF16, within{}},
		{"sdpa_rows_float16_t_64_64", 4, 4, 64, 4, 15, 3, true, false, false, nvptx.Launch{Values: true}, ir.F16, within{}},
		{"sdpa_rows_float16_t_128_128", 8, 4, 128, 4, 7, 1050, true, false, true, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{}},
		{"sdpa_rows_float16_t_128_128", 2, 1, 128, 4, 5, 13, true, false, true, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{}},
		{"sdpa_rows_bfloat16_t_96_96", 5, 2, 96, 4, 9, 150, true, false, true, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, ir.BF16, within{}},
		{"sdpa_rows_float16_t_64_64", 6, 3, 64, 4, 2, 0, true, true, false, nvptx.Launch{Moving: true, Programmatic: true}, ir.F16, within{}},
		{"sdpa_rows_bfloat16_t_256_256", 4, 2, 256, 4, 3, 14, true, false, true, nvptx.Launch{Values: true}, ir.BF16, within{}},
		{"sdpa_rows_bfloat16_t_128_128", 4, 4, 128, 4, 3, 40, false, true, true, nvptx.Launch{}, ir.BF16, within{}},
		{"sdpa_rows_window_float16_t_128_128", 8, 4, 128, 4, 1, 1500, true, false, true, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{window: 1101}},
		{"sdpa_rows_window_bfloat16_t_64_64", 4, 2, 64, 4, 9, 120, true, true, true, nvptx.Launch{Moving: true, Programmatic: true}, ir.BF16, within{window: 17}},
		{"sdpa_rows_capped_bfloat16_t_256_256", 4, 2, 256, 4, 1, 300, true, false, false, nvptx.Launch{Values: true}, ir.BF16, within{window: 256, cap: 5}},
		{"sdpa_rows_sinks_float16_t_64_64", 8, 8, 64, 4, 2, 700, true, false, false, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{window: 128, sinks: true}},
		{"sdpa_rows_sinks_bfloat16_t_64_64", 8, 8, 64, 4, 1, 700, true, false, true, nvptx.Launch{Values: true}, ir.BF16, within{window: math.MaxInt32, sinks: true}},
	}, 8) {
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
			unread := 2 * x.within.unread(x.before) * kv * x.width // as in TestAttention
			keysAt := add(kb[unread:]) - uint64(unread)
			scale := float32(1 / math.Sqrt(float64(x.width)))
			out := make([]byte, 2*x.queries*x.heads*x.width+2)
			for i := range out {
				out[i] = 0x5A
			}
			to := m.Add(out)
			if x.odd {
				to, out = to+2, out[2:]
			}
			args := map[string]any{
				"queries": add(qb), "keys": keysAt, "values": add(vb), "out": to, "gqa_factor": x.gqa, "N": keys,
				"k_head_stride": x.width, "k_seq_stride": kv * x.width, "v_head_stride": x.width, "v_seq_stride": kv * x.width, "scale": scale,
			}
			sinks := x.within.arguments(r, n, x.heads, add, args)
			launchedOn(t, x.multiprocessors, m, k, p, x.launch, true, [3]uint64{uint64(x.heads), uint64(x.queries), 1}, [3]uint64{256, 1, 1}, args)
			attended(t, n, out, q, ks, vs, x.heads, x.gqa, x.width, x.queries, keys, x.causal, scale, x.within, sinks)
		})
	}
}

// decodeShape is attention with heads of 64 that share keys: of few queries, where heads and queries say how many of each a cluster has, or, if heads is 0, of many.
type decodeShape struct {
	coded                            bool
	heads, each, queries, rows, keys int
}

// decodeProgram is the entry of a shape, and what it takes to run it: the lines of the text, and how. The last key has a value that is infinite, or such a scale.
func decodeProgram(t *testing.T, x decodeShape) (lines []string, run func(text string) ([]byte, error)) {
	t.Helper()
	function := "sdpa_rows_float16_t_64_64"
	if x.coded {
		function = "sdpa_rows_float16_t_q8_0_64_64"
	}
	k, p := described(t, function, ir.FunctionConstant{Index: 22, Name: "do_causal", Type: ir.Bool, Bits: 1})
	const width = 64
	groups := [3]uint64{uint64(x.heads), uint64(x.queries), 1}
	f := p.Fit(groups, ptxmatrix.Given{Multiprocessors: 32, Constant: func(n string) (int64, bool) { return int64(x.heads), n == "gqa_factor" }})
	if x.each > 0 {
		require.Equal(t, x.heads, f.Heads)
		f.Heads, f.Rows = x.each, x.rows
	}
	lines = strings.SplitAfter(string(p.Emit(nvptx.Launch{Values: true, Programmatic: true}, f)), "\n")
	return lines, func(text string) ([]byte, error) {
		program, err := ptxrun.Parse([]byte(text))
		require.NoError(t, err)
		m, r, n := &ptxrun.Memory{}, rand.New(rand.NewPCG(7, 8)), number16{ir.F16}
		array := func(count int) uint64 {
			_, b := n.numbers(r, count, normal(1))
			return m.Add(b)
		}
		infinite := func(count int) uint64 {
			_, b := n.numbers(r, count*x.keys, normal(1))
			binary.LittleEndian.PutUint16(b[len(b)-2:], n.of(math.Inf(1)))
			return m.Add(b)
		}
		out := make([]byte, 2*x.queries*x.heads*width)
		args := map[string]uint64{"queries": array(x.queries * x.heads * width), "out": m.Add(out), "gqa_factor": uint64(x.heads), "N": uint64(x.keys),
			"k_seq_stride": width, "v_seq_stride": width, "scale": uint64(math.Float32bits(0.125))}
		if x.coded {
			for _, name := range []string{"keys", "values"} {
				codes := make([]byte, x.keys*width)
				for i := range codes {
					codes[i] = byte(r.IntN(255) - 127)
				}
				args[name] = m.Add(codes)
			}
			args["key_scales"], args["value_scales"] = array(x.keys*width/32), infinite(width/32)
		} else {
			args["keys"], args["values"] = array(x.keys*width), infinite(width)
		}
		var params []uint64
		for i := range k.Args {
			if k.Args[i].Attribute == "" {
				params = append(params, args[k.Args[i].Name])
			}
		}
		params = append(params, 256*groups[0], groups[1], 1, 256, 1, 1)
		grid, threads, shared := p.Launch(groups, f)
		err = program.Run(m, ptxrun.Launch{Params: params, Grid: [3]uint32{uint32(grid[0]), uint32(grid[1]), uint32(grid[2])}, Block: threads, Shared: int(shared)})
		if calls, all := program.Calls["wait"], int(grid[0]*grid[1])*int(threads); err == nil && calls != all && ptxrun.Elsewhere == nil {
			err = fmt.Errorf("%d of %d threads wait for the launches before", calls, all)
		}
		return out, err
	}
}

// TestDecodeWaits leaves out each instruction that orders threads, blocks and copies of attention of few queries, and of many: the interpreter notices.
func TestDecodeWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	for _, x := range []struct {
		waits int
		decodeShape
	}{
		{14, decodeShape{heads: 4, each: 4, queries: 1, rows: 1, keys: 5000}}, // some warps have more chunks than are asked for at a time
		{13, decodeShape{heads: 4, each: 4, queries: 2, rows: 2, keys: 5000}}, // queries do not come to shared memory
		{6, decodeShape{heads: 1, queries: 40, keys: 200}},
		{6, decodeShape{coded: true, heads: 1, queries: 40, keys: 200}},
	} {
		lines, run := decodeProgram(t, x.decodeShape)
		var waits []int
		for i, l := range lines {
			switch op, _, _ := strings.Cut(strings.TrimSuffix(strings.Fields(l + " -")[0], ";"), ".aligned"); op {
			case "cp.async.wait_group", "cp.async.commit_group", "bar.sync", "bar.warp.sync", "barrier.cluster.arrive.relaxed", "barrier.cluster.arrive.release", "barrier.cluster.wait.acquire", "griddepcontrol.wait":
				waits = append(waits, i)
			}
		}
		_, err := run(strings.Join(lines, ""))
		require.NoError(t, err)
		require.Len(t, waits, x.waits)
		for _, i := range waits {
			text := slices.Clone(lines)
			text[i] = ""
			_, err := run(strings.Join(text, ""))
			require.Error(t, err, "%+v without line %d: %s", x, i+1, lines[i])
		}
	}
}

// TestDecodeOrder: results have the same bits however many heads a cluster has, and however many queries: also of keys that not all of these see, in one chunk and in two.
func TestDecodeOrder(t *testing.T) {
	for _, shapes := range [][]decodeShape{
		{{heads: 8, each: 8}, {heads: 8, each: 3}, {heads: 8, each: 4, rows: 2}, {heads: 8, each: 3, rows: 2}, {heads: 8, each: 2, rows: 4}, {heads: 8, each: 1, rows: 8}},
		{{coded: true, heads: 4, each: 4}, {coded: true, heads: 4, each: 4, rows: 2}, {coded: true, heads: 4, each: 2, rows: 4}},
	} {
		var want []byte
		for _, x := range shapes {
			x.queries, x.rows, x.keys = 8, max(x.rows, 1), 69
			lines, run := decodeProgram(t, x)
			got, err := run(strings.Join(lines, ""))
			require.NoError(t, err)
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "%+v", x)
		}
	}
}

// TestDecodeFits: a cluster has all heads that share keys, but no more than eight; several queries if there are more of them and no more than eight heads in all, unless there are too few blocks; all heads have a cluster, and only one. Two blocks share a multiprocessor, and its memory, but those of wider heads.
func TestDecodeFits(t *testing.T) {
	_, p := described(t, "sdpa_rows_bfloat16_t_128_128")
	for _, x := range []struct {
		heads, queries uint64
		gqa            int64
		processors     int
		each, rows     int
		blocks         uint64
	}{
		{32, 1, 4, 132, 4, 1, 64}, {32, 2, 4, 132, 4, 2, 64}, {32, 3, 4, 132, 4, 2, 64}, {9, 1, 3, 96, 3, 1, 24}, {64, 1, 8, 132, 8, 1, 64}, {32, 1, 1, 132, 1, 1, 256}, {40, 1, 16, 132, 8, 1, 40},
		{7, 1, 7, 0, 7, 1, 8}, {12, 1, 12, 4, 6, 1, 16}, {9, 3, 2, 132, 2, 4, 40}, {30, 1, 10, 132, 5, 1, 48}, {3, 1, 1 << 30, 32, 8, 1, 8}, {1, 1, 4, 32, 4, 1, 8},
		{64, 5, 8, 132, 8, 1, 64}, {32, 9, 1, 132, 1, 8, 256}, {9, 4, 3, 132, 3, 2, 24}, {9, 2, 3, 132, 3, 1, 24}, {2, 8, 1, 132, 1, 2, 16},
	} {
		f := p.Fit([3]uint64{x.heads, x.queries, 1}, ptxmatrix.Given{Multiprocessors: x.processors, Constant: func(name string) (int64, bool) { return x.gqa, name == "gqa_factor" }})
		grid, threads, shared := p.Launch([3]uint64{x.heads, x.queries, 1}, f)
		require.Equal(t, x.each, f.Heads, "%+v", x)
		require.Equal(t, x.rows, f.Rows, "%+v", x)
		require.Equal(t, [3]uint64{x.blocks, (x.queries + uint64(x.rows) - 1) / uint64(x.rows), 1}, grid, "%+v", x)
		require.Zero(t, grid[0]%8)
		require.EqualValues(t, 256, threads)
		require.LessOrEqual(t, shared, uint32(113<<10))
	}
	few := p.Fit([3]uint64{9, 1, 1}, ptxmatrix.Given{Multiprocessors: 132, Constant: func(string) (int64, bool) { return 3, true }})
	require.False(t, few.Fits(), "24 blocks on 132 multiprocessors are slower than one block for each head")
	for _, width := range sample.Of(t, "memory of attention of few queries", []string{"64_64", "96_96", "128_128", "256_256"}, 4) {
		_, p := described(t, "sdpa_rows_float16_t_"+width)
		f := p.Fit([3]uint64{8, 1, 1}, ptxmatrix.Given{Multiprocessors: 32, Constant: func(string) (int64, bool) { return 8, true }})
		_, _, shared := p.Launch([3]uint64{8, 1, 1}, f)
		most := uint32(113 << 10)
		if width == "256_256" {
			most = 227 << 10
		}
		require.LessOrEqual(t, shared, most, width)
	}
	require.Zero(t, p.Fit([3]uint64{32, 1, 1}, ptxmatrix.Given{Multiprocessors: 132, Constant: func(string) (int64, bool) { return 4, false }}), "what may move is not known")
}

// TestDecodeWeights: weights are as exact as numbers of f32, however small they are, also where values that weigh little are all that an element has, or where they
// cancel each other; and a value that weighs next to nothing and is infinite is not forgotten. Keys are those of one chunk, with the scores 0, −3, −6 and so on, which are exact.
func TestDecodeWeights(t *testing.T) {
	const width, keys, large, apart = 64, 16, 57344, 3
	for _, dtype := range []ir.DType{ir.F16, ir.BF16} {
		n := number16{dtype}
		k, p := described(t, map[ir.DType]string{ir.F16: "sdpa_rows_float16_t_64_64", ir.BF16: "sdpa_rows_bfloat16_t_64_64"}[dtype])
		q, ks, vs := make([]float64, width), make([]float64, keys*width), make([]float64, keys*width)
		q[3] = 1
		weights, total := make([]float64, keys), 0.0
		for j := range keys {
			ks[j*width+3] = float64(-apart * j)
			weights[j] = math.Exp(float64(-apart * j))
			total += weights[j]
		}
		for d := range keys {
			// Element d is of one key alone.
			vs[d*width+d] = large
			// In this one, what the keys before add up to is taken away by each of a few.
			sum := 0.0
			for _, j := range []int{0, 1 + d%3, 2 + d%3} {
				v := 1 + float64(d)/keys
				if j > 0 {
					v = -sum / weights[j]
				}
				v = n.value(n.of(v))
				vs[j*width+keys+d] = v
				sum += v * weights[j]
			}
			// And in this one a key that weighs little, and is infinite or NaN, stands beside others.
			vs[d*width+2*keys+d] = math.Inf(2*(d%2) - 1)
			vs[2*keys+d] += 1
			vs[d*width+3*keys+d] = math.NaN()
		}
		bytes := func(values []float64) (b []byte) {
			for _, v := range values {
				b = binary.LittleEndian.AppendUint16(b, n.of(v))
			}
			return b
		}
		m := &ptxrun.Memory{}
		out := make([]byte, 2*width)
		launched(t, m, k, p, nvptx.Launch{Values: true}, true, [3]uint64{1, 1, 1}, [3]uint64{256, 1, 1}, map[string]any{
			"queries": m.Add(bytes(q)), "keys": m.Add(bytes(ks)), "values": m.Add(bytes(vs)), "out": m.Add(out), "gqa_factor": 1, "N": keys,
			"k_head_stride": keys * width, "k_seq_stride": width, "v_head_stride": keys * width, "v_seq_stride": width, "scale": float32(1),
		})
		for d := range width {
			want, size := 0.0, 0.0
			for j, w := range weights {
				e := w / total * vs[j*width+d]
				want, size = want+e, size+math.Abs(e)
			}
			got := n.value(binary.LittleEndian.Uint16(out[2*d:]))
			switch {
			case want != want:
				require.True(t, got != got, "%s, element %d: %g", dtype, d, got)
			case math.IsInf(want, 0):
				require.Equal(t, want, got, "%s, element %d", dtype, d)
			default:
				require.InDelta(t, want, got, size*0x1p-21+0.501*n.ulp(want), "%s, element %d", dtype, d)
			}
		}
	}
}
