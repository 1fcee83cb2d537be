package main

import (
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// network holds the sizes of the network:
//
//	h = x·w1ᵀ + b1,  a = relu(layer_norm(h)·gamma + beta),  y = a·w2ᵀ + b2
type network struct{ batch, inputs, hidden, outputs int64 }

const epsilon = 1e-5

// These kernels are generated from their terms: see record.Session.Elementwise.
const (
	descend  = "out0[i] = round(f32, in0[i] - s0 * in1[i])"              // w − rate·g
	reluGrad = "out0[i] = round(f32, select(in0[i] > 0.0, in1[i], 0.0))" // g where relu passed its operand on
)

// step records one step of training: the inputs x and the targets t of a batch, the mean of the
// squared errors as output "loss", every gradient, and the update of the parameters, which are
// states: each minus the param "rate" times its gradient. If gradients is set, gradients are
// outputs too, called "grad_" and the parameter's name.
func (n network) step(gradients bool) (*ir.Graph, error) {
	r := record.New("step")
	x := r.Input("x", ir.F32, n.batch, n.inputs)
	t := r.Input("t", ir.F32, n.batch, n.outputs)
	loss := r.Output("loss", ir.F32, 1)
	rate := r.ParamF32("rate", 0, 1)

	random := func(seed uint64) ir.Init { return ir.Init{Kind: ir.InitRandom, Seed: seed} } // in [−1, 1)
	w1 := r.StateFrom("w1", random(1), ir.F32, n.hidden, n.inputs)
	b1 := r.State("b1", ir.F32, n.hidden)
	gamma := r.StateFrom("gamma", ir.FillU32(math.Float32bits(1)), ir.F32, n.hidden)
	beta := r.State("beta", ir.F32, n.hidden)
	w2 := r.StateFrom("w2", random(2), ir.F32, n.outputs, n.hidden)
	b2 := r.State("b2", ir.F32, n.outputs)

	// to gives a gradient a memory of its own if gradients is set.
	to := func(name string, like record.Tensor) record.Option {
		if !gradients {
			return record.Label("grad_" + name)
		}
		var shape []int64
		for _, d := range like.Shape {
			shape = append(shape, d.Const)
		}
		return record.Into(r.Output("grad_"+name, ir.F32, shape...))
	}

	r.Group("forward")
	h := r.Add(r.Matmul(x, record.Dense(w1)), b1)
	normed := r.LayerNorm(h, gamma, beta, epsilon)
	a := r.Relu(normed, record.Into(normed)) // a > 0 exactly where normed was
	y := r.Add(r.Matmul(a, record.Dense(w2)), b2)
	e := r.Sub(y, t)
	count := n.batch * n.outputs
	squares := r.Mul(e, e)
	r.Scale(r.SumRows(squares.Reshape(record.Dims(count, 1)...)), record.Float(1/float32(count)), record.Into(loss))
	r.EndGroup()

	r.Group("backward")
	gy := r.Scale(e, record.Float(2/float32(count)))
	gw2 := r.MatmulTN(gy, a, to("w2", w2))
	gb2 := r.SumRows(gy, to("b2", b2))
	ga := r.MatmulNN(gy, w2)
	gn := r.Elementwise(reluGrad, []record.Tensor{a, ga}, nil, record.Into(ga))
	gh, ggamma, gbeta := r.LayerNormGrad(h, gamma, gn, epsilon, record.Into(gn), to("gamma", gamma), to("beta", beta))
	gw1 := r.MatmulTN(gh, x, to("w1", w1))
	gb1 := r.SumRows(gh, to("b1", b1))
	r.EndGroup()

	r.Group("update")
	for _, p := range [][2]record.Tensor{{w1, gw1}, {b1, gb1}, {gamma, ggamma}, {beta, gbeta}, {w2, gw2}, {b2, gb2}} {
		r.Elementwise(descend, p[:], []record.Scalar{rate}, record.Into(p[0]))
	}
	r.EndGroup()
	return r.Graph()
}
