package decoder

import (
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
		return l.GatherMatmul(x, l.matrix(at+name+".weight"), ids, record.Label(name))
	}
	scores := project(h, "ffn_gate_inp")
	if l.AllShares {
		scores = l.Softmax(scores, record.Label("ffn_shares"))
	}
	ids, share := l.TopK(scores, l.UsedExperts, record.Label("ffn_experts"))
	if !l.AllShares {
		share = l.Softmax(share, record.Label("ffn_shares"))
	}
	act := l.Mul(l.Silu(by(h, "ffn_gate_exps", ids), record.Label("ffn_silu")), by(h, "ffn_up_exps", ids), record.Label("ffn_mul"))
	y := l.WeightedSum(by(act, "ffn_down_exps", ids), share, record.Label("ffn_sum"))
	if l.SharedFFN == 0 {
		return y
	}
	act = l.Mul(l.Silu(project(h, "ffn_gate_shexp"), record.Label("ffn_shared_silu")), project(h, "ffn_up_shexp"), record.Label("ffn_shared_mul"))
	shared := project(act, "ffn_down_shexp")
	if l.SharedGate {
		w := l.vector(at + "ffn_gate_inp_shexp.weight").Reshape(Dims(1, l.Config.Embedding)...)
		gate := l.Sigmoid(l.Matmul(h, record.Dense(w), record.Label("ffn_shared_gate")), record.Label("ffn_shared_share"))
		shared = l.WeightedSum(shared.Reshape(rows, ir.Const(1), ir.Const(l.Config.Embedding)), gate, record.Label("ffn_shared_scale"))
	}
	return l.Add(y, shared, record.Label("ffn_shared"))
}
