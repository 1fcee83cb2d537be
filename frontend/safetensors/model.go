package safetensors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/files/regular"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/tokenizer"
)

// Model is an open folder.
type Model struct {
	Config decoder.Config

	folder  string
	whole   string            // the model type of text and pictures of which this is the language model
	called  map[string]string // what the folder then calls its tensors
	files   map[string]*File  // by their names
	tensors map[string]place
	all     *quantization
	apart   map[string]*quantization
	twice   []string          // tensors that are in the folder in two ways
	origin  map[string]string // of modules that are part of one in the folder: that one
	head    bool              // it is no copy of the embedding
	plusOne bool              // norms are stored without the 1 that is added to them
	typ     ir.DType          // of what is not quantized, and of scales
	spec    *tokenizer.Spec
	remarks []string
}

// place is a tensor and its file, which may have it among others: of `rows` rows it is every `step`-th from `first` on, if step
// is not 0. A tensor of several parts is these one behind another.
type place struct {
	Tensor
	file        *File
	rows        int64
	first, step int64
	parts       []place
}

// plain reports whether the tensor lies in its file in one piece.
func (p *place) plain() bool { return p.step == 0 && p.parts == nil }

// all returns the number of bytes of the elements.
func (p *place) all() int64 {
	n := int64(0)
	for i := range p.parts {
		n += p.parts[i].all()
	}
	if p.parts != nil {
		return n
	}
	if p.step == 0 {
		return p.Size
	}
	return p.Size / p.rows * ((p.rows - p.first + p.step - 1) / p.step)
}

// data returns n bytes of the elements from byte `at` on.
func (p *place) data(at, n int64) []byte {
	if p.plain() {
		return p.file.Data(p.Tensor)[at : at+n]
	}
	return p.add(make([]byte, 0, n), at, n)
}

// add is data that is appended to a slice.
func (p *place) add(out []byte, at, n int64) []byte {
	for i := range p.parts {
		part := &p.parts[i]
		size := part.all()
		if at < size && n > 0 {
			k := min(n, size-at)
			out, at, n = part.add(out, at, k), size, n-k
		}
		at -= size
	}
	if p.parts != nil {
		return out
	}
	in := p.file.Data(p.Tensor)
	if p.step == 0 {
		return append(out, in[at:at+n]...)
	}
	for row := p.Size / p.rows; n > 0; {
		k := min(n, row-at%row)
		from := (p.first+at/row*p.step)*row + at%row
		out, at, n = append(out, in[from:from+k]...), at+k, n-k
	}
	return out
}

// named names the contents among those of the folder.
func (p *place) named() string {
	if p.parts != nil {
		all := make([]string, len(p.parts))
		for i := range p.parts {
			all[i] = p.parts[i].named()
		}
		return "(" + strings.Join(all, ", ") + ")"
	}
	return fmt.Sprintf("%d bytes of %s at %d of %q, rows %d by %d of %d", p.Size, p.Type, p.Offset, p.file.Name, p.first, p.step, p.rows)
}

// Source is the front end for folders.
var Source = frontend.Source{
	Name: "safetensors", Holds: "folders of the model types " + strings.Join(Architectures(), ", "),
	Match: func(f *frontend.File) bool {
		if !f.Folder {
			return false
		}
		_, err := os.Stat(filepath.Join(f.Path, "config.json"))
		return err == nil
	},
	Open: func(f *frontend.File) (frontend.Model, error) { return Load(f.Path) },
}

// maxJSON bounds the JSON files of a folder, in bytes.
const maxJSON = 64 << 20

// Load opens the folder at path, and checks that the recorder understands config.json, every tensor and the tokenizer. Model.Close
// must be called.
func Load(path string) (*Model, error) {
	m := &Model{folder: path, files: map[string]*File{}, tensors: map[string]place{}, origin: map[string]string{}}
	if err := m.open(); err != nil {
		m.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Close unmaps the files. Modules that were recorded with [frontend.Options].External or Mapped refer to them.
func (m *Model) Close() error {
	var all error
	for _, f := range m.files {
		all = errors.Join(all, f.Close())
	}
	return all
}

// read reads a JSON file of the folder into v. A file that is not there is an error only if it is needed.
func (m *Model) read(name string, needed bool, v any) error {
	data, err := regular.Read(filepath.Join(m.folder, name), maxJSON)
	if errors.Is(err, fs.ErrNotExist) && !needed {
		return nil
	} else if err != nil {
		return err
	}
	if raw, ok := v.(*[]byte); ok {
		*raw = data
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// open checks config.json, tensors and the tokenizer, each as far as it can where another one has faults, and names all of them.
func (m *Model) open() error {
	s, err := m.readSettings()
	if err != nil {
		return err
	}
	var tensors, tokens []string
	c, sized, faults := s.config()
	m.Config, m.plusOne = c, s.plusOne()
	if m.all, m.apart, err = s.quantizations(); err != nil {
		faults, sized = append(faults, fmt.Sprintf("config.json: %v", err)), false
	}
	err = m.openFiles()
	if err == nil && m.whole != "" {
		err = m.takeText()
	}
	if err == nil && sized {
		if s.ModelType == "gpt_oss" {
			m.takeApart()
		}
		if err = m.rearrange(); err == nil {
			tensors = m.check(s.Tied != nil && *s.Tied)
		}
	}
	if err != nil {
		tensors = []string{err.Error()}
	}
	if m.spec, err = m.readTokenizer(s); err != nil {
		tokens = []string{err.Error()}
	}
	return frontend.Faults(faults, tensors, tokens)
}

// openFiles opens model.safetensors, or those that the index names.
func (m *Model) openFiles() error {
	names := []string{"model.safetensors"}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := m.read("model.safetensors.index.json", false, &index); err != nil {
		return err
	}
	if len(index.Map) > 0 {
		names = slices.Compact(slices.Sorted(maps.Values(index.Map)))
	} else if err := m.weightsOf(); err != nil {
		return err
	}
	for _, name := range names {
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			return fmt.Errorf("model.safetensors.index.json names the file %.60q, which is not in the folder", name)
		}
		f, err := Open(filepath.Join(m.folder, name))
		if err != nil {
			return err
		}
		m.files[name] = f
		for _, t := range f.Tensors {
			if in, ok := index.Map[t.Name]; len(index.Map) > 0 && (!ok || in != name) {
				return fmt.Errorf("tensor %s is in %s, the index says %q", t.Name, name, in)
			}
			if _, twice := m.tensors[t.Name]; twice {
				return fmt.Errorf("tensor %s is in two files", t.Name)
			}
			m.tensors[t.Name] = place{Tensor: t, file: f}
		}
	}
	for name, in := range index.Map {
		if _, ok := m.tensors[name]; !ok {
			return fmt.Errorf("tensor %s is not in %s, where the index has it", name, in)
		}
	}
	return nil
}

// modules are the names that a layer's tensors have here, by those that the recorder knows.
var modules = map[string]string{
	"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
	"attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
	"ffn_norm": "post_attention_layernorm", "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
	"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
	"ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.switch_mlp.gate_proj", "ffn_up_exps": "mlp.switch_mlp.up_proj", "ffn_down_exps": "mlp.switch_mlp.down_proj",
}

// otherModules are the names of some model types for what others call as above.
var otherModules = map[string]map[string]string{
	"gpt_oss": {
		"attn_sinks": "self_attn.sinks", "ffn_gate_inp": "mlp.router",
		"ffn_gate_exps": "mlp.experts.gate_proj", "ffn_up_exps": "mlp.experts.up_proj", "ffn_down_exps": "mlp.experts.down_proj",
	},
	"qwen2_moe": {
		"ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj", "ffn_down_shexp": "mlp.shared_expert.down_proj",
		"ffn_gate_inp_shexp": "mlp.shared_expert_gate",
	},
	"mixtral":          sparse("gate"),
	"granitemoe":       sparse("router.layer"),
	"granitemoeshared": sparse("router.layer"),
	"granitemoehybrid": sparse("router.layer"),
}

// sparse are the modules of a block of experts that is called block_sparse_moe, and its router as the argument says.
func sparse(router string) map[string]string {
	const at = "block_sparse_moe."
	return map[string]string{
		"ffn_gate_inp": at + router, "ffn_gate_exps": at + "switch_mlp.gate_proj", "ffn_up_exps": at + "switch_mlp.up_proj", "ffn_down_exps": at + "switch_mlp.down_proj",
		"ffn_gate_shexp": "shared_mlp.gate_proj", "ffn_up_shexp": "shared_mlp.up_proj", "ffn_down_shexp": "shared_mlp.output_linear",
	}
}

// wanted is a weight that the recorder binds.
type wanted struct {
	name   string // to the recorder, without .weight
	module string
	dims   []int64 // innermost first
}

// tensor is the name of its tensor; that of sinks is the module's.
func (w wanted) tensor() string {
	if strings.HasSuffix(w.module, ".sinks") {
		return w.module
	}
	return w.module + ".weight"
}

// wanted lists the weights of a model.
func (m *Model) wanted() []wanted {
	c := m.Config
	out := []wanted{
		{"token_embd", "model.embed_tokens", []int64{c.Embedding, c.Vocab}}, {"output_norm", "model.norm", []int64{c.Embedding}},
	}
	if m.head {
		out = append(out, wanted{"output", "lm_head", []int64{c.Embedding, c.Vocab}})
	}
	layer := c.LayerTensors()
	for i := range c.Layers {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			module := modules[name]
			if name == "ffn_norm" && c.PostNorms {
				module = "pre_feedforward_layernorm"
			}
			if other, ok := otherModules[c.Name][name]; ok {
				module = other
			}
			dims := layer[name]
			if name == "ffn_gate_inp_shexp" {
				dims = append(slices.Clone(dims), 1) // a matrix, which may be quantized
			}
			out = append(out, wanted{fmt.Sprintf("blk.%d.%s", i, name), fmt.Sprintf("model.layers.%d.%s", i, module), dims})
		}
	}
	return out
}

// check compares the tensors with those that the model must have and may have, returns all that do not fit, and finds the type of
// the activations.
func (m *Model) check(tied bool) []string {
	if most := int64(len(m.tensors)); m.Config.Layers > most {
		return []string{fmt.Sprintf("num_hidden_layers is %d, but the files have %d tensors", m.Config.Layers, most)}
	}
	rest := maps.Clone(m.tensors)
	take := func(name string) (place, bool) {
		t, ok := rest[name]
		delete(rest, name)
		return t, ok
	}
	_, m.head = m.tensors["lm_head.weight"]
	if tied { // a head that is there none the less is the embedding again
		m.head = false
		for _, part := range []string{".weight", ".scales", ".biases"} {
			delete(rest, "lm_head"+part)
		}
	}
	var missing []string
	fault := func(format string, args ...any) { missing = append(missing, fmt.Sprintf(format, args...)) }
	for _, w := range m.wanted() {
		t, ok := take(w.tensor())
		if !ok {
			fault("tensor %s is missing", w.tensor())
			continue
		}
		shape := slices.Clone(w.dims)
		slices.Reverse(shape)
		if bias, ok := take(w.module + ".bias"); ok && (len(shape) < 2 || !slices.Equal(bias.Shape, shape[:len(shape)-1]) || !bias.Type.Float()) {
			fault("tensor %s.bias is %s%v, want floats %v", w.module, bias.Type, bias.Shape, shape[:len(shape)-1])
		}
		q := m.quantized(w.module)
		if len(w.dims) == 1 || t.Type != ir.U32 || q == nil {
			if !slices.Equal(t.Shape, shape) || !t.Type.Float() {
				fault("tensor %s is %s%v, want floats %v", w.tensor(), t.Type, t.Shape, shape)
			}
			continue
		}
		k, rows := w.dims[0], shape[:len(shape)-1]
		scales, _ := take(w.module + ".scales")
		if q.Mode == mxfp4 {
			if err := m.checkFloats(t, scales, shape); err != nil {
				fault("tensor %s: %v", w.tensor(), err)
			}
			continue
		}
		biases, _ := take(w.module + ".biases")
		groups := append(slices.Clone(rows), k/q.Group)
		if k%q.Group != 0 || !slices.Equal(t.Shape, append(slices.Clone(rows), k*q.Bits/32)) || !slices.Equal(scales.Shape, groups) || !slices.Equal(biases.Shape, groups) ||
			!scales.Type.Float() || biases.Type != scales.Type {
			fault("tensor %s is %v with scales %v and biases %v, want %v in %d bits and groups of %d", w.module, t.Shape, scales.Shape, biases.Shape, shape, q.Bits, q.Group)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		if !strings.HasSuffix(name, ".rotary_emb.inv_freq") { // older files store what follows from rope_theta
			fault("tensor %s is not part of a model that is supported", frontend.Name(cmp.Or(m.called[name], name)))
		}
	}
	m.typ = m.tensors["model.norm.weight"].Type
	return missing
}

// quantized returns how a module is quantized; nil: it is not.
func (m *Model) quantized(module string) *quantization {
	module = cmp.Or(m.origin[module], module)
	if q, ok := m.apart[module]; ok {
		return q
	}
	if q, ok := m.apart[allExperts]; ok && strings.Contains(module, ".mlp.experts.") {
		return q
	}
	return m.all
}

// Type is that of activations unless options say otherwise: the type of the folder's norms.
func (m *Model) Type() ir.DType { return m.typ }

// Tokenizer implements [frontend.Model].
func (m *Model) Tokenizer() (*tokenizer.Spec, error) { return m.spec, nil }

// Context implements [frontend.Model].
func (m *Model) Context() int64 { return m.Config.Context }

// Remarks implements [frontend.Model].
func (m *Model) Remarks() []string { return m.remarks }

// Record returns the module of [decoder.Decoder.Module], with the tokenizer; activations are of the type of the folder's
// norms unless the options say otherwise. If ctx is cancelled, it returns its error.
func (m *Model) Record(ctx context.Context, o frontend.Options) (_ *ir.Module, err error) {
	defer mmap.Catch(&err)() // it reads the files
	if o.Type == ir.Invalid {
		o.Type = m.typ
	}
	if err := m.Config.Fill(&o); err != nil {
		return nil, err
	}
	weights, d := map[string]decoder.Weight{}, frontend.NewDigests(o)
	all := m.wanted()
	for i, w := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.bind(weights, w, o, d)
		d.Ready(float64(i+1) / float64(len(all)))
	}
	if err := d.Compute(ctx); err != nil {
		return nil, err
	}
	out, err := decoder.New(m.Config, weights, o).Module()
	if err != nil {
		return nil, err
	}
	return out, frontend.Describe(out, m.spec, frontend.Usual(out))
}

// bind adds a weight, and the bias that may belong to it.
func (m *Model) bind(to map[string]decoder.Weight, w wanted, o frontend.Options, d *frontend.Digests) {
	t := m.tensors[w.tensor()]
	x := decoder.Weight{Name: w.name + ".weight", K: w.dims[0], Type: o.Type}
	if len(w.dims) > 1 {
		x.N = w.dims[1]
	}
	if len(w.dims) > 2 {
		x.Experts = w.dims[2]
	}
	if q := m.quantized(w.module); t.Type == ir.U32 && q != nil && q.Mode == mxfp4 {
		scales := m.tensors[w.module+".scales"]
		x.Format, x.Blob = record.MXFP4, blocks(&t, &scales, d)
	} else if t.Type == ir.U32 && q != nil {
		x.Bits, x.Group = q.Bits, q.Group
		x.Codes = m.contents(t, o, d)
		x.Scales, x.Biases = m.floats(m.tensors[w.module+".scales"], o, d), m.floats(m.tensors[w.module+".biases"], o, d)
	} else if m.plusOne && x.N == 0 {
		v := record.Numbers(t.Type, t.data(0, t.all()))
		for i := range v {
			v[i]++
		}
		x.Blob = ir.NewBlob(record.Elements(o.Type, v))
	} else {
		x.Blob = m.floats(t, o, d)
	}
	to[x.Name] = x
	if bias, ok := m.tensors[w.module+".bias"]; ok {
		name := w.name + ".bias"
		v := decoder.Weight{Name: name, K: w.dims[1], Type: o.Type, Blob: m.floats(bias, o, d)}
		if len(w.dims) > 2 {
			v.N = w.dims[2] // a row for each expert
		}
		to[name] = v
	}
}

// contents returns a tensor as it lies in its file.
func (m *Model) contents(t place, o frontend.Options, d *frontend.Digests) *ir.Blob {
	if !t.plain() {
		return d.Made(t.named(), t.all(), func(dst []byte, at int64) { t.add(dst[:0], at, int64(len(dst))) })
	}
	data := t.data(0, t.all())
	switch {
	case o.External != "":
		path := filepath.Join(o.External, filepath.Base(t.file.Name))
		return d.External(filepath.ToSlash(path), t.Offset, data)
	case o.Mapped:
		return d.Mapped(t.file.Name, t.Offset, data)
	}
	return ir.NewBlob(slices.Clone(data))
}

// floats returns a tensor of floats in the type of the activations: as it lies in its file, or converted.
func (m *Model) floats(t place, o frontend.Options, d *frontend.Digests) *ir.Blob {
	if t.Type == o.Type {
		return m.contents(t, o, d)
	}
	return d.Converted(t.named(), t.all()/t.Type.Size(), o.Type, t.Type, t.data)
}
