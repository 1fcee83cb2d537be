package cpu

import "github.com/mlxc/mlxc/backend/cpu/internal/simd"

func init() {
	Register(
		&Kernel{Name: "layer_normfloat32", Units: groupsX, Run: layerNorm, Cost: layerNormCost},
		&Kernel{Name: "layer_norm_loopedfloat32", Units: groupsX, Run: layerNorm, Cost: layerNormCost},
		&Kernel{Name: "layer_normfloat16", Units: groupsX, Run: layerNormNarrow(halfType), Cost: layerNormNarrowCost},
		&Kernel{Name: "layer_norm_loopedfloat16", Units: groupsX, Run: layerNormNarrow(halfType), Cost: layerNormNarrowCost},
		&Kernel{Name: "layer_normbfloat16", Units: groupsX, Run: layerNormNarrow(bfloatType), Cost: layerNormNarrowCost},
		&Kernel{Name: "layer_norm_loopedbfloat16", Units: groupsX, Run: layerNormNarrow(bfloatType), Cost: layerNormNarrowCost},
		&Kernel{Name: "vjp_layer_normfloat32", Units: groupsX, Run: layerNormGrad, Cost: layerNormGradCost},
		&Kernel{Name: "vjp_layer_norm_loopedfloat32", Units: groupsX, Run: layerNormGrad, Cost: layerNormGradCost},
		&Kernel{Name: "vjp_layer_normfloat16", Units: groupsX, Run: layerNormGradNarrow(halfType), Cost: layerNormGradNarrowCost},
		&Kernel{Name: "vjp_layer_norm_loopedfloat16", Units: groupsX, Run: layerNormGradNarrow(halfType), Cost: layerNormGradNarrowCost},
		&Kernel{Name: "vjp_layer_normbfloat16", Units: groupsX, Run: layerNormGradNarrow(bfloatType), Cost: layerNormGradNarrowCost},
		&Kernel{Name: "vjp_layer_norm_loopedbfloat16", Units: groupsX, Run: layerNormGradNarrow(bfloatType), Cost: layerNormGradNarrowCost},
	)
}

// layerNormHasW is the index of the function constant has_w.
const layerNormHasW = 20

// layerNorm is layer normalization, in MLX's arithmetic:
//
//	out[r,i] = w[i] * (x[r,i] - mean[r]) * inv[r] + b[i]
//	mean = Σ x[r,i] / axis_size,  inv = 1/sqrt(Σ (x[r,i] - mean)² / axis_size + eps)
//
// Arguments: 0 x f32[rows, axis_size], 1 w f32[axis_size : w_stride], 2 b
// f32[axis_size : b_stride], 3 out as x, 4 eps f32, 5 axis_size u32, 6 w_stride
// u32, 7 b_stride u32. A unit is a row; the looped kernel differs on a GPU only.
// out may be x.
func layerNorm(c *Call, work *Worker, lo, hi int) {
	n := c.Uint(5)
	x, w, b, out := c.F32(0), c.F32(1), c.F32(2), c.F32(3)
	r := newRowSums(work.Scratch(5*n), n)
	for row := lo; row < hi; row++ {
		r.centre(r.rows[0], x[row*n:(row+1)*n], c.Float(4))
		o := out[row*n : (row+1)*n]
		simd.ScaleTo(o, r.inv, r.rows[0])
		simd.MulTo(o, run(r.rows[1], w, 0, c.Uint(6)), o)
		simd.AddTo(o, o, run(r.rows[1], b, 0, c.Uint(7)))
		canonical(o)
	}
}

// rowSums holds the scratch for the sums over one row. In every sum of reduction class layer_norm each term,
// even a product, is rounded before it is added, so that all sums of the class round alike.
type rowSums struct {
	ones, products []float32
	rows           [3][]float32
	inv2, inv      float32
}

// newRowSums returns rowSums for rows of n elements, which take 5·n floats of scratch.
func newRowSums(scratch []float32, n int) (r rowSums) {
	r.ones, r.products = scratch[:n], scratch[n:2*n]
	for i := range r.ones {
		r.ones[i] = 1
	}
	for i := range r.rows {
		r.rows[i] = scratch[(2+i)*n : (3+i)*n]
	}
	return r
}

func (r *rowSums) mean(x []float32) float32 { return simd.Dot(x, r.ones) / float32(len(x)) }

// meanOfProducts is Σ a[i]*b[i] / n.
func (r *rowSums) meanOfProducts(a, b []float32) float32 {
	simd.MulTo(r.products, a, b)
	return r.mean(r.products)
}

// centre sets dst to x minus its mean, inv2 to the inverse of the variance plus eps, and inv to the root of
// inv2. dst may be x.
func (r *rowSums) centre(dst, x []float32, eps float32) {
	mean := r.mean(x)
	for i, v := range x {
		dst[i] = v - mean
	}
	variance := r.meanOfProducts(dst, dst)
	r.inv = rsqrt32(variance + eps)
	r.inv2 = 1 / (variance + eps)
}

func layerNormCost(c *Call) float64 { return 30 + 1.2*float64(c.Uint(5)) }

// layerNormNarrow is layerNorm in f16 or bf16, with the sums in f32 and three
// roundings to that type:
//
//	out[r,i] = round(round(w[i] * round((x[r,i] - mean[r]) * inv[r])) + b[i])
//
// Arguments are those of layerNorm, x, w, b and out in the type.
func layerNormNarrow(t narrow) func(c *Call, work *Worker, lo, hi int) {
	return func(c *Call, work *Worker, lo, hi int) {
		n := c.Uint(5)
		x, w, b, out := c.U16(0), c.U16(1), c.U16(2), c.U16(3)
		r := newRowSums(work.Scratch(5*n), n)
		y, scale := r.rows[0], r.rows[1]
		for row := lo; row < hi; row++ {
			t.from(y, x[row*n:(row+1)*n])
			r.centre(y, y, c.Float(4))
			simd.ScaleTo(y, r.inv, y)
			t.round(y)
			t.gather(scale, w, c.Uint(6))
			simd.MulTo(y, scale, y)
			t.round(y)
			t.gather(scale, b, c.Uint(7))
			simd.AddTo(y, y, scale)
			t.to(out[row*n:(row+1)*n], y)
		}
	}
}

func layerNormNarrowCost(c *Call) float64 { return 30 + 1.8*float64(c.Uint(5)) }

// layerNormGrad is the gradient of layerNorm: of x, and of w row by row.
//
//	gx[r,i] = inv * (w[i]*g[r,i] - mean(w*g)) - norm[r,i] * mean(w*g*c) * inv²
//	gw[r,i] = g[r,i] * norm[r,i]
//	c = x - mean(x),  norm = c * inv
//
// with inv the root of inv² = 1/(mean(c²) + eps), and means of rows.
//
// Arguments: 0 x f32[rows, axis_size], 1 w f32[axis_size : w_stride], 2 g, 3 gx
// and 4 gw as x, 5 eps f32, 6 axis_size u32, 7 w_stride u32. gw is written with
// the constant has_w. A unit is a row. gx and gw may each be x or g.
func layerNormGrad(c *Call, work *Worker, lo, hi int) {
	n, hasW := c.Uint(6), c.Flag(layerNormHasW)
	x, w, g, gx := c.F32(0), c.F32(1), c.F32(2), c.F32(3)
	var gw []float32
	if hasW {
		gw = c.F32(4)
	}
	r := newRowSums(work.Scratch(5*n), n)
	wg, grad := r.rows[1], r.rows[2]
	for row := lo; row < hi; row++ {
		i, j := row*n, (row+1)*n
		copy(grad, g[i:j]) // gx may lie on g
		r.centre(r.rows[0], x[i:j], c.Float(5))
		weights := run(wg, w, 0, c.Uint(7))
		if hasW {
			r.gradient(gx[i:j], gw[i:j], weights, grad)
			canonical(gw[i:j])
		} else {
			r.gradient(gx[i:j], nil, weights, grad)
		}
		canonical(gx[i:j])
	}
}

// gradient is the gradient of the row that centre left in rows[0]; grad is that of
// the norm's result. gw may be nil. rows[1], which may hold w, is overwritten; gx
// may be rows[1], gw may be grad.
func (r *rowSums) gradient(gx, gw, w, grad []float32) {
	centred, wg := r.rows[0], r.rows[1]
	simd.MulTo(wg, w, grad)
	meanWG, meanWGC := r.mean(wg), r.meanOfProducts(wg, centred)
	inv := sqrt32(r.inv2)
	for k, v := range centred {
		norm := v * inv
		left, right := float32(inv*(wg[k]-meanWG)), float32(norm*meanWGC*r.inv2) // the conversions round on every architecture
		gx[k] = left - right
		if gw != nil {
			gw[k] = grad[k] * norm
		}
	}
}

func layerNormGradCost(c *Call) float64 { return 40 + 4*float64(c.Uint(6)) }

// layerNormGradNarrow is layerNormGrad in f16 or bf16: computed in f32, rounded where
// it is stored. Arguments are those of layerNormGrad, x, w, g, gx and gw in the type.
func layerNormGradNarrow(t narrow) func(c *Call, work *Worker, lo, hi int) {
	return func(c *Call, work *Worker, lo, hi int) {
		n, hasW := c.Uint(6), c.Flag(layerNormHasW)
		x, w, g, gx := c.U16(0), c.U16(1), c.U16(2), c.U16(3)
		var gw []uint16
		if hasW {
			gw = c.U16(4)
		}
		r := newRowSums(work.Scratch(5*n), n)
		centred, wg, grad := r.rows[0], r.rows[1], r.rows[2]
		for row := lo; row < hi; row++ {
			i, j := row*n, (row+1)*n
			t.from(centred, x[i:j])
			t.from(grad, g[i:j])
			t.gather(wg, w, c.Uint(7))
			r.centre(centred, centred, c.Float(5))
			r.gradient(wg, grad, wg, grad)
			t.to(gx[i:j], wg)
			if hasW {
				t.to(gw[i:j], grad)
			}
		}
	}
}

func layerNormGradNarrowCost(c *Call) float64 { return 40 + 5*float64(c.Uint(6)) }
