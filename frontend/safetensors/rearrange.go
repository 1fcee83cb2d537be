package safetensors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// stacks are the modules that hold one matrix of one expert each, as Hugging Face has them, with those that hold that matrix of
// all experts, as MLX has them.
var stacks = []struct{ before, after, to string }{
	{".block_sparse_moe.experts.", "w1", ".block_sparse_moe.switch_mlp.gate_proj"},
	{".block_sparse_moe.experts.", "w2", ".block_sparse_moe.switch_mlp.down_proj"},
	{".block_sparse_moe.experts.", "w3", ".block_sparse_moe.switch_mlp.up_proj"},
	{".mlp.experts.", "gate_proj", ".mlp.switch_mlp.gate_proj"},
	{".mlp.experts.", "down_proj", ".mlp.switch_mlp.down_proj"},
	{".mlp.experts.", "up_proj", ".mlp.switch_mlp.up_proj"},
}

// rearrange gives tensors that hold several matrices of a layer, or one of several experts, the names and shapes that the
// recorder binds. A tensor of an unexpected shape stays as it is, and check reports it. A folder that has a matrix both by itself
// and within another tensor is an error.
func (m *Model) rearrange() error {
	c := m.Config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	for _, name := range slices.Sorted(maps.Keys(m.tensors)) {
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			continue
		}
		module, part := name[:dot], name[dot:]
		layer, rest, ok := cutLayer(module)
		if !ok {
			continue
		}
		in := func(names ...string) []string {
			for i := range names {
				names[i] = layer + names[i]
			}
			return names
		}
		switch phi, granite := c.Name == "phi3", strings.HasPrefix(c.Name, "granitemoe"); {
		case phi && rest == "self_attn.qkv_proj":
			m.cut(module, part, in("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), []int64{q, kv, kv})
		case phi && rest == "mlp.gate_up_proj":
			m.cut(module, part, in("mlp.gate_proj", "mlp.up_proj"), []int64{c.FFN, c.FFN})
		case granite && rest == "block_sparse_moe.input_linear":
			m.halve(module, part, in("block_sparse_moe.switch_mlp.gate_proj", "block_sparse_moe.switch_mlp.up_proj"))
		case granite && rest == "block_sparse_moe.output_linear":
			m.rename(module, part, layer+"block_sparse_moe.switch_mlp.down_proj")
		case granite && rest == "shared_mlp.input_linear" && c.Experts > 0:
			m.cut(module, part, in("shared_mlp.gate_proj", "shared_mlp.up_proj"), []int64{c.SharedFFN, c.SharedFFN})
		case granite && rest == "shared_mlp.input_linear":
			m.cut(module, part, in("mlp.gate_proj", "mlp.up_proj"), []int64{c.FFN, c.FFN})
		case granite && rest == "shared_mlp.output_linear" && c.Experts == 0:
			m.rename(module, part, layer+"mlp.down_proj")
		}
	}
	if c.Experts > 0 {
		m.stack()
	}
	if len(m.twice) > 0 {
		return fmt.Errorf("tensors %s are there both by themselves and as a part of others", strings.Join(m.twice, ", "))
	}
	return nil
}

// cutLayer divides the name of a module of a layer behind that of the layer and its dot.
func cutLayer(module string) (layer, rest string, ok bool) {
	const before = "model.layers."
	after, ok := strings.CutPrefix(module, before)
	number, rest, dot := strings.Cut(after, ".")
	return before + number + ".", rest, ok && dot
}

// rename makes a tensor of module `from` one of module `to`.
func (m *Model) rename(from, part, to string) {
	t := m.tensors[from+part]
	delete(m.tensors, from+part)
	m.move(from, part, to, t)
}

// move enters a tensor of module `to`, which the folder has in module `from`, by whose name its quantization is looked up.
func (m *Model) move(from, part, to string, t place) {
	t.Name = to + part
	if _, ok := m.tensors[t.Name]; ok {
		m.twice = append(m.twice, t.Name)
	}
	m.tensors[t.Name], m.origin[to] = t, from
}

// cut divides the rows of a tensor among several modules: the first gets the first rows[0], and so on.
func (m *Model) cut(from, part string, to []string, rows []int64) {
	t := m.tensors[from+part]
	if len(t.Shape) == 0 {
		return
	}
	all := int64(0)
	for _, n := range rows {
		if n < 1 || n > t.Shape[0] { // so that the sum is no more than a few times as much
			return
		}
		all += n
	}
	if t.Shape[0] != all {
		return
	}
	delete(m.tensors, from+part)
	row := t.Size / all
	for i, n := range rows {
		p := t
		p.Shape = slices.Clone(t.Shape)
		p.Shape[0], p.Size = n, n*row
		t.Offset += p.Size
		m.move(from, part, to[i], p)
	}
}

// halve divides a tensor between two modules: of each expert, the first half of its rows is the first one's.
func (m *Model) halve(from, part string, to []string) {
	t := m.tensors[from+part]
	if len(t.Shape) < 2 || t.Shape[1]%2 != 0 {
		return
	}
	delete(m.tensors, from+part)
	t.Shape = slices.Clone(t.Shape)
	t.Shape[1] /= 2
	t.rows, t.step = 2*t.Shape[0], 2
	for i, name := range to {
		t.first = int64(i)
		m.move(from, part, name, t)
	}
}

// stack joins the tensors of single experts, where all of them are there and alike, to one tensor of all experts.
func (m *Model) stack() {
	type end struct{ layer, to, part string }
	type expert struct {
		number int64
		place
	}
	of := map[end][]expert{}
	for name, t := range m.tensors {
		for _, s := range stacks {
			layer, rest, ok := strings.Cut(name, s.before)
			if !ok {
				continue
			}
			number, rest, _ := strings.Cut(rest, ".")
			part, ok := strings.CutPrefix(rest, s.after+".")
			i, err := strconv.ParseInt(number, 10, 32)
			if !ok || err != nil || i < 0 || i >= m.Config.Experts || number != fmt.Sprint(i) {
				continue
			}
			to := end{layer, s.to, "." + part}
			of[to] = append(of[to], expert{i, t})
		}
	}
	for _, to := range slices.SortedFunc(maps.Keys(of), func(a, b end) int { return strings.Compare(a.layer+a.to+a.part, b.layer+b.to+b.part) }) {
		experts := of[to]
		slices.SortFunc(experts, func(a, b expert) int { return cmp.Compare(a.number, b.number) })
		first := experts[0].place
		if int64(len(experts)) != m.Config.Experts || // their numbers are different and below it
			slices.ContainsFunc(experts, func(t expert) bool { return t.Type != first.Type || !slices.Equal(t.Shape, first.Shape) }) {
			continue
		}
		all := place{Tensor: first.Tensor, file: first.file}
		for _, t := range experts {
			all.parts = append(all.parts, t.place)
			delete(m.tensors, t.Name)
		}
		all.Shape = append([]int64{m.Config.Experts}, first.Shape...)
		all.Size *= m.Config.Experts
		module, _ := strings.CutSuffix(first.Name, to.part)
		m.move(module, to.part, to.layer+to.to, all)
	}
}
