package decoder

import (
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// expertTensors adds the tensors of a mixture of experts to those of a layer, in place of one that is dense.
func (c Config) expertTensors(t map[string][]int64) {
	e := c.Embedding
	delete(t, "ffn_gate")
	delete(t, "ffn_up")
	delete(t, "ffn_down")
	t["ffn_gate_inp"] = []int64{e, c.Experts}
	t["ffn_gate_exps"] = []int64{e, c.ExpertFFN, c.Experts}
	t["ffn_up_exps"] = []int64{e, c.ExpertFFN, c.Experts}
	t["ffn_down_exps"] = []int64{c.ExpertFFN, e, c.Experts}
	if c.SharedFFN > 0 {
		t["ffn_gate_shexp"], t["ffn_up_shexp"], t["ffn_down_shexp"] = []int64{e, c.SharedFFN}, []int64{e, c.SharedFFN}, []int64{c.SharedFFN, e}
	}
	if c.SharedGate {
		t["ffn_gate_inp_shexp"] = []int64{e}
	}
}

// experts records what a mixture computes of h [rows, width]: a router chooses experts for each row, whose results are
// added by their shares; a shared expert, if there is one, takes every row.
func (l *recording) experts(h record.Tensor, rows ir.Affine, at string, project func(record.Tensor, string) record.Tensor) record.Tensor {
	by := func(x record.Tensor, name string, ids record.Tensor) record.Tensor {
		y := l.GatherMatmul(x, l.matrix(at+name+".weight"), ids, record.Label(name))
		if bias := at + name + ".bias"; l.has(bias) {
			rows := l.embed(ids, l.matrix(bias), record.Label(name+".bias"))
			y = l.Add(y, rows.Reshape(y.Shape...), record.Label(name+".biased"))
		}
		return y
	}
	scores := project(h, "ffn_gate_inp")
	if l.AllShares {
		scores = l.Softmax(scores, record.Label("ffn_shares"))
	}
	ids, share := l.TopK(scores, l.UsedExperts, record.Label("ffn_experts"))
	if !l.AllShares {
		share = l.Softmax(share, record.Label("ffn_shares"))
	}
	var act record.Tensor
	if gate, up := by(h, "ffn_gate_exps", ids), by(h, "ffn_up_exps", ids); l.ClampedGates {
		act = l.clampedGates(gate, up)
	} else {
		act = l.Mul(l.Silu(gate, record.Label("ffn_silu")), up, record.Label("ffn_mul"))
	}
	y := l.WeightedSum(by(act, "ffn_down_exps", ids), share, record.Label("ffn_sum"))
	if l.SharedFFN == 0 {
		return y
	}
	act = l.Mul(l.Silu(project(h, "ffn_gate_shexp"), record.Label("ffn_shared_silu")), project(h, "ffn_up_shexp"), record.Label("ffn_shared_mul"))
	shared := project(act, "ffn_down_shexp")
	if l.SharedGate {
		name := at + "ffn_gate_inp_shexp.weight"
		var w record.Matrix // of one row, which files have as a vector too
		if l.weights[name].N == 0 {
			w = record.Dense(l.vector(name).Reshape(Dims(1, l.Config.Embedding)...))
		} else {
			w = l.matrix(name)
		}
		gate := l.Sigmoid(l.Matmul(h, w, record.Label("ffn_shared_gate")), record.Label("ffn_shared_share"))
		shared = l.WeightedSum(shared.Reshape(rows, ir.Const(1), ir.Const(l.Config.Embedding)), gate, record.Label("ffn_shared_scale"))
	}
	return l.Add(y, shared, record.Label("ffn_shared"))
}

// clampedGates is gate · sigmoid(1.702 · gate) · (up + 1), gate being at most 7 and up within ±7.
func (l *recording) clampedGates(gate, up record.Tensor) record.Tensor {
	suffix := ""
	if t := l.options.Type; t != ir.F32 {
		suffix = "_" + t.String()
	}
	text := strings.NewReplacer("gate", "in0"+suffix, "up", "in1"+suffix, "T", l.options.Type.String()).Replace(
		"v0[i] = min(gate[i], s0); out0[i] = round(T, v0[i] / (1.0 + exp(-(v0[i] * s1))) * (1.0 + max(min(up[i], s0), s2)))")
	return l.Elementwise(text, []record.Tensor{gate, up}, []record.Scalar{record.Float(7), record.Float(1.702), record.Float(-7)}, record.Label("ffn_gated"))
}
