package ptxmatrix

import (
	"regexp"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// Weights of 16 bits that are no codes come as affine codes do: of each row a chunk has as many bytes, which are a quarter of the elements. They are left factors as they
// lie in memory. Of two pieces of 16 bytes of a row a lane has the elements that mma.sync multiplies in two steps, and it has the same elements of x: since both factors
// have the same order of the inner index, it may be any. All columns of the right factor are x, so that each lane gets the sums of its rows.

// denseChunk is how many elements of a row a chunk has.
const denseChunk = chunk / 4

// denseSlots is how many chunks of a warp have room at most. Where x is long, [mostSlots] are enough.
const denseSlots = 6

// The plain product is MLX's gemv, of the tilings whose sums have one order.
var namedDenseVector = regexp.MustCompile(`^gemv_(?:(x2|x3|add|silu_mul)_)?(float16|bfloat16)(_bm[48]_bn1_sm1_sn32_tm[14]_tn4_nc0_axpby0)?$`)

func denseVectorOf(k *air.Kernel, gpu GPU) *vector {
	m := namedDenseVector.FindStringSubmatch(k.Name)
	if m == nil || (m[1] == "") != (m[3] != "") {
		return nil
	}
	v := &vector{source: k, elem: ir.F16, dense: true, gpu: gpu}
	if v.form, v.sides = formOf(m[1]); v.form == tile {
		v.form = store
	}
	if m[2] == "bfloat16" {
		v.elem = ir.BF16
	}
	return v
}

// gemv reports whether arguments are those of MLX's gemv.
func (v *vector) gemv() bool { return strings.HasSuffix(v.source.Name, "_axpby0") }

// common are the names that this package has for arguments of MLX's gemv.
var common = map[string]string{"mat": "w", "in_vec": "x", "out_vec": "y"}

// denseFit reports whether the rows of a launch of MLX's gemv follow one another, and whether there is one vector.
func (v *vector) denseFit(groups [3]uint64, k int, given Given) bool {
	if !v.gemv() {
		return true
	}
	apart, known := given.Constant("marix_ld")
	return known && apart == int64(k) && groups[2] == 1
}

// elements multiplies weights. What a chunk adds is summed up apart, so that what tensor cores lose is measured by its products alone.
func (e *vectorEmitter) elements() (m multiplication) {
	e.lanes()
	first := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 2*denseChunk, e.r("mad.lo.s32", "%s, 32, %s", e.member, e.base))
	zero, xAt := "", ""
	m.begin = func() {
		zero, xAt = e.r("mov.b32", "0"), e.r("mov.b32", "%s", first)
	}
	m.chunk = func() {
		sums := []string{zero, zero, zero, zero}
		for g := range 2 {
			at := e.r("add.s32", "%s, %s", e.useSlot, e.codesAt[g])
			upper, lower, x := e.four(at, 0), e.four(at, 8*chunk/2), e.four(xAt, 16*g)
			for step := range 2 {
				out := []string{e.New("r"), e.New("r"), e.New("r"), e.New("r")}
				e.mma(out, [4]string(upper), [4]string(lower), step, x, sums)
				sums = out
			}
		}
		for i := range e.acc { // of rows quad and quad + 8
			e.Line("add.rn.f32 \t%s, %s, %s", e.acc[i], e.acc[i], sums[2*i])
		}
		e.Line("add.s32 \t%s, %s, %d", xAt, xAt, e.fit.Warps*2*denseChunk)
	}
	return m
}
