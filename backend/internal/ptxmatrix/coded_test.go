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

// ofCodes is attention to a cache of 8 bits.
type ofCodes struct {
	heads, gqa, width  int
	multiprocessors    int
	queries, before    int // keys before the first query
	causal, odd, harsh bool
	launch             nvptx.Launch
	dtype              ir.DType
	within             within
}

// TestDecodeOfCodes runs attention of few queries to a cache of 8 bits, as TestDecode does to one of 16. Scales are from the least numbers of f16 to its greatest, of any sign; one that is infinite reaches
// the queries that see it, and no others.
func TestDecodeOfCodes(t *testing.T) {
	for _, x := range sample.Of(t, "attention of few queries to codes", []ofCodes{
		{8, 4, 128, 4, 1, 599, true, false, false, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{}},
		{8, 4, 128, 32, 1, 2500, false, false, true, nvptx.Launch{Values: true}, ir.F16, within{}},
		{9, 3, 64, 96, 1, 0, true, false, false, nvptx.Launch{Values: true}, ir.F16, within{}},
		{3, 3, 64, 4, 3, 1100, true, true, true, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, ir.BF16, within{}},
		{7, 7, 128, 4, 1, 800, false, true, false, nvptx.Launch{Moving: true, Programmatic: true}, ir.BF16, within{}},
		{2, 1, 256, 4, 1, 1300, true, false, false, nvptx.Launch{Values: true}, ir.BF16, within{}},
		{16, 8, 256, 4, 1, 100, false, true, true, nvptx.Launch{Values: true}, ir.F16, within{}},
		{12, 12, 64, 4, 2, 260, true, false, true, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, ir.BF16, within{}},
		{8, 4, 128, 4, 5, 27, true, false, true, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{}},
		{4, 2, 64, 4, 7, 1100, true, true, true, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, ir.BF16, within{}},
		{2, 2, 256, 4, 3, 14, true, false, true, nvptx.Launch{Values: true}, ir.F16, within{}},
		{2, 1, 64, 4, 3, 40, true, false, true, nvptx.Launch{}, ir.BF16, within{}},
		{4, 2, 128, 4, 3, 500, true, false, true, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{window: 201}},
		{4, 4, 64, 4, 2, 90, true, true, false, nvptx.Launch{Moving: true}, ir.BF16, within{window: 33, cap: 3}},
		{3, 3, 256, 4, 1, 40, true, false, false, nvptx.Launch{Values: true}, ir.F16, within{window: math.MaxInt32, sinks: true}},
	}, 7) {
		t.Run(fmt.Sprint(x.dtype, " ", x.width, " ", x.gqa), func(t *testing.T) { x.run(t, ptxmatrix.Hopper) })
	}
}

// TestAttentionOfCodes does so with queries that share blocks, as TestAttention does with a cache of 16 bits.
func TestAttentionOfCodes(t *testing.T) {
	for i, x := range sample.Of(t, "attention in tiles of codes", []ofCodes{
		{4, 2, 64, 4, 20, 37, true, false, false, nvptx.Launch{Values: true}, ir.F16, within{}},
		{1, 1, 128, 4, 70, 0, true, false, true, nvptx.Launch{}, ir.F16, within{}},
		{2, 2, 128, 4, 66, 64, false, true, false, nvptx.Launch{Values: true, Moving: true}, ir.BF16, within{}},
		{2, 1, 256, 4, 66, 37, true, false, true, nvptx.Launch{Values: true}, ir.BF16, within{}},
		{1, 1, 64, 4, 17, 150, true, true, true, nvptx.Launch{Values: true}, ir.BF16, within{window: 65}},
		{2, 2, 256, 4, 40, 70, true, false, true, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, within{window: 50, cap: 10}},
		{3, 3, 128, 4, 20, 50, true, false, false, nvptx.Launch{Values: true}, ir.F16, within{window: 20, sinks: true}},
	}, 4) {
		gpu := ptxmatrix.Hopper
		if i%2 != 0 {
			gpu = ampere
		}
		t.Run(fmt.Sprint(x.dtype, " ", x.width, " ", x.gqa, " ", gpu.Major), func(t *testing.T) { x.run(t, gpu) })
	}
}

func (x ofCodes) run(t *testing.T, gpu ptxmatrix.GPU) {
	causal := ir.FunctionConstant{Index: 22, Name: "do_causal", Type: ir.Bool}
	if x.causal {
		causal.Bits = 1
	}
	k, p := describedFor(t, gpu, fmt.Sprintf("sdpa_rows_%s%s_q8_0_%d_%d", x.within.form(), map[ir.DType]string{ir.F16: "float16_t", ir.BF16: "bfloat16_t"}[x.dtype], x.width, x.width), causal)
	r := rand.New(rand.NewPCG(uint64(x.width), uint64(x.before)))
	n, of := number16{x.dtype}, number16{ir.F16}
	m := &ptxrun.Memory{}
	add := func(b []byte, off int) uint64 {
		if !x.odd {
			off = 0
		}
		return m.Add(append(make([]byte, off), b...)) + uint64(off)
	}
	keys, kv := x.queries+x.before, (x.heads+x.gqa-1)/x.gqa
	q, qb := n.numbers(r, x.queries*x.heads*x.width, normal(2))
	coded := func(scale func(group int) float64) (values []float64, codes, scales []byte) {
		for i := range keys * kv * x.width / 32 {
			s := of.of(scale(i)) ^ uint16(r.IntN(3)/2)<<15 // of any sign
			scales = binary.LittleEndian.AppendUint16(scales, s)
			for range 32 {
				c := int8(r.IntN(255) - 127)
				codes, values = append(codes, byte(c)), append(values, float64(c)*of.value(s))
			}
		}
		return values, codes, scales
	}
	ks, kc, kscales := coded(func(int) float64 { return math.Abs(r.NormFloat64()) / 30 })
	vs, vc, vscales := coded(func(group int) float64 { // of a group of some head: very small, of all sizes, or very large
		switch group % (kv * x.width / 32) {
		case 0:
			return 0x1p-24 * float64(1+r.IntN(3))
		case 1:
			return 500 * r.Float64()
		}
		return math.Ldexp(r.Float64(), -r.IntN(24))
	})
	if x.harsh {
		rows := []int{keys - 1, keys - 2, keys - 3}
		if x.within.window > 0 && x.before > 0 {
			rows = append(rows, x.before, x.before+1) // before the windows of later queries
		}
		for i, row := range rows {
			group := row*kv*x.width/32 + i%(x.width/32)
			binary.LittleEndian.PutUint16(vscales[2*group:], 0x7c00)
			for e := range 32 {
				vs[32*group+e] = float64(int8(vc[32*group+e])) * math.Inf(1)
			}
		}
	}
	unread := x.within.unread(x.before) * kv * x.width // as in TestAttention
	keysAt := add(kc[unread:], 1) - uint64(unread)
	scale := float32(1 / math.Sqrt(float64(x.width)))
	out := make([]byte, 2*x.queries*x.heads*x.width)
	for i := range out {
		out[i] = 0x5A
	}
	args := map[string]any{
		"queries": add(qb, 2), "keys": keysAt, "values": add(vc, 3), "out": m.Add(out), "gqa_factor": x.gqa, "N": keys, "key_scales": add(kscales, 2), "value_scales": add(vscales, 2),
		"k_head_stride": x.width, "k_seq_stride": kv * x.width, "v_head_stride": x.width, "v_seq_stride": kv * x.width, "scale": scale,
	}
	sinks := x.within.arguments(r, n, x.heads, func(b []byte) uint64 { return add(b, 2) }, args)
	launchedOn(t, x.multiprocessors, m, k, p, x.launch, true, [3]uint64{uint64(x.heads), uint64(x.queries), 1}, [3]uint64{256, 1, 1}, args)
	attended(t, n, out, q, ks, vs, x.heads, x.gqa, x.width, x.queries, keys, x.causal, scale, x.within, sinks)
}

// TestDecodeOfCodesFits: memory is that of two blocks of a multiprocessor, but for wider heads, and prompts have room on all GPUs.
func TestDecodeOfCodesFits(t *testing.T) {
	for width, most := range map[string]uint32{"64_64": 113 << 10, "128_128": 113 << 10, "256_256": 227 << 10} {
		_, p := described(t, "sdpa_rows_float16_t_q8_0_"+width)
		given := ptxmatrix.Given{Multiprocessors: 32, Constant: func(string) (int64, bool) { return 8, true }}
		f := p.Fit([3]uint64{8, 1, 1}, given)
		require.True(t, f.Fits(), width)
		_, _, shared := p.Launch([3]uint64{8, 1, 1}, f)
		require.LessOrEqual(t, shared, most, width)
		prompt := p.Fit([3]uint64{8, 16, 1}, given)
		require.Equal(t, ptxmatrix.Fit{Rows: 64}, prompt, width)
		_, _, shared = p.Launch([3]uint64{8, 16, 1}, prompt)
		require.LessOrEqual(t, shared, uint32(99<<10), width)
		for gqa, rows := range map[int64]int{8: 1, 4: 2, 3: 1, 2: 4, 1: 1} { // of odd numbers of heads a lane would have two queries
			given.Constant = func(string) (int64, bool) { return gqa, true }
			require.Equal(t, rows, p.Fit([3]uint64{24, 15, 1}, given).Rows, "%s, %d heads", width, gqa)
		}
	}
}
