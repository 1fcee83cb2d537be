package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlxc/mlxc/ir"
)

// shape is a dispatch of SmolLM2-135M (30 layers, width 576, inner width 1536,
// 9 query and 3 key heads of 64, vocabulary 49152; 4-bit layers, 8-bit
// embedding, groups of 32). No kernel's time depends on ordinary values.
type shape struct {
	kernel, note           string
	groups, threads, group [3]int
	flags                  map[uint16]bool
	elements               map[int]int // by slot: number of 4-byte elements of a device argument
	constant               map[int][]byte
	bytes                  int // bytes that a call moves, for the MB/s figure
}

func quantizedShape(kernel, note string, m, n, k, bits int) shape {
	w := n * k * bits / 32
	s := shape{
		kernel: kernel, note: note,
		groups:   [3]int{m, ceilDiv(n, 8), 1},
		elements: map[int]int{0: w, 1: n * k / 32, 2: n * k / 32, 3: m * k, 4: m * n},
		constant: map[int][]byte{5: i32(k), 6: i32(n), 7: i32(m)},
		bytes:    4 * (w + 2*n*k/32 + m*(k+n)),
	}
	return s
}

func sdpaShape(l, n int) shape {
	const hq, kv, d = 9, 3, 64
	return shape{
		kernel: "sdpa_vector_float_64_64", note: fmt.Sprintf("%d of %d", l, n),
		groups: [3]int{hq, l, 1}, group: [3]int{1024, 1, 1},
		flags:    map[uint16]bool{sdpaCausal: true, sdpaQueryTransposed: true},
		elements: map[int]int{0: hq * l * d, 1: kv * n * d, 2: kv * n * d, 3: hq * l * d},
		constant: map[int][]byte{4: i32(hq / kv), 5: i32(n), 6: i64(n * d), 7: i64(d), 8: i64(n * d), 9: i64(d), 10: f32(0.125)},
		bytes:    4 * (2*kv*n*d + 2*hq*l*d),
	}
}

func ropeShape(heads, t int) shape {
	n := heads * t * 64
	return shape{
		kernel: "rope_float32", note: fmt.Sprintf("%dx%dx64", heads, t),
		threads:  [3]int{32, t, ceilDiv(heads, 4)},
		flags:    map[uint16]bool{ropeForward: true, ropeTraditional: true},
		elements: map[int]int{0: n, 1: n, 2: 1},
		constant: map[int][]byte{3: f32(1), 4: i64(64, heads*64, 1), 5: i64(t*64, 64, 1), 6: i64(0), 7: i32(heads), 10: f32(16.6)},
		bytes:    8 * n,
	}
}

func vectorShape(kernel string, n int) shape {
	s := shape{
		kernel: kernel, note: fmt.Sprint(n), threads: [3]int{n, 1, 1},
		elements: map[int]int{0: n, 1: n}, bytes: 8 * n,
	}
	if kernel[:2] == "vv" {
		s.elements[2] = n
		s.bytes = 12 * n
	}
	return s
}

var shapes = []shape{
	quantizedShape("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "k,v 192x576", 1, 192, 576, 4),
	quantizedShape("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "q,o 576x576", 1, 576, 576, 4),
	quantizedShape("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "gate,up 1536x576", 1, 1536, 576, 4),
	quantizedShape("affine_qmv_fast_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "down 576x1536", 1, 576, 1536, 4),
	quantizedShape("affine_qmv_float_gs_32_b_8_batch_0_pr_0_hgs_0_r_4", "head 49152x576", 1, 49152, 576, 8),
	quantizedShape("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "2 vectors 1536x576", 2, 1536, 576, 4),
	quantizedShape("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "4 vectors 1536x576", 4, 1536, 576, 4),
	quantizedShape("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "8 vectors 1536x576", 8, 1536, 576, 4),
	quantizedShape("affine_qmm_t_float_gs_32_b_4_alN_true_batch_0", "2x1536x576", 2, 1536, 576, 4),
	quantizedShape("affine_qmm_t_float_gs_32_b_4_alN_true_batch_0", "3x1536x576", 3, 1536, 576, 4),
	quantizedShape("affine_qmm_t_float_gs_32_b_4_alN_true_batch_0", "4x1536x576", 4, 1536, 576, 4),
	quantizedShape("affine_qmm_t_float_gs_32_b_4_alN_true_batch_0", "8x1536x576", 8, 1536, 576, 4),
	quantizedShape("affine_qmm_t_float_gs_32_b_4_alN_true_batch_0", "128x1536x576", 128, 1536, 576, 4),
	quantizedShape("affine_qmm_t_float_gs_32_b_4_alN_true_batch_0", "512x192x576", 512, 192, 576, 4),
	quantizedShape("affine_qmm_t_float_gs_32_b_4_alN_true_batch_0", "512x576x1536", 512, 576, 1536, 4),
	{
		kernel: "rmsfloat32", note: "576", groups: [3]int{1, 1, 1},
		elements: map[int]int{0: 576, 1: 576, 2: 576},
		constant: map[int][]byte{3: f32(1e-5), 4: i32(576), 5: i32(1)}, bytes: 3 * 4 * 576,
	},
	vectorShape("vv_Addfloat32", 576),
	vectorShape("vv_Multiplyfloat32", 1536),
	vectorShape("v_Sigmoidfloat32float32", 1536),
	vectorShape("v_Silufloat32float32", 1536),
	vectorShape("v_copyfloat32float32", 576),
	{
		kernel: "g2_Multiplyfloat32", note: "512x576 by a row", threads: [3]int{576, 512, 1},
		elements: map[int]int{0: 512 * 576, 1: 576, 2: 512 * 576},
		constant: map[int][]byte{3: i64(576, 1), 4: i64(0, 1)}, bytes: 8 * 512 * 576,
	},
	{
		kernel: "g2_copyfloat32float32", note: "3x64", threads: [3]int{64, 3, 1},
		elements: map[int]int{0: 192, 1: 192}, constant: map[int][]byte{3: i64(64, 1)}, bytes: 8 * 192,
	},
	{
		kernel: "g3_copyfloat32float32", note: "9x512x64 transposed", threads: [3]int{64, 512, 9},
		elements: map[int]int{0: 9 * 512 * 64, 1: 9 * 512 * 64}, constant: map[int][]byte{3: i64(64, 576, 1)}, bytes: 8 * 9 * 512 * 64,
	},
	{
		kernel: "gg2_copyfloat32float32", note: "3x64 to a cache of 2048", threads: [3]int{64, 3, 1},
		elements: map[int]int{0: 192, 1: 3 * 2048 * 64}, constant: map[int][]byte{3: i64(64, 1), 4: i64(2048*64, 1)}, bytes: 8 * 192,
	},
	{
		kernel: "gg3_copyfloat32float32", note: "3x512x64 to a cache of 2048", threads: [3]int{64, 512, 3},
		elements: map[int]int{0: 3 * 512 * 64, 1: 3 * 2048 * 64}, constant: map[int][]byte{3: i64(64, 192, 1), 4: i64(2048*64, 64, 1)}, bytes: 8 * 3 * 512 * 64,
	},
	{
		kernel: "rope_single_float32", note: "9x64", threads: [3]int{32, 9, 1},
		flags:    map[uint16]bool{ropeForward: true, ropeTraditional: true},
		elements: map[int]int{0: 576, 1: 576},
		constant: map[int][]byte{2: i32(77), 3: f32(1), 4: i64(64), 10: f32(16.6)}, bytes: 8 * 576,
	},
	ropeShape(9, 1),
	ropeShape(9, 512),
	sdpaShape(1, 128),
	sdpaShape(1, 2048),
	sdpaShape(1, 8192),
	sdpaShape(8, 512),
	sdpaShape(512, 512),
	sdpaShape(512, 2048),
	{
		kernel: "affine_embed_float_gs_32_b_8", note: "576", threads: [3]int{576, 1, 1},
		elements: map[int]int{0: 1, 1: 144, 2: 18, 3: 18, 4: 576},
		constant: map[int][]byte{5: i32(576), 6: i32(1)}, bytes: 576 + 2*72 + 4*576,
	},
	{
		kernel: "embed_float16", note: "576", threads: [3]int{576, 1, 1},
		elements: map[int]int{0: 1, 1: 288, 2: 576}, constant: map[int][]byte{3: i32(576), 4: i32(1)}, bytes: 6 * 576,
	},
	{
		kernel: "embed_float32", note: "576", threads: [3]int{576, 1, 1},
		elements: map[int]int{0: 1, 1: 576, 2: 576}, constant: map[int][]byte{3: i32(576), 4: i32(1)}, bytes: 8 * 576,
	},
	{
		kernel: "gemv_float32_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0", note: "1536x576", groups: [3]int{96, 1, 1},
		elements: map[int]int{0: 1536 * 576, 1: 576, 3: 1536},
		constant: map[int][]byte{4: i32(576), 5: i32(1536), 6: i32(576)}, bytes: 4 * 1536 * 577,
	},
	{
		kernel: "gemv_float16_float32", note: "1536x576", groups: [3]int{192, 1, 1},
		elements: map[int]int{0: 1536 * 288, 1: 576, 2: 1536},
		constant: map[int][]byte{3: i32(576), 4: i32(1536)}, bytes: 2 * 1536 * 578,
	},
	{
		kernel: "gemm_nt_float32", note: "128x1536x576", groups: [3]int{48, 4, 1},
		elements: map[int]int{0: 128 * 576, 1: 1536 * 576, 2: 128 * 1536},
		constant: map[int][]byte{3: i32(576), 4: i32(1536), 5: i32(128)}, bytes: 4 * (128*576 + 1536*576 + 128*1536),
	},
	{
		kernel: "gemm_nt_float16_float32", note: "128x1536x576", groups: [3]int{48, 4, 1},
		elements: map[int]int{0: 128 * 576, 1: 1536 * 288, 2: 128 * 1536},
		constant: map[int][]byte{3: i32(576), 4: i32(1536), 5: i32(128)}, bytes: 4 * (128*576 + 1536*288 + 128*1536),
	},
	{
		kernel: "argmax_float32", note: "49152", threads: [3]int{1024, 1, 1},
		elements: map[int]int{0: 49152, 1: 1},
		constant: map[int][]byte{5: i64(0), 6: i64(1), 7: i64(49152)}, bytes: 4 * 49152,
	},
}

// BenchmarkKernel runs one kernel on one core; unit-ns is the time of one unit,
// which Cost estimates (cost-ns).
func BenchmarkKernel(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.kernel+"/"+s.note, func(b *testing.B) {
			k := Lookup(s.kernel)
			c := &Call{Groups: s.groups, Threads: s.threads, Group: s.group}
			for i, v := range s.flags {
				f := ir.FunctionConstant{Index: i, Type: ir.Bool}
				if v {
					f.Bits = 1
				}
				c.Constants = append(c.Constants, f)
			}
			for slot, n := range s.elements {
				g := newGuarded(4 * n)
				if n == 1 { // an id, an offset
					clear(g.words)
				}
				for i := range n - 1 {
					copy(g.view()[4*i:], "\x00\x3c\x00\x3c") // 1 as f16, about 1/128 as f32
				}
				c.Device[slot] = g.view()
			}
			for slot, v := range s.constant {
				c.Constant[slot] = v
			}
			var w Worker
			units := k.Units(c)
			b.SetBytes(int64(s.bytes))
			b.ReportAllocs()
			for b.Loop() {
				k.Run(c, &w, 0, units)
			}
			unit := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(units)
			b.ReportMetric(unit, "unit-ns")
			b.ReportMetric(k.Cost(c), "cost-ns")
		})
	}
}

// BenchmarkCaches is the attention of one position to 2,000, of a layer whose cache lies in memory: layers take turns, as in
// a model, so that none is in the processor's caches.
func BenchmarkCaches(b *testing.B) {
	const layers, positions = 12, 2000
	r := rand.New(rand.NewPCG(1, 6))
	for _, shape := range []struct{ heads, keys, dims int }{{9, 3, 64}, {32, 8, 128}} {
		q, cache := floats(r, shape.heads*shape.dims), floats(r, positions*shape.keys*shape.dims)
		for _, types := range []string{"float", "float_float16_t", "float_q8_0"} {
			b.Run(fmt.Sprint(types, shape), func(b *testing.B) {
				var calls [layers]*Call
				for i := range calls {
					c := &Call{Groups: [3]int{shape.heads, 1, 1}, Group: [3]int{256, 1, 1}, Constants: []ir.FunctionConstant{{Index: sdpaCausal, Type: ir.Bool, Bits: 1}}}
					c.Device[0], c.Device[3] = rawBytes(q), make([]byte, 4*len(q))
					for slot := 1; slot <= 2; slot++ {
						switch c.Device[slot] = bytesOf(cache); types {
						case "float_float16_t":
							c.Device[slot] = halfBytes(halfType.stored(cache))
						case "float_q8_0": // of any codes, and scales of 2^-7
							c.Device[slot] = c.Device[slot][:len(cache)]
							c.Device[10+slot] = halfBytes(slices.Repeat([]uint16{0x2000}, len(cache)/32))
						}
					}
					row := int64(shape.keys * shape.dims)
					for i, x := range []any{int32(shape.heads / shape.keys), int32(positions), int64(shape.dims), row, int64(shape.dims), row, float32(0.125)} {
						c.Constant[4+i] = ir.ValueBytes(x)
					}
					calls[i] = c
				}
				k := Lookup(fmt.Sprintf("sdpa_rows_%s_%d_%d", types, shape.dims, shape.dims))
				var w Worker
				for i := 0; b.Loop(); i++ {
					k.Run(calls[i%layers], &w, 0, k.Units(calls[0]))
				}
			})
		}
	}
}
