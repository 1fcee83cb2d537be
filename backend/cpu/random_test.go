package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mlxc/mlxc/internal/simd"
	"github.com/mlxc/mlxc/ir"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// operand is a device argument as the kernel's declaration describes it.
type operand struct {
	slot           int
	size           int // bytes of an element
	shape, strides []int
	write          bool
	// gathered: which elements are read depends on the values of an argument.
	gathered bool
	// value gives the bits of an element; nil: a normal f32.
	value func(r *rand.Rand) uint32
}

// randomCall is a legal dispatch of random shape.
type randomCall struct {
	kernel                 string
	groups, threads, group [3]int
	flags                  map[uint16]bool
	constant               map[int][]byte
	operands               []operand
}

func (o *operand) elements() int {
	if product(o.shape) == 0 {
		return 0
	}
	n := 1
	for i, s := range o.shape {
		n += (s - 1) * o.strides[i]
	}
	return n
}

func contiguous(shape []int) []int {
	strides := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= shape[i]
	}
	return strides
}

func normalBits(r *rand.Rand) uint32 { return math.Float32bits(float32(r.NormFloat64())) }

// call makes the buffers, with the bytes that the declaration does not name
// taken from gap, and a Call on them.
func (rc *randomCall) call(seed uint64, gap func(r *rand.Rand) uint32) (*Call, map[int]*guarded) {
	c := &Call{Groups: rc.groups, Threads: rc.threads, Group: rc.group}
	for i, v := range rc.flags {
		f := ir.FunctionConstant{Index: i, Type: ir.Bool}
		if v {
			f.Bits = 1
		}
		c.Constants = append(c.Constants, f)
	}
	for s, b := range rc.constant {
		c.Constant[s] = b
	}
	buffers := map[int]*guarded{}
	noise := rand.New(rand.NewPCG(seed, 99))
	for i := range rc.operands {
		o := &rc.operands[i]
		r := rand.New(rand.NewPCG(seed, uint64(o.slot)))
		b := newGuarded(o.elements() * o.size)
		buffers[o.slot] = b
		c.Device[o.slot] = b.view()
		if o.write {
			continue
		}
		view := b.view()
		for e := range o.elements() {
			o.put(view, e, gap(noise))
		}
		value := o.value
		if value == nil {
			value = normalBits
		}
		for p := range product(o.shape) {
			o.put(view, offsetOf(p, o.shape, o.strides), value(r))
		}
	}
	return c, buffers
}

func (o *operand) put(view []byte, e int, bits uint32) {
	if o.size == 2 {
		binary.LittleEndian.PutUint16(view[2*e:], uint16(bits))
	} else {
		binary.LittleEndian.PutUint32(view[4*e:], bits)
	}
}

// untouched reports whether element e of a result is as it was made.
func (o *operand) untouched(view []byte, e int) bool {
	if o.size == 2 {
		want := binary.LittleEndian.AppendUint32(nil, sentinel)[2*(e%2):]
		return view[2*e] == want[0] && view[2*e+1] == want[1]
	}
	return binary.LittleEndian.Uint32(view[4*e:]) == sentinel
}

func i32(v int) []byte     { return binary.LittleEndian.AppendUint32(nil, uint32(int32(v))) }
func f32(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }
func i64(v ...int) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(int64(x)))
	}
	return b
}

func dim(t *rapid.T, name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }

// drawCall draws a call of the kernel. A kernel without a branch here fails
// every test of this file.
// allHalf are kernels all of whose elements are f16 or bf16.
var allHalf = regexp.MustCompile(`^(rms|rms_looped|layer_norm|layer_norm_looped|vv_.*|g2_.*|v_copyfloat16)b?float16$`)

// fusedOf returns the layout of a fused quantized product, or nil.
func fusedOf(kernel string) *linear {
	var w weights = affine{}
	if strings.HasPrefix(kernel, "gem") {
		w = dense{half: strings.Contains(kernel, "float16")}
	}
	for kind, p := range fused(w) {
		if !strings.Contains(kernel, "_"+kind+"_float") {
			continue
		}
		switch {
		case strings.HasPrefix(kernel, "gemv"):
			p.form = alwaysFew
		case strings.HasPrefix(kernel, "gemm"):
			p.form = alwaysMany
			p = p.ofMany()
		case strings.Contains(kernel, "qmm"):
			p = p.ofMany()
		}
		return &p
	}
	return nil
}

func drawCall(t *rapid.T, kernel string) *randomCall {
	rc := &randomCall{kernel: kernel, groups: [3]int{1, 1, 1}, threads: [3]int{1, 1, 1}, group: [3]int{32, 1, 1}, flags: map[uint16]bool{}, constant: map[int][]byte{}}
	in := func(slot int, shape, strides []int) *operand {
		if strides == nil {
			strides = contiguous(shape)
		}
		rc.operands = append(rc.operands, operand{slot: slot, size: 4, shape: shape, strides: strides})
		o := &rc.operands[len(rc.operands)-1]
		if allHalf.MatchString(kernel) {
			o.half()
		}
		return o
	}
	out := func(slot int, shape, strides []int) { in(slot, shape, strides).write = true }
	has := func(s string) bool { return strings.Contains(kernel, s) }

	switch {
	case strings.HasPrefix(kernel, "rms"):
		rows, n, ws := dim(t, "rows", 1, 9), dim(t, "n", 1, 700), dim(t, "w_stride", 1, 3)
		if has("looped") {
			n = dim(t, "n", 4097, 4400)
		}
		rc.groups[0] = rows
		in(0, []int{rows, n}, nil)
		in(1, []int{n}, []int{ws})
		out(2, []int{rows, n}, nil)
		rc.constant[3], rc.constant[4], rc.constant[5] = f32(1e-5), i32(n), i32(ws)

	case strings.HasPrefix(kernel, "add_rms"):
		rows, n, ws := dim(t, "rows", 1, 9), dim(t, "n", 1, 700), dim(t, "w_stride", 0, 3)
		rc.groups[0] = rows
		in(0, []int{rows, n}, nil)
		in(1, []int{rows, n}, nil)
		in(2, []int{n}, []int{ws})
		out(3, []int{rows, n}, nil)
		out(4, []int{rows, n}, nil)
		rc.constant[5], rc.constant[6], rc.constant[7] = f32(1e-5), i32(n), i32(ws)

	case strings.HasPrefix(kernel, "layer_norm"), strings.HasPrefix(kernel, "vjp_layer_norm"):
		rows, n, ws, bs := dim(t, "rows", 1, 9), dim(t, "n", 1, 700), dim(t, "w_stride", 0, 3), dim(t, "b_stride", 0, 3)
		if has("looped") {
			n = dim(t, "n", 6657, 7000)
		}
		rc.groups[0] = rows
		in(0, []int{rows, n}, nil)
		in(1, []int{n}, []int{ws})
		if !has("vjp") {
			in(2, []int{n}, []int{bs})
			out(3, []int{rows, n}, nil)
			rc.constant[4], rc.constant[5], rc.constant[6], rc.constant[7] = f32(1e-5), i32(n), i32(ws), i32(bs)
			break
		}
		in(2, []int{rows, n}, nil)
		out(3, []int{rows, n}, nil)
		if rc.flags[layerNormHasW] = dim(t, "has_w", 0, 1) == 1; rc.flags[layerNormHasW] {
			out(4, []int{rows, n}, nil)
		}
		rc.constant[5], rc.constant[6], rc.constant[7] = f32(1e-5), i32(n), i32(ws)

	case strings.HasPrefix(kernel, "col_reduce_"):
		rows, n := dim(t, "rows", 1, 70), dim(t, "n", 1, 300)
		stride := n + dim(t, "gap", 0, 3)
		in(0, []int{rows, n}, []int{stride, 1})
		out(1, []int{n}, nil)
		rc.constant[2], rc.constant[3], rc.constant[8] = i64(rows), i64(n), i64(stride)
		rc.constant[4], rc.constant[5], rc.constant[6], rc.constant[10] = i32(0), i64(0), i32(0), i64(1)

	case strings.HasPrefix(kernel, "vv_"):
		n := dim(t, "n", 1, 5000)
		rc.threads[0] = n
		in(0, []int{n}, nil)
		in(1, []int{n}, nil)
		out(2, []int{n}, nil)

	case strings.HasPrefix(kernel, "v_"):
		n := dim(t, "n", 1, 5000)
		rc.threads[0] = n
		in(0, []int{n}, nil)
		out(1, []int{n}, nil)
		if has("Softcap") {
			rc.constant[3] = f32(30)
		}

	case has("softmax"):
		rows, n := dim(t, "rows", 1, 9), dim(t, "n", 1, 700)
		rc.groups[0] = rows
		in(0, []int{rows, n}, nil)
		out(1, []int{rows, n}, nil)
		rc.constant[2] = i32(n)

	case kernel == "topk_float32":
		rows, n := dim(t, "rows", 1, 9), dim(t, "n", 1, 200)
		k := dim(t, "k", 1, n)
		rc.groups[0] = rows
		in(0, []int{rows, n}, nil)
		out(1, []int{rows, k}, nil)
		out(2, []int{rows, k}, nil)
		rc.constant[3], rc.constant[4] = i32(n), i32(k)

	case kernel == "weighted_sum_float32":
		rows, count, width := dim(t, "rows", 1, 5), dim(t, "count", 1, 9), dim(t, "width", 1, 700)
		rc.threads = [3]int{width, rows, 1}
		in(0, []int{rows, count, width}, nil)
		in(1, []int{rows, count}, nil)
		out(2, []int{rows, width}, nil)
		rc.constant[3] = i32(count)

	case strings.HasPrefix(kernel, "gather_gemv"):
		e, n, k := dim(t, "e", 1, 5), dim(t, "n", 1, 40), dim(t, "k", 1, 300)
		rows, slots := dim(t, "rows", 1, 4), dim(t, "slots", 1, 3)
		rc.groups = [3]int{ceilDiv(n, 8), slots, rows}
		mat := in(0, []int{e, n, k}, nil)
		mat.gathered = true
		if has("float16") {
			mat.half()
		}
		strides := []int{slots*k + 3, k, 1}
		if dim(t, "shared", 0, 1) == 1 {
			strides = []int{k, 0, 1}
		}
		in(1, []int{rows, slots, k}, strides).gathered = true
		in(2, []int{rows, slots}, nil).value = func(r *rand.Rand) uint32 { return uint32(r.IntN(e+1) - r.IntN(2)) }
		out(3, []int{rows, slots, n}, nil)
		rc.constant[4], rc.constant[5], rc.constant[6], rc.constant[7] = i32(k), i32(n), i32(e), i64(strides[:2]...)

	case strings.HasPrefix(kernel, "gather_qmv"):
		g, b := 32, 4
		if has("gs_64") {
			g = 64
		}
		if has("b_8") {
			b = 8
		}
		e, n, k := dim(t, "e", 1, 5), dim(t, "n", 1, 40), g*dim(t, "k", 1, 4)
		rows, slots := dim(t, "rows", 1, 4), dim(t, "slots", 1, 3)
		rc.groups = [3]int{ceilDiv(n, 8), slots, rows}
		in(0, []int{e, n, k * b / 32}, nil).value = func(r *rand.Rand) uint32 { return r.Uint32() }
		in(1, []int{e, n, k / g}, nil)
		in(2, []int{e, n, k / g}, nil)
		strides := []int{slots*k + 3, k, 1}
		if dim(t, "shared", 0, 1) == 1 {
			strides = []int{k, 0, 1}
		}
		in(3, []int{rows, slots, k}, strides)
		for i := range rc.operands {
			rc.operands[i].gathered = true
		}
		in(4, []int{rows, slots}, nil).value = func(r *rand.Rand) uint32 { return uint32(r.IntN(e+1) - r.IntN(2)) }
		out(5, []int{rows, slots, n}, nil)
		rc.constant[6], rc.constant[7], rc.constant[8], rc.constant[9] = i32(k), i32(n), i32(e), i64(strides[:2]...)

	case strings.HasPrefix(kernel, "affine_gather"):
		g, b := 32, 4
		if has("gs_64") {
			g = 64
		}
		if has("b_8") {
			b = 8
		}
		step, cols := g, 1
		if has("fast") {
			step, cols = 2048/b, 8
		}
		k, n := step*dim(t, "k", 1, 3), cols*dim(t, "n", 1, 5)
		e, xs, m := dim(t, "e", 1, 4), dim(t, "xs", 1, 4), dim(t, "m", 1, 2)
		batch := []int{dim(t, "batch", 1, 4)}
		lhs, rhs := []int{1}, []int{dim(t, "stride", 0, 2)}
		if dim(t, "dims", 1, 2) == 2 {
			batch = append(batch, dim(t, "slots", 1, 3))
			lhs, rhs = []int{1, 0}, []int{batch[1], 1}
		}
		rc.groups = [3]int{m, ceilDiv(n, 8), product(batch)}
		in(0, []int{e, n, k * b / 32}, nil).value = func(r *rand.Rand) uint32 { return r.Uint32() }
		in(1, []int{e, n, k / g}, []int{n*k/g + 2, k / g, 1})
		in(2, []int{e, n, k / g}, []int{n*k/g + 1, k / g, 1})
		in(3, []int{xs, m, k}, []int{m*k + 5, k, 1})
		for i := range rc.operands {
			rc.operands[i].gathered = true
		}
		in(4, batch, lhs).value = func(r *rand.Rand) uint32 { return uint32(r.IntN(xs+1) - r.IntN(2)) }
		in(5, batch, rhs).value = func(r *rand.Rand) uint32 { return uint32(r.IntN(e+1) - r.IntN(2)) }
		out(6, append(slices.Clone(batch), m, n), nil)
		words := func(v ...int) (out []byte) {
			for _, x := range v {
				out = append(out, i32(x)...)
			}
			return out
		}
		rc.constant[7], rc.constant[8] = i32(k), i32(n)
		rc.constant[9], rc.constant[10], rc.constant[11] = i32(1), words(xs, m), i64(m*k+5)
		rc.constant[12], rc.constant[13], rc.constant[14] = i32(1), words(e), i64(n*k*b/32)
		rc.constant[15], rc.constant[16] = i64(n*k/g+2), i64(n*k/g+1)
		rc.constant[17], rc.constant[18], rc.constant[19], rc.constant[20] = i32(len(batch)), words(batch...), i64(lhs...), i64(rhs...)

	case has("2_Add"), has("2_Multiply"), has("_copy"):
		dims := 2
		if has("3_copy") {
			dims = 3
		}
		shape := make([]int, dims)
		for i := range shape {
			shape[i] = dim(t, "d", 1, 40)
		}
		if dim(t, "long", 0, 2) == 0 {
			shape[dims-1] = dim(t, "inner", 1, 1500)
		}
		for i := range shape {
			rc.threads[i] = shape[dims-1-i]
		}
		rc.constant[3] = i64(in(0, shape, drawStrides(t, shape, true)).strides...)
		switch {
		case !has("copy"):
			rc.constant[4] = i64(in(1, shape, drawStrides(t, shape, true)).strides...)
			out(2, shape, nil)
		case has("gg"):
			strides := drawStrides(t, shape, false)
			out(1, shape, strides)
			rc.constant[4] = i64(strides...)
		default:
			out(1, shape, nil)
		}

	case strings.HasPrefix(kernel, "ggml_mul_mv"):
		f := ggmlFormats[slices.IndexFunc(ggmlFormats, func(f ggmlFormat) bool { return has(f.name) })]
		n, k, first := dim(t, "n", 1, 40), f.weights*dim(t, "k", 1, 5), 3
		blocks := func(dims ...int) *operand {
			w := in(0, append(dims, n, k/f.weights*f.bytes/2), nil)
			w.size, w.value = 2, func(r *rand.Rand) uint32 { return r.Uint32() }
			return w
		}
		if !has("_id_") {
			m := dim(t, "m", 1, 6)
			rc.groups = [3]int{ceilDiv(n, 8), m, 1}
			blocks()
			in(1, []int{m, k}, nil)
			out(2, []int{m, n}, nil)
		} else {
			e, rows, slots := dim(t, "e", 1, 5), dim(t, "rows", 1, 4), dim(t, "slots", 1, 3)
			rc.groups = [3]int{ceilDiv(n, 8), slots, rows}
			strides := []int{slots*k + 3, k, 1}
			if dim(t, "shared", 0, 1) == 1 {
				strides = []int{k, 0, 1}
			}
			blocks(e).gathered = true
			in(1, []int{rows, slots, k}, strides).gathered = true
			in(2, []int{rows, slots}, nil).value = func(r *rand.Rand) uint32 { return uint32(r.IntN(e+1) - r.IntN(2)) }
			out(3, []int{rows, slots, n}, nil)
			first, rc.constant[6], rc.constant[7] = 4, i32(e), i64(strides[:2]...)
		}
		rc.constant[first], rc.constant[first+1] = i32(k), i32(n)

	case strings.HasPrefix(kernel, "affine_"):
		var group, bits int
		_, err := fmt.Sscanf(kernel[strings.Index(kernel, "_gs_"):], "_gs_%d_b_%d", &group, &bits)
		require.NoError(t, err)
		k := group * dim(t, "groups", 1, 9)
		if has("fast") {
			k = 2048 / bits * dim(t, "steps", 1, 2)
		}
		code := func(r *rand.Rand) uint32 { return r.Uint32() }
		m, n := dim(t, "m", 1, 4), dim(t, "n", 1, 200)
		first := 0
		if fused := fusedOf(kernel); fused != nil {
			if has("qmm") {
				if m = dim(t, "m", 1, 40); dim(t, "tall", 0, 3) == 0 {
					m, k = dim(t, "m", 500, 530), group
				}
				rc.constant[fused.m] = i32(m)
			}
			rc.groups = [3]int{m, 1, 1} // as qmv reads it
			rc.constant[fused.k] = i32(k)
			for i := range fused.x / 3 { // matrices
				if i < fused.outs && i > 0 {
					n = dim(t, "n", 1, 200)
				}
				in(3*i, []int{n, k * bits / 32}, nil).value = code
				in(3*i+1, []int{n, k / group}, nil)
				in(3*i+2, []int{n, k / group}, nil)
				if i < fused.outs {
					rc.constant[fused.n+i] = i32(n)
					out(fused.y+i, []int{m, n}, nil)
				}
			}
			in(fused.x, []int{m, k}, nil)
			if fused.then == addTo {
				in(fused.r, []int{m, n}, nil)
			}
			break
		}
		switch {
		case has("embed"):
			first = 1
			rows := dim(t, "rows", 1, 9)
			in(0, []int{m}, nil).value = func(r *rand.Rand) uint32 { return uint32(r.IntN(rows+2) - 1) }
			out(4, []int{m, k}, nil)
			rc.constant[5], rc.constant[6] = i32(k), i32(rows)
			rc.threads = [3]int{k, m, 1}
			n = rows
		case has("qmm"):
			if dim(t, "tall", 0, 3) == 0 {
				m = dim(t, "m", 500, 530)
				n, k = dim(t, "n", 1, 70), group
			} else {
				m = dim(t, "m", 1, 40)
			}
			if has("alN_true") {
				n = 32 * dim(t, "n/32", 1, 4)
			}
			rc.constant[7] = i32(m)
			rc.groups = [3]int{ceilDiv(n, 32), ceilDiv(m, 32), 1}
		default:
			rc.groups = [3]int{m, ceilDiv(n, 8), 1}
		}
		w := in(first, []int{n, k * bits / 32}, nil)
		w.value, w.gathered = code, has("embed")
		in(first+1, []int{n, k / group}, nil).gathered = has("embed")
		in(first+2, []int{n, k / group}, nil).gathered = has("embed")
		if !has("embed") {
			in(3, []int{m, k}, nil)
			out(4, []int{m, n}, nil)
			rc.constant[5], rc.constant[6] = i32(k), i32(n)
		}

	case strings.HasPrefix(kernel, "embed_"):
		n, rows, k := dim(t, "n", 1, 9), dim(t, "rows", 1, 9), dim(t, "k", 1, 300)
		rc.threads = [3]int{k, n, 1}
		in(0, []int{n}, nil).value = func(r *rand.Rand) uint32 { return uint32(r.IntN(rows+2) - 1) }
		table := in(1, []int{rows, k}, nil)
		table.gathered = true
		if has("float16") {
			table.half()
		}
		out(2, []int{n, k}, nil)
		rc.constant[3], rc.constant[4] = i32(k), i32(rows)

	case strings.HasPrefix(kernel, "gem") && fusedOf(kernel) != nil:
		p := fusedOf(kernel)
		m, n, k := 1, dim(t, "n", 1, 200), dim(t, "k", 1, 90)
		if has("gemm") {
			if m = dim(t, "m", 1, 40); dim(t, "tall", 0, 3) == 0 {
				m, k = dim(t, "m", 500, 530), dim(t, "k", 1, 9)
			}
			rc.constant[p.m] = i32(m)
		}
		rc.constant[p.k] = i32(k)
		for i := range p.x { // matrices
			if i < p.outs && i > 0 {
				n = dim(t, "n", 1, 200)
			}
			if w := in(i, []int{n, k}, nil); has("float16") {
				w.half()
			}
			if i < p.outs {
				rc.constant[p.n+i] = i32(n)
				out(p.y+i, []int{m, n}, nil)
			}
		}
		in(p.x, []int{m, k}, nil)
		if p.then == addTo {
			in(p.r, []int{m, n}, nil)
		}

	case strings.HasPrefix(kernel, "gemv_float32"):
		var bm, bn, sm, sn, tm int
		_, err := fmt.Sscanf(kernel, "gemv_float32_bm%d_bn%d_sm%d_sn%d_tm%d", &bm, &bn, &sm, &sn, &tm)
		require.NoError(t, err)
		batch, n, k := dim(t, "batch", 1, 3), dim(t, "n", 1, 100), dim(t, "k", 1, 300)
		ld := k + dim(t, "pad", 0, 2)
		ms, xs := n*ld+dim(t, "gap", 0, 3), k+dim(t, "gap", 0, 3)
		rc.groups, rc.group = [3]int{ceilDiv(n, bm*sm*tm), 1, batch}, [3]int{32, bn, bm}
		in(0, []int{batch, n, k}, []int{ms, ld, 1})
		in(1, []int{batch, k}, []int{xs, 1})
		out(3, []int{batch, n}, nil)
		rc.constant[4], rc.constant[5], rc.constant[6] = i32(k), i32(n), i32(ld)
		rc.constant[11], rc.constant[12] = i64(xs), i64(ms)

	case kernel == "gemv_float16_float32":
		n, k := dim(t, "n", 1, 100), dim(t, "k", 1, 300)
		rc.groups = [3]int{ceilDiv(n, 8), 1, 1}
		in(0, []int{n, k}, nil).half()
		in(1, []int{k}, nil)
		out(2, []int{n}, nil)
		rc.constant[3], rc.constant[4] = i32(k), i32(n)

	case strings.HasPrefix(kernel, "gemm_"):
		m, n, k := dim(t, "m", 1, 40), dim(t, "n", 1, 200), dim(t, "k", 1, 90)
		if dim(t, "tall", 0, 3) == 0 {
			m, k = dim(t, "m", 500, 530), dim(t, "k", 1, 9)
		}
		rc.groups = [3]int{ceilDiv(n, 32), ceilDiv(m, 32), 1}
		x, w := []int{m, k}, []int{n, k}
		if has("_tn_") {
			x = []int{k, m}
		}
		if !has("_nt_") {
			w = []int{k, n}
		}
		in(0, x, nil)
		if w := in(1, w, nil); has("float16") {
			w.half()
		}
		out(2, []int{m, n}, nil)
		rc.constant[3], rc.constant[4], rc.constant[5] = i32(k), i32(n), i32(m)

	case kernel == "rope_single_float32":
		heads, half := dim(t, "heads", 1, 9), dim(t, "half", 1, 40)
		stride := 2*half + dim(t, "gap", 0, 5)
		rc.threads = [3]int{half, heads, 1}
		in(0, []int{heads, 2 * half}, []int{stride, 1})
		out(1, []int{heads, 2 * half}, []int{stride, 1})
		rc.flags[1], rc.flags[2] = dim(t, "forward", 0, 1) == 1, dim(t, "traditional", 0, 1) == 1
		rc.constant[2], rc.constant[4] = i32(drawOffset(t)), i64(stride)
		rc.constant[3], rc.constant[10] = drawAngles(t)

	case kernel == "rope_single_x2_float32":
		half := dim(t, "half", 1, 40)
		rc.threads = [3]int{half, 0, 1}
		for i := range 2 {
			heads := dim(t, "heads", 1, 9)
			a, b := 2*half+dim(t, "gap", 0, 5), 2*half+dim(t, "gap", 0, 5)
			in(i, []int{heads, 2 * half}, []int{a, 1})
			out(2+i, []int{heads, 2 * half}, []int{b, 1})
			rc.constant[6+i], rc.constant[8+i], rc.constant[11+i] = i64(a), i64(b), i32(heads)
			rc.threads[1] += heads
		}
		rc.flags[1], rc.flags[2] = dim(t, "forward", 0, 1) == 1, dim(t, "traditional", 0, 1) == 1
		rc.constant[4] = i32(drawOffset(t))
		rc.constant[5], rc.constant[10] = drawAngles(t)

	case kernel == "rope_x2_float32":
		length, half := dim(t, "t", 1, 20), dim(t, "half", 1, 20)
		rc.threads = [3]int{half, length, 0}
		for i := range 2 {
			heads := dim(t, "heads", 1, 9)
			shape := []int{heads, length, 2 * half}
			a, b := in(i, shape, drawStrides(t, shape, false)).strides, drawStrides(t, shape, false)
			out(2+i, shape, b)
			rc.constant[6+i], rc.constant[8+i], rc.constant[11+i] = i64(a...), i64(b...), i32(heads)
			rc.threads[2] += ceilDiv(heads, 4)
		}
		offset := drawOffset(t)
		in(4, []int{1}, nil).value = func(*rand.Rand) uint32 { return uint32(offset) }
		rc.flags[1], rc.flags[2] = dim(t, "forward", 0, 1) == 1, dim(t, "traditional", 0, 1) == 1
		rc.constant[5], rc.constant[10] = drawAngles(t)

	case kernel == "rope_float32":
		heads, length, half := dim(t, "heads", 1, 9), dim(t, "t", 1, 20), dim(t, "half", 1, 20)
		shape := []int{heads, length, 2 * half}
		rc.threads = [3]int{half, length, ceilDiv(heads, 4)}
		a, b := in(0, shape, drawStrides(t, shape, false)).strides, drawStrides(t, shape, false)
		out(1, shape, b)
		offset := drawOffset(t)
		in(2, []int{1}, nil).value = func(*rand.Rand) uint32 { return uint32(offset) }
		rc.flags[1], rc.flags[2] = dim(t, "forward", 0, 1) == 1, dim(t, "traditional", 0, 1) == 1
		rc.constant[4], rc.constant[5] = i64(a...), i64(b...)
		rc.constant[6], rc.constant[7] = i64(0), i32(heads)
		rc.constant[3], rc.constant[10] = drawAngles(t)

	case strings.HasPrefix(kernel, "sdpa_"):
		var d int
		_, err := fmt.Sscanf(kernel[strings.Index(kernel, "_float_"):], "_float_%d", &d)
		require.NoError(t, err)
		gqa, kv, l := dim(t, "gqa", 1, 4), dim(t, "kv", 1, 3), dim(t, "l", 1, 4)
		if dim(t, "prefill", 0, 2) == 0 {
			l = dim(t, "l", 8, 200)
		}
		n := l + dim(t, "before", 0, 280)
		hq := gqa*kv - dim(t, "fewer", 0, gqa-1)
		rc.groups, rc.group = [3]int{hq, l, 1}, [3]int{1024, 1, 1}
		rc.flags[21], rc.flags[22] = dim(t, "transposed", 0, 1) == 1, dim(t, "causal", 0, 1) == 1
		byHead, byQuery := []int{hq, l, d}, []int{l, hq, d}
		q, o := byHead, byHead
		if rc.flags[21] || has("rows") {
			q = byQuery
		}
		if has("rows") {
			o = byQuery
			delete(rc.flags, 21)
		}
		strides := func(name string) []int {
			if dim(t, name, 0, 1) == 0 {
				return []int{n*d + 64, d, 1} // a cache with room for more
			}
			return []int{d, kv*d + 1, 1}
		}
		in(0, q, nil)
		out(3, o, nil)
		k := in(1, []int{kv, n, d}, strides("k")).strides
		v := in(2, []int{kv, n, d}, strides("v")).strides
		rc.constant[4], rc.constant[5], rc.constant[10] = i32(gqa), i32(n), f32(0.125)
		rc.constant[6], rc.constant[7] = i64(k[0]), i64(k[1])
		rc.constant[8], rc.constant[9] = i64(v[0]), i64(v[1])

	case kernel == "argmax_float32":
		rows, n, as := dim(t, "rows", 1, 5), dim(t, "n", 1, 2500), dim(t, "axis_stride", 1, 2)
		rs, os := n*as+dim(t, "gap", 0, 3), dim(t, "out_stride", 1, 2)
		rc.threads[1] = rows
		in(0, []int{rows, n}, []int{rs, as})
		out(1, []int{rows}, []int{os})
		rc.constant[3], rc.constant[4], rc.constant[5] = i64(rs), i64(os), i64(1)
		rc.constant[6], rc.constant[7] = i64(as), i64(n)

	default:
		t.Fatalf("no random call for kernel %s: add a branch", kernel)
	}
	return rc
}

// drawOffset and drawAngles draw values that come again, as those that a worker
// remembers do.
func drawOffset(t *rapid.T) int {
	if dim(t, "far", 0, 1) == 1 {
		return dim(t, "offset", 0, 9000)
	}
	return dim(t, "offset", 0, 5)
}

func drawAngles(t *rapid.T) (scale, base []byte) {
	return f32(rapid.SampledFrom([]float32{1, 0.25}).Draw(t, "scale")), f32(rapid.SampledFrom([]float32{13.25, 16.5}).Draw(t, "base"))
}

// half makes the elements finite f16.
func (o *operand) half() {
	o.size = 2
	o.value = func(r *rand.Rand) uint32 { return uint32(r.IntN(2)<<15 | r.IntN(0x7c00)) }
}

// drawStrides draws strides under which no two elements overlap or, with
// broadcast, some dimensions may have stride 0: the dimensions in any order,
// with gaps.
func drawStrides(t *rapid.T, shape []int, broadcast bool) []int {
	strides := make([]int, len(shape))
	order := make([]int, len(shape))
	for i := range order {
		order[i] = len(shape) - 1 - i
	}
	if dim(t, "permute", 0, 1) == 1 {
		order = rapid.Permutation(order).Draw(t, "order")
	}
	n := 1
	for _, i := range order {
		if broadcast && dim(t, "broadcast", 0, 4) == 0 {
			continue
		}
		strides[i] = n
		n = n*shape[i] + dim(t, "gap", 0, 2)
	}
	return strides
}

func finite(r *rand.Rand) uint32 { return normalBits(r) }
func poison(*rand.Rand) uint32   { return 0x7fc00000 }

// dirty is a worker that every test uses again: nothing that a worker
// remembers may show in a result.
var dirty Worker

// TestAnySplit is the law that makes results independent of the machine: the
// units in any ranges, in any order, on any workers, give the bits of one run;
// and no two ranges write one element.
func TestAnySplit(t *testing.T) {
	forEachKernel(t, func(t *rapid.T, rc *randomCall, k *Kernel, seed uint64) {
		whole, want := rc.call(seed, finite)
		var w Worker
		k.Run(whole, &w, 0, k.Units(whole))

		parts, got := rc.call(seed, finite)
		units := k.Units(parts)
		cuts := []int{0, units}
		for range dim(t, "cuts", 0, 5) {
			cuts = append(cuts, dim(t, "cut", 0, units))
		}
		var ranges [][2]int
		for lo := 0; lo < units; {
			hi := units
			for _, c := range cuts {
				if c > lo && c < hi {
					hi = c
				}
			}
			ranges = append(ranges, [2]int{lo, hi})
			lo = hi
		}
		r := rand.New(rand.NewPCG(seed, 7))
		r.Shuffle(len(ranges), func(i, j int) { ranges[i], ranges[j] = ranges[j], ranges[i] })
		workers := []*Worker{&dirty, {}}
		written := 0
		for _, x := range ranges {
			k.Run(parts, workers[r.IntN(2)], x[0], x[1])
			alone, buffers := rc.call(seed, finite)
			k.Run(alone, &dirty, x[0], x[1])
			written += rc.written(buffers)
		}
		require.Equal(t, rc.written(want), written, "elements written, ranges %v", ranges)
		for slot, b := range want {
			require.True(t, slices.Equal(b.words, got[slot].words), "argument %d, ranges %v", slot, ranges)
		}
	})
}

// written counts the elements of results that are not as they were made.
func (rc *randomCall) written(buffers map[int]*guarded) (n int) {
	for _, o := range rc.operands {
		if !o.write {
			continue
		}
		for e, view := 0, buffers[o.slot].view(); e < o.elements(); e++ {
			if !o.untouched(view, e) {
				n++
			}
		}
	}
	return n
}

// TestTouches watches bytes: a kernel writes every element of its result and no
// other byte, and what it writes does not depend on bytes that its declaration
// does not name.
func TestTouches(t *testing.T) {
	forEachKernel(t, func(t *rapid.T, rc *randomCall, k *Kernel, seed uint64) {
		c, buffers := rc.call(seed, finite)
		k.Run(c, &dirty, 0, k.Units(c))
		other, poisoned := rc.call(seed, poison)
		k.Run(other, &dirty, 0, k.Units(other))
		_, before := rc.call(seed, finite)
		for _, o := range rc.operands {
			require.True(t, buffers[o.slot].intact(), "wrote outside argument %d", o.slot)
			if !o.write {
				require.True(t, slices.Equal(before[o.slot].words, buffers[o.slot].words), "changed argument %d", o.slot)
				continue
			}
			require.True(t, slices.Equal(buffers[o.slot].words, poisoned[o.slot].words), "argument %d depends on bytes that no argument names", o.slot)
			named := make([]bool, o.elements())
			view := buffers[o.slot].view()
			for p := range product(o.shape) {
				e := offsetOf(p, o.shape, o.strides)
				named[e] = true
				if o.untouched(view, e) {
					t.Fatalf("argument %d: element %d not written", o.slot, p)
				}
			}
			for e, ok := range named {
				if !ok && !o.untouched(view, e) {
					t.Fatalf("argument %d: wrote %d, which is in a gap", o.slot, e)
				}
			}
		}
	})
}

// TestShortViewPanics: a view that lacks the last element of an argument must
// stop the kernel, not let it run past the end.
func TestShortViewPanics(t *testing.T) {
	forEachKernel(t, func(t *rapid.T, rc *randomCall, k *Kernel, seed uint64) {
		var candidates []operand
		for _, o := range rc.operands {
			if !o.gathered {
				candidates = append(candidates, o)
			}
		}
		o := candidates[dim(t, "operand", 0, len(candidates)-1)]
		c, buffers := rc.call(seed, finite)
		c.Device[o.slot] = c.Device[o.slot][:len(c.Device[o.slot])-o.size]
		require.Panics(t, func() { k.Run(c, &Worker{}, 0, k.Units(c)) }, "argument %d", o.slot)
		for slot, b := range buffers {
			require.True(t, b.intact(), "wrote outside argument %d", slot)
		}
	})
}

// TestRunsWithoutAllocating: after a first run, which may grow the worker's
// scratch.
func TestRunsWithoutAllocating(t *testing.T) {
	cases, blob := loadCases(t)
	var w Worker
	for i := range cases {
		c, _ := cases[i].call(t, blob)
		k := Lookup(cases[i].Kernel)
		run := func() { k.Run(c, &w, 0, k.Units(c)) }
		run()
		assert.Zero(t, testing.AllocsPerRun(3, run), &cases[i])
	}
}

// TestCost: a unit costs some time, and not an absurd one.
func TestCost(t *testing.T) {
	forEachKernel(t, func(t *rapid.T, rc *randomCall, k *Kernel, seed uint64) {
		c, _ := rc.call(seed, finite)
		require.Positive(t, k.Units(c))
		require.Greater(t, k.Cost(c), 0.0)
		require.Less(t, k.Cost(c)*float64(k.Units(c)), 1e9)
	})
}

// forEachKernel checks f on random calls of every kernel, each with one of
// simd's implementations.
func forEachKernel(t *testing.T, f func(t *rapid.T, rc *randomCall, k *Kernel, seed uint64)) {
	// Fused products are many and one code: their instances take turns.
	var order []string
	instances := map[string][]string{}
	for _, name := range Names() {
		group := name
		if p := fusedOf(name); p != nil {
			group, _, _ = strings.Cut(name, "_float")
		}
		if instances[group] == nil {
			order = append(order, group)
		}
		instances[group] = append(instances[group], name)
	}
	for _, group := range order {
		t.Run(group, func(t *testing.T) {
			defer simd.Use(simd.Active())
			rapid.Check(t, func(t *rapid.T) {
				_, err := simd.Use(rapid.SampledFrom(simd.Available()).Draw(t, "impl"))
				require.NoError(t, err)
				name := rapid.SampledFrom(instances[group]).Draw(t, "kernel")
				rc := drawCall(t, name)
				f(t, rc, Lookup(name), rapid.Uint64().Draw(t, "seed"))
			})
		})
	}
}
