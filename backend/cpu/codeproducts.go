package cpu

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// codeProduct is a product of vectors with matrices of affine codes that are taken one by one, for number z of a batch
//
//	y[z,m,n] = Σ_k x[m,k] * w[n,k]    transposed: w is [N, K], with groups along K
//	y[z,m,n] = Σ_k x[m,k] * w[k,n]    or [K, N], with groups along N
//
// Which x and w a number has, batches say, or indices too; an index outside its stack makes NaN and reads nothing.
//
// Arguments, as MLX binds them: 0 w, 1 scales, 2 biases, 3 x; lhs and rhs indices u32, if there are some; y, K and N
// i32, M i32 of kernels for many rows; then of batches the number of dimensions of x, its shape and strides, the number
// of dimensions of the matrices, their shape, the strides of w in words, of scales and of biases; and of indices the
// number of dimensions, their shape, and the strides of lhs and of rhs. Shapes are i32, strides i64.
type codeProduct struct {
	affine
	floatType
	transposed bool
	rounded    bool // weights are rounded to the type: of kernels for many rows
	hasM       bool // the number of rows is an argument
	batched    bool
	indexed    bool
	parts      int  // of qvm_split_k: the batch are parts of K
	sums       bool // of qmm_t_splitk: the same, with sums in f32
}

func init() {
	for _, a := range affines {
		for _, t := range floatTypes() {
			p := codeProduct{affine: a, floatType: t}
			straight, transposed := p, p
			transposed.transposed = true
			params := fmt.Sprintf("_%s_gs_%d_b_%d", t.name, a.group, a.bits)
			Register(
				straight.kernel("affine_qvm"+params+"_batch_0"),
				straight.batch().kernel("affine_qvm"+params+"_batch_1"),
				straight.split(8).kernel("affine_qvm_split_k"+params+"_spk_8"),
				straight.split(32).kernel("affine_qvm_split_k"+params+"_spk_32"),
				straight.many().kernel("affine_qmm_n"+params+"_batch_0"),
				straight.many().batch().kernel("affine_qmm_n"+params+"_batch_1"),
				straight.index().kernel("affine_gather_qvm"+params),
				straight.many().index().kernel("affine_gather_qmm_n"+params),
				transposed.batch().kernel("affine_qmv"+params+"_batch_1_pr_0_hgs_0_r_4"),
				transposed.batch().kernel("affine_qmv_fast"+params+"_batch_1_pr_0_hgs_0_r_4"),
				transposed.batch().kernel("affine_qmv_fast"+params+"_batch_1_pr_1_hgs_0_r_4"),
				transposed.kernel("affine_qmv_fast"+params+"_batch_0_pr_1_hgs_0_r_4"),
				straight.sorted("affine_gather_qmm_rhs_nn"+params+"_bm_16_bn_32_bk_32_wm_1_wn_2"),
				transposed.sorted("affine_gather_qmm_rhs_nt"+params+"_bm_16_bn_32_bk_32_wm_1_wn_2"),
			)
			for _, d := range []int{64, 128} {
				if a.group <= d && 32%a.bits == 0 {
					form := fmt.Sprintf("affine_qmv_quad%s_d_%d_batch_", params, d)
					Register(transposed.kernel(form+"0"), transposed.batch().kernel(form+"1"))
				}
			}
			for rows := 2; rows <= 5; rows++ {
				form := fmt.Sprintf("affine_qmv_wide%s_nv_%d_kl_8_batch_", params, rows)
				wide := transposed
				wide.hasM = true
				Register(wide.kernel(form+"0"), wide.batch().kernel(form+"1"))
			}
			for _, aligned := range []bool{false, true} {
				Register(
					transposed.many().sum().kernel(fmt.Sprintf("affine_qmm_t_splitk%s_alN_%t", params, aligned)),
					transposed.many().batch().kernel(fmt.Sprintf("affine_qmm_t%s_alN_%t_batch_1", params, aligned)),
					transposed.many().index().kernel(fmt.Sprintf("affine_gather_qmm_t%s_alN_%t", params, aligned)),
				)
			}
		}
	}
}

func (p codeProduct) many() codeProduct           { p.rounded, p.hasM = true, true; return p }
func (p codeProduct) sum() codeProduct            { p.sums = true; return p }
func (p codeProduct) batch() codeProduct          { p.batched = true; return p }
func (p codeProduct) index() codeProduct          { p.batched, p.indexed = true, true; return p }
func (p codeProduct) split(parts int) codeProduct { p.parts = parts; return p.batch() }

// The slots of arguments behind x.
func (p *codeProduct) y() int {
	if p.indexed {
		return 6
	}
	return 4
}
func (p *codeProduct) k() int { return p.y() + 1 }
func (p *codeProduct) n() int { return p.y() + 2 }
func (p *codeProduct) batches() int {
	if p.hasM {
		return p.y() + 4
	}
	return p.y() + 3
}

func (p *codeProduct) vectors(c *Call) int {
	switch {
	case p.hasM:
		return c.Int(p.y() + 3)
	case p.batched:
		return element32(c, p.batches()+1, c.Int(p.batches()))
	}
	return c.Groups[0]
}

// columns is how many columns of results a unit makes: a group of a matrix that is not transposed.
func (p *codeProduct) columns() int {
	if p.transposed {
		return qmvRows
	}
	return p.group
}

// codeOperands are where the operands of one number of a batch begin, and how long its sums are.
type codeOperands struct {
	w                 int // in bytes
	scales, biases, x int // in elements
	pitch             int // from a row of x, or of a transposed matrix, to the next
	from, k           int // the elements of a row that count
	absent            bool
}

func (p *codeProduct) operands(c *Call, z int) (o codeOperands) {
	o.k = c.Int(p.k())
	o.pitch = o.k
	switch {
	case p.sums:
		o.k = c.Int(p.y() + 4)
		o.from = z * o.k
		return o
	case !p.batched:
		return o
	}
	at := p.batches()
	left, right := z, z
	if p.indexed {
		left = int(c.U32(4)[offsetOf(c, z, at+8, at+9, at+10)])
		right = int(c.U32(5)[offsetOf(c, z, at+8, at+9, at+11)])
		if left >= sizeOf(c, at, at+1) || right >= sizeOf(c, at+3, at+4) {
			o.absent = true
			return o
		}
	}
	o.x = offsetOf(c, left, at, at+1, at+2)
	o.w = 4 * offsetOf(c, right, at+3, at+4, at+5)
	o.scales = offsetOf(c, right, at+3, at+4, at+6)
	o.biases = offsetOf(c, right, at+3, at+4, at+7)
	if p.parts > 0 {
		last := c.Int(at + 8)
		o.pitch = (p.parts-1)*o.k + last
		if z%p.parts == p.parts-1 {
			o.k = last
		}
	}
	return o
}

// offsetOf returns where number i of a batch lies, whose number of dimensions, shape and strides are in slots.
func offsetOf(c *Call, i, ndims, shape, strides int) (at int) {
	for d := c.Int(ndims) - 1; d >= 0; d-- {
		n := element32(c, shape, d)
		at += i % n * c.Long(strides, d)
		i /= n
	}
	return at
}

// sizeOf returns how many a batch has.
func sizeOf(c *Call, ndims, shape int) int {
	n := 1
	for d := range c.Int(ndims) {
		n *= element32(c, shape, d)
	}
	return n
}

// kernel returns the twin, of which a unit is a block of columns of one number of the batch.
func (p codeProduct) kernel(name string) *Kernel {
	blocks := func(c *Call) int { return ceilDiv(c.Int(p.n()), p.columns()) }
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return blocks(c) * c.Groups[2] },
		Run: func(c *Call, w *Worker, lo, hi int) {
			k, n, m := c.Int(p.k()), c.Int(p.n()), p.vectors(c)
			buf := w.Scratch((p.columns()+1)*k + p.columns())
			weights, x, out := buf[:p.columns()*k], buf[p.columns()*k:][:k], buf[(p.columns()+1)*k:]
			for u := lo; u < hi; u++ {
				c.Pause()
				z, from := u/blocks(c), u%blocks(c)*p.columns()
				to := min(from+p.columns(), n)
				o := p.operands(c, z)
				out, x := out[:to-from], x[:o.k]
				switch {
				case o.absent:
					fill(out, nan32)
				case o.k == 0:
					clear(out)
				default:
					p.decode(c, 0, o, weights, n, from, to)
				}
				for row := range m {
					if !o.absent && o.k > 0 {
						p.load(c, x, 3, o.x+row*o.pitch+o.from)
						p.multiply(out, x, weights)
					}
					if p.sums {
						floatType{}.store(c, p.y(), (z*m+row)*n+from, out)
						continue
					}
					p.store(c, p.y(), (z*m+row)*n+from, out)
				}
			}
		},
		Cost: func(c *Call) float64 {
			return 20 + float64(c.Int(p.k())*p.columns())*(3+float64(p.vectors(c)))
		},
	}
}

// decode makes the weights of columns [from, to) of the results: as rows of a transposed matrix, or as pieces of its
// rows. The codes are argument w, and scales and biases those behind it.
func (p *codeProduct) decode(c *Call, w int, o codeOperands, weights []float32, n, from, to int) {
	var of [2]float32
	take := func(dst []float32, first int) { // elements of whole groups of the matrix
		for i := 0; i < len(dst); i += p.group {
			at := first + i
			p.load(c, of[:1], w+1, o.scales+at/p.group)
			p.load(c, of[1:], w+2, o.biases+at/p.group)
			p.affine.decode(dst[i:i+p.group], c.Bytes(w)[o.w+at/8*p.bits:], of[:1], of[1:])
		}
	}
	if p.transposed {
		for r := from; r < to; r++ {
			take(weights[(r-from)*o.k:][:o.k], r*o.pitch+o.from)
		}
		weights = weights[:(to-from)*o.k]
	} else {
		for r := range o.k {
			take(weights[r*p.group:][:p.group], r*n+from)
		}
		weights = weights[:o.k*p.group]
	}
	if p.rounded {
		p.round(weights)
	}
}

// multiply makes a row of results of a row of x and the weights as decode leaves them.
func (p *codeProduct) multiply(out, x, weights []float32) {
	if p.transposed {
		for i := range out {
			out[i] = simd.Dot(x, weights[i*len(x):][:len(x)])
		}
		return
	}
	clear(out)
	for k, v := range x {
		for i, e := range weights[k*p.group:][:len(out)] {
			out[i] += float32(v * e)
		}
	}
}

// sorted returns the twin of a product of rows with a matrix each, whose rows lie together: row m is of the last matrix
// whose offset is not above m, or of the first one. A unit is a block of columns.
//
// Arguments, as MLX binds them: 0 x, 1 w, 2 scales, 3 biases, 4 offsets i32[matrices], 5 y; 6 M, 7 N, 8 K, 9 matrices
// i32.
func (p codeProduct) sorted(name string) *Kernel {
	p.rounded = true
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return ceilDiv(c.Int(7), p.columns()) },
		Run: func(c *Call, worker *Worker, lo, hi int) {
			m, n, k := c.Int(6), c.Int(7), c.Int(8)
			offsets := c.I32(4)[:c.Int(9)]
			buf := worker.Scratch((p.columns()+1)*k + p.columns())
			weights, x, out := buf[:p.columns()*k], buf[p.columns()*k:][:k], buf[(p.columns()+1)*k:]
			for u := lo; u < hi; u++ {
				c.Pause()
				from := u * p.columns()
				to := min(from+p.columns(), n)
				of := -1
				for row := range m {
					matrix := 0
					for i, first := range offsets {
						if int(first) <= row {
							matrix = i
						}
					}
					if matrix != of && k > 0 {
						of = matrix
						at := matrix * n * k
						p.decode(c, 1, codeOperands{w: at / 8 * p.bits, scales: at / p.group, biases: at / p.group, pitch: k, k: k}, weights, n, from, to)
					}
					out := out[:to-from]
					clear(out)
					if k > 0 {
						p.load(c, x, 0, row*k)
						p.multiply(out, x, weights)
					}
					p.store(c, 5, row*n+from, out)
				}
			}
		},
		Cost: func(c *Call) float64 { return 20 + float64(c.Int(8)*p.columns())*(3+float64(c.Int(6))) },
	}
}

func init() {
	Register(&Kernel{
		// offsets[g] is the least place from which on an index is not below g.
		//
		// Arguments: 0 indices u32[M], 1 offsets i32[threads], 2 M i32. A unit is an offset.
		Name:  "gather_mm_offsets",
		Units: func(c *Call) int { return c.Threads[0] },
		Run: func(c *Call, _ *Worker, lo, hi int) {
			m := c.Int(2)
			for g := lo; g < hi; g++ {
				at := slices.IndexFunc(c.U32(0)[:m], func(i uint32) bool { return int(i) >= g })
				if at < 0 {
					at = m
				}
				c.I32(1)[g] = int32(at)
			}
		},
		Cost: func(c *Call) float64 { return 10 + float64(c.Int(2)) },
	})
	names := map[string]floatType{"float32": {}, "float16": floatTypes()[1], "bfloat16": floatTypes()[2]}
	for name, t := range names {
		Register(&Kernel{
			// D[m,n] = Σ_p C[p,m,n], in the order of p.
			//
			// Arguments: 0 C f32 [parts, M, N : stride, ld, 1], 1 D [M, N : ld, 1], 2 parts, 3 stride, 4 ld i32. The
			// threads are (N, M, 1). A unit is a row.
			Name:  "steel_gemm_splitk_accum_" + name + "_float32",
			Units: func(c *Call) int { return c.Threads[1] },
			Run: func(c *Call, w *Worker, lo, hi int) {
				n, ld := c.Threads[0], c.Int(4)
				sum := w.Scratch(n)
				for row := lo; row < hi; row++ {
					clear(sum)
					for p := range c.Int(2) {
						simd.AddTo(sum, sum, c.F32(0)[p*c.Int(3)+row*ld:][:n])
					}
					t.store(c, 1, row*ld, sum)
				}
			},
			Cost: func(c *Call) float64 { return 10 + 0.2*float64(c.Threads[0]*c.Int(2)) },
		})
	}
}
