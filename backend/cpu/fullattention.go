package cpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// Function constants of steel_attention_….
const (
	fullMasked = 300
	fullCausal = 301
	fullSinks  = 302
)

// fullAttention is attention of many queries, by the function constants with a mask, causal and with sinks. Masks are
// boolean, or of the type and added; what a boolean one takes out has the least score that is a number. The rest is as in
// [attention].
//
// Arguments: 0 Q [B, H, queries, width], 1 K and 2 V [B, H/gqa, keys, width], 3 O as Q; 4 parameters, i32[38]: 3 queries,
// 4 keys, 5 gqa, 6 the bits of the scale, and from 14, 20, 26 and 32 on the strides of Q, K, V and O, i64[3]: batch, head,
// position; 5 those of the mask, i64[3], 6 the mask [B, H, queries, keys], 7 sinks [H]. A unit is a query of a head.
type fullAttention struct {
	attention
	bools bool
}

func init() {
	for i, t := range floatTypes() {
		word := []string{"float32", "float16", "bfloat16"}[i]
		for _, bools := range []bool{true, false} {
			of := word
			if bools {
				of = "bool_"
			}
			for _, width := range []int{64, 72, 80, 96, 128} {
				block := 32
				if width == 128 {
					block = 16
				}
				f := fullAttention{attention{floatType: t, keys: width, values: width}, bools}
				name := fmt.Sprintf("steel_attention_%s_bq32_bk%d_bd%d_bv%d_wm4_wn1_mask%s", word, block, width, width, of)
				Register(&Kernel{
					Name:  name,
					Units: func(c *Call) int { return c.Groups[2] * c.Groups[1] * int(param(c, 3)) },
					Run:   func(c *Call, w *Worker, lo, hi int) { f.run(c, w, lo, hi) },
					Cost:  func(c *Call) float64 { return 1000 + float64(param(c, 4))*float64(width) },
				})
			}
		}
	}
}

// param is a parameter of 32 bits, and stride one of 64 that begins there.
func param(c *Call, i int) int32 { return int32(binary.LittleEndian.Uint32(c.Constant[4][4*i:])) }
func stride(c *Call, i int) int  { return int(int64(binary.LittleEndian.Uint64(c.Constant[4][4*i:]))) }

func (f *fullAttention) run(c *Call, w *Worker, lo, hi int) {
	heads, queries, keys, gqa := c.Groups[1], int(param(c, 3)), int(param(c, 4)), int(param(c, 5))
	place := func(first, b, h, i int) int { return b*stride(c, first) + h*stride(c, first+2) + i*stride(c, first+4) }
	masked, scale := c.Flag(fullMasked), math.Float32frombits(uint32(param(c, 6)))
	out, buf := f.room(w)
	q, key, value := buf[:f.keys], buf[f.keys:2*f.keys], buf[2*f.keys:][:f.values]
	for u := lo; u < hi; u++ {
		c.Pause()
		b, h, i := u/queries/heads, u/queries%heads, u%queries
		f.load(c, q, 0, place(14, b, h, i))
		simd.ScaleTo(q, scale, q)
		s := streamed{out: out, top: noScore}
		clear(out)
		if c.Flag(fullSinks) {
			s.top, s.sum = f.at(c, 7, h), 1
		}
		last := keys
		if c.Flag(fullCausal) {
			last = keys - queries + i + 1
		}
		mask := 0
		if masked {
			mask = b*c.Long(5, 0) + h*c.Long(5, 1) + i*c.Long(5, 2)
		}
		for j := range last {
			f.load(c, key, 1, place(20, b, h/gqa, j))
			f.load(c, value, 2, place(26, b, h/gqa, j))
			score := simd.Dot(q, key)
			switch {
			case masked && !f.bools:
				score += f.at(c, 6, mask+j)
			case masked && c.Bytes(6)[mask+j] == 0:
				score = noScore
			}
			s.add(score, value)
		}
		for e := range out {
			out[e] /= s.sum
		}
		f.store(c, 3, place(32, b, h, i), out)
	}
}
