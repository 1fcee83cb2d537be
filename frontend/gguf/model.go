package gguf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/tokenizer"
)

// Model is an open GGUF file of a supported model.
type Model struct {
	Config decoder.Config
	File   *ggufio.File

	architecture *architecture
	fused        fused
	spec         *tokenizer.Spec
	remarks      []string
}

// Source is the front end for GGUF files.
var Source = frontend.Source{
	Name: "GGUF", Holds: "architectures " + strings.Join(Architectures(), ", "),
	Match: func(f *frontend.File) bool { return f.Begins("GGUF") },
	Open: func(f *frontend.File) (frontend.Model, error) {
		if f.Path != "" {
			return Load(f.Path)
		}
		data, err := f.Read()
		if err != nil {
			return nil, err
		}
		return Read(f.Name, data)
	},
}

// Load opens the model at path, and checks that the recorder understands every key and tensor
// in it, and the tokenizer. Model.Close must be called.
func Load(path string) (*Model, error) {
	f, err := ggufio.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := open(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Read is Load for a file that is in memory already, such as one that came through a
// pipe. data is kept and must not change. name is for errors.
func Read(name string, data []byte) (*Model, error) {
	f, err := ggufio.Parse(name, data)
	if err != nil {
		return nil, err
	}
	m, err := open(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// open checks keys, tensors and the tokenizer, each as far as it can where another one has faults, and names all of them.
func open(f *ggufio.File) (*Model, error) {
	if err := whole(f); err != nil {
		return nil, err
	}
	read := readConfig(f)
	spec, remarks, tokens := readTokenizer(f)
	m := &Model{Config: read.config, File: f, architecture: read.arch, spec: spec, remarks: slices.Concat(read.remarks, remarks)}
	var tensors []string
	if !read.sized {
		tensors = unsupported(f.Tensors)
	} else {
		m.fused.up = read.arch.fusedUp
		_, m.fused.qkv = f.Tensor("blk.0." + fusedQKV + ".weight")
		tensors = m.check()
	}
	if err := frontend.Faults(read.faults, tensors, tokens); err != nil {
		return nil, err
	}
	return m, m.readFactors()
}

// whole returns an error for a file that is a part of a model.
func whole(f *ggufio.File) error {
	const key, number = "split.count", "split.no"
	if !f.KV.Has(key) {
		return nil
	}
	parts, err := f.KV.Uint16(key)
	if err != nil || parts <= 1 {
		return err
	}
	this, err := f.KV.Uint16(number) // from 0
	if err != nil {
		return err
	}
	return fmt.Errorf("it is part %d of %d of a model (keys %s and %s): join them first, with llama-gguf-split --merge FIRST-PART OUTPUT, which is a tool of llama.cpp's", int(this)+1, parts, number, key)
}

// Tensors of the numbers by which rope's frequencies are divided, one for each pair: in any context, in one of more positions
// than the model was trained for, and in another one.
const ropeFactors, longFactors, shortFactors = "rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"

// readFactors multiplies periods of rope by what such tensors have.
func (m *Model) readFactors() error {
	read := func(name string) []float32 {
		t, ok := m.File.Tensor(name)
		if !ok {
			return nil
		}
		factors := record.Numbers(ir.F32, m.File.Data(t))
		for i, f := range factors {
			factors[i] = float32(m.Config.Period(int64(i)) * float64(f))
		}
		return factors
	}
	both, long, short := read(ropeFactors), read(longFactors), read(shortFactors)
	switch {
	case both != nil:
		m.Config.RopePeriods = both
	case (long == nil) != (short == nil):
		return fmt.Errorf("of the tensors %s and %s one is missing", longFactors, shortFactors)
	case long != nil:
		m.Config.RopePeriods, m.Config.LongPeriods = short, long
	}
	return nil
}

// Tokenizer implements [frontend.Model].
func (m *Model) Tokenizer() (*tokenizer.Spec, error) { return m.spec, nil }

// Context implements [frontend.Model].
func (m *Model) Context() int64 { return m.Config.Context }

// Remarks implements [frontend.Model].
func (m *Model) Remarks() []string { return m.remarks }

// Close unmaps the file. Modules that were recorded with [frontend.Options].External or Mapped refer to the
// file.
func (m *Model) Close() error { return m.File.Close() }

// check compares the tensors of the file with those that the model must have and may have, and returns all that do not fit.
func (m *Model) check() []string {
	embd, ok := m.File.Tensor("token_embd.weight")
	if !ok || len(embd.Dims) != 2 || int64(embd.Dims[0]) != m.Config.Embedding {
		return append([]string{fmt.Sprintf("tensor token_embd.weight is missing or not [%d, vocabulary]", m.Config.Embedding)}, unsupported(m.File.Tensors)...)
	}
	m.Config.Vocab = int64(embd.Dims[1])
	c := m.Config
	if most := int64(len(m.File.Tensors)); c.Layers > most {
		return append([]string{fmt.Sprintf("key %s.block_count is %d, but the file has %d tensors", m.architecture.name, c.Layers, most)}, unsupported(m.File.Tensors)...)
	}
	want := map[string][]int64{"token_embd.weight": {c.Embedding, c.Vocab}, "output_norm.weight": {c.Embedding}}
	may := map[string][]int64{"output.weight": {c.Embedding, c.Vocab}}
	for _, name := range m.architecture.ropeFactors {
		may[name] = []int64{c.Turned() / 2}
	}
	for i := range c.Layers {
		layer := c.LayerTensors()
		m.fused.tensors(c, layer)
		if other := m.architecture.ffnNorm; other != "" {
			layer[other] = layer["ffn_norm"]
			delete(layer, "ffn_norm")
		}
		for name, dims := range layer {
			want[fmt.Sprintf("blk.%d.%s.weight", i, name)] = dims
			if len(dims) > 1 { // that of experts is one for each
				may[fmt.Sprintf("blk.%d.%s.bias", i, name)] = dims[1:]
			}
		}
	}
	var missing []string
	var fitting []ggufio.Tensor
	others := false
	for _, t := range m.File.Tensors {
		dims, ok := want[t.Name]
		if !ok {
			dims, ok = may[t.Name]
		}
		if !ok {
			others = true
			missing = append(missing, fmt.Sprintf("tensor %s is not part of a model of %s that is supported", frontend.Name(t.Name), m.architecture.name))
			continue
		}
		delete(want, t.Name)
		got := make([]int64, len(t.Dims))
		for i, d := range t.Dims {
			got[i] = int64(d)
		}
		if !slices.Equal(got, dims) {
			missing = append(missing, fmt.Sprintf("tensor %s has the dimensions %v, the metadata asks for %v", t.Name, got, dims))
			continue
		}
		fitting = append(fitting, t)
	}
	missing = append(unsupported(fitting), missing...)
	if !others { // else something that is not supported may stand in their place
		for _, name := range slices.Sorted(maps.Keys(want)) {
			missing = append(missing, fmt.Sprintf("tensor %s is missing", name))
		}
	}
	return missing
}

// unsupported says which types of tensors are not supported, each once.
func unsupported(tensors []ggufio.Tensor) []string {
	type kind struct {
		of     ggufio.Type
		vector bool
	}
	first, count := []ggufio.Tensor{}, map[kind]int{}
	for _, t := range tensors {
		k := kind{t.Type, len(t.Dims) == 1}
		_, blocks := record.GGMLFormatNamed(t.Type.String())
		if t.Type == ggufio.F32 || !k.vector && (t.Type == ggufio.F16 || t.Type == ggufio.BF16 || blocks) {
			continue
		}
		if count[k]++; count[k] == 1 {
			first = append(first, t)
		}
	}
	var out []string
	for _, t := range first {
		name, k := "tensor "+frontend.Name(t.Name), kind{t.Type, len(t.Dims) == 1}
		if n := count[k]; n > 1 {
			name = fmt.Sprintf("%s and %d more", name, n-1)
		}
		if k.vector {
			out = append(out, fmt.Sprintf("%s: type %s is not supported for a vector, only F32 is", name, t.Type))
		} else {
			out = append(out, fmt.Sprintf("%s: type %s is not supported (F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL and MXFP4 are)", name, t.Type))
		}
	}
	return out
}

// numbers are the types of unquantized tensors.
var numbers = map[ggufio.Type]ir.DType{ggufio.F32: ir.F32, ggufio.F16: ir.F16, ggufio.BF16: ir.BF16}

// dense returns the type and contents of an unquantized tensor: of the type of activations, or f16 beside f32, as they are
// in the file, which is a reference into it if the options give its path, and a copy otherwise. Others are converted.
func (m *Model) dense(t ggufio.Tensor, o frontend.Options, d *frontend.Digests) (ir.DType, *ir.Blob) {
	have := numbers[t.Type]
	if have == o.Type || have == ir.F16 && o.Type == ir.F32 {
		return have, m.contents(t, o, d)
	}
	data := m.File.Data(t)
	return o.Type, d.Converted(named(t), int64(len(data))/have.Size(), o.Type, have, func(at, n int64) []byte { return data[at : at+n] })
}

// contents returns the contents of a tensor that is not repacked: a reference into the file if the options say where
// that is, the bytes of the open file if they may be used, and a copy otherwise.
func (m *Model) contents(t ggufio.Tensor, o frontend.Options, d *frontend.Digests) *ir.Blob {
	data := m.File.Data(t)
	switch {
	case o.External != "":
		return d.External(o.External, int64(t.Offset), data)
	case o.Mapped:
		return d.Mapped("", int64(t.Offset), data)
	}
	return ir.NewBlob(append([]byte(nil), data...))
}
