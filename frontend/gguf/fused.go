package gguf

import (
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
)

// Some files have matrices of one layer one behind another in one tensor: that of queries, keys and values, and in some
// architectures those of gate and up. Their rows are bound as the matrices that they are.

const fusedQKV = "attn_qkv"

// fused says which tensors of a file hold several matrices: those of queries, keys and values, those of gate and up.
type fused struct{ qkv, up bool }

// tensors puts such tensors in the place of those of a layer that they hold.
func (f fused) tensors(c decoder.Config, t map[string][]int64) {
	if f.qkv {
		t[fusedQKV] = []int64{c.Embedding, (c.Heads + 2*c.KVHeads) * c.HeadDim}
		for _, name := range []string{"attn_q", "attn_k", "attn_v"} {
			delete(t, name)
		}
	}
	if f.up {
		t["ffn_up"] = []int64{c.Embedding, 2 * c.FFN}
		delete(t, "ffn_gate")
	}
}

// parts returns the tensors that a tensor of the file holds, by the names that they have where each is one.
func (f fused) parts(c decoder.Config, t ggufio.Tensor) []ggufio.Tensor {
	words := strings.Split(t.Name, ".") // blk.0.ffn_up.weight
	if len(words) != 4 {
		return []ggufio.Tensor{t}
	}
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	switch name := words[2]; {
	case f.qkv && name == fusedQKV:
		return rowsOf(t, words, []string{"attn_q", "attn_k", "attn_v"}, []int64{q, kv, kv})
	case f.up && name == "ffn_up":
		return rowsOf(t, words, []string{"ffn_gate", "ffn_up"}, []int64{c.FFN, c.FFN})
	}
	return []ggufio.Tensor{t}
}

// rowsOf cuts a tensor, whose name has these words, into parts of so many rows, or elements of a vector.
func rowsOf(t ggufio.Tensor, words, names []string, rows []int64) []ggufio.Tensor {
	last := len(t.Dims) - 1
	row := t.Size / int64(t.Dims[last])
	var out []ggufio.Tensor
	for i, name := range names {
		p := t
		p.Name = strings.Join([]string{words[0], words[1], name, words[3]}, ".")
		p.Dims = slices.Clone(t.Dims)
		p.Dims[last] = uint64(rows[i])
		p.Size = row * rows[i]
		t.Offset += p.Size
		out = append(out, p)
	}
	return out
}
