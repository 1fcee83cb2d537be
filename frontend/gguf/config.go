package gguf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
)

// architecture is a value of the key general.architecture. Everything about one stands in a file of its own; a new one
// also takes a row of the table below, and a model in testdata/gen/architectures.py.
type architecture struct {
	name    string
	experts bool   // its layers may have experts
	ffnNorm string // its name of the norm before the feed-forward layer, if that is not ffn_norm
	fusedUp bool   // one tensor has the matrices of gate and up
	// ropeFactors are tensors that may have factors of rope's frequencies.
	ropeFactors []string
	wholeRope   bool // rope turns whole heads
	// keys are those that only it has, behind "NAME."; others are those that llama.cpp reads of it and not of every
	// architecture, and that are not supported.
	keys, others []string
	// config sets what its models compute, with its keys.
	config func(k keys, c *decoder.Config) error
}

var architectures = []*architecture{&gemma2, &gemma3, &gptOSS, &granite, &granitemoe, &llama, &phi3, &qwen2, &qwen2moe, &qwen3, &qwen3moe, &smollm3}

// Architectures returns the names of the architectures that can be recorded, as general.architecture has them.
func Architectures() []string {
	var names []string
	for _, a := range architectures {
		names = append(names, a.name)
	}
	return names
}

// keys reads the keys of an architecture.
type keys struct {
	kv *ggufio.KV
	of string
}

func (k keys) name(key string) string { return k.of + "." + key }

// count reads a number of something, which has to be there.
func (k keys) count(key string, to *int64) error {
	v, err := k.kv.Uint32(k.name(key))
	if err != nil {
		return err
	}
	if v == 0 || v > 1<<20 {
		return fmt.Errorf("key %s is %d, outside [1, %d]", k.name(key), v, 1<<20)
	}
	*to = int64(v)
	return nil
}

// optional reads a number that may be missing.
func (k keys) optional(key string, to *int64) error {
	if !k.kv.Has(k.name(key)) {
		return nil
	}
	v, err := k.kv.Uint32(k.name(key))
	*to = int64(v)
	return err
}

// window reads the window of attention, and which layers have it: by the key of a pattern, or every n-th layer, counted
// from 1, has none (0: all have one). Without a key the window is `otherwise`; 0: there is none.
func (k keys) window(c *decoder.Config, otherwise, nth int64) error {
	c.Window = otherwise
	if err := k.optional("attention.sliding_window", &c.Window); err != nil {
		return err
	}
	if c.Window > math.MaxInt32 {
		return fmt.Errorf("key %s is %d", k.name("attention.sliding_window"), c.Window)
	}
	key := k.name("attention.sliding_window_pattern")
	if list, err := k.kv.Bools(key); err == nil {
		if int64(len(list)) < c.Layers {
			return fmt.Errorf("key %s has %d layers of %d", key, len(list), c.Layers)
		}
		c.Windowed = list[:c.Layers]
		return nil
	}
	if err := k.optional("attention.sliding_window_pattern", &nth); err != nil {
		return err
	}
	c.Windowed = decoder.EveryNth(c.Layers, nth)
	return nil
}

// factor reads a finite number, which stays what it is if the key is missing.
func (k keys) factor(key string, to *float32) error {
	if !k.kv.Has(k.name(key)) {
		return nil
	}
	v, err := k.kv.Float32(k.name(key))
	if err == nil && (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)) {
		err = fmt.Errorf("key %s is %v", k.name(key), v)
	}
	*to = v
	return err
}

// known lists the keys of all architectures that the recorder uses, or that do not change what it computes.
var known = []string{
	"block_count", "embedding_length", "feed_forward_length", "context_length",
	"attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
	"attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.dimension_count",
	"rope.scaling.type", "rope.scaling.factor", "rope.scale_linear", "rope.scaling.finetuned",
	"rope.scaling.original_context_length", "rope.scaling.attn_factor", "expert_count", "expert_used_count", "vocab_size",
	"tensor_data_layout",
}

// elsewhere are the keys that llama.cpp reads of every architecture and the recorder does not. Each may be there with a value
// that changes nothing.
var elsewhere = []string{
	"attention.causal", "attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa", "rope.scaling.alpha",
	"embedding_length_out", "nextn_predict_layers", "expert_group_count", "expert_group_used_count",
	"pooling_type", "classifier.pooling_type", "classifier.output_labels",
}

// metadata is what the keys of a file say.
type metadata struct {
	config  decoder.Config
	arch    *architecture // nil: it is not supported
	sized   bool          // enough was read to say which tensors the model must have
	faults  []string      // all that is not supported or wrong
	remarks []string
}

func (m *metadata) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// failed notes an error, and reports whether there is one.
func (m *metadata) failed(err error) bool {
	if err != nil {
		m.fault("%s", plain(err))
	}
	return err != nil
}

// readConfig reads and checks the metadata of a model, as far as it can where something is wrong.
func readConfig(f *ggufio.File) (m metadata) {
	name, err := f.KV.String("general.architecture")
	if m.failed(err) {
		return m
	}
	i := slices.IndexFunc(architectures, func(a *architecture) bool { return a.name == name })
	if i < 0 {
		m.fault("architecture %.40q is not supported (%s are)", name, strings.Join(Architectures(), ", "))
		return m
	}
	m.arch = architectures[i]
	k, c := keys{f.KV, name}, &m.config
	m.ignored(k)
	c.Name = name
	if f.KV.Has("general.name") {
		c.Name, err = f.KV.String("general.name")
		m.failed(err)
	}
	if m.sized = m.sizes(k); !m.sized {
		return m
	}
	m.failed(decoder.HeadSize(c.HeadDim))
	m.rope(k)
	if m.failed(readExperts(k, c, m.arch)) {
		m.sized = false
	}
	if c.Experts > 0 && !m.arch.experts {
		m.fault("mixture of %d experts is not supported", c.Experts)
		m.sized = false
	}
	if m.failed(m.arch.config(k, c)) {
		m.sized = false
	}
	m.unread(k)
	slices.Sort(m.faults)
	return m
}

// ignored notes which keys of the architecture have no effect. The oracle for GGUF files is llama.cpp: what it does not read,
// does not change what a model computes.
func (m *metadata) ignored(k keys) {
	var names []string
	for key := range k.kv.Keys() {
		rest, ok := strings.CutPrefix(key, k.of+".")
		if ok && !slices.Contains(known, rest) && !slices.Contains(elsewhere, rest) && !slices.Contains(m.arch.keys, rest) && !slices.Contains(m.arch.others, rest) {
			names = append(names, frontend.Name(key))
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		m.remarks = append(m.remarks, fmt.Sprintf("without effect, as in llama.cpp, which reads no such keys of this architecture: %s", frontend.Few(names, ", ")))
	}
}

// unread checks that the keys that llama.cpp reads and the recorder does not have values that change nothing.
func (m *metadata) unread(k keys) {
	c := m.config
	only := func(key string, values ...int64) {
		var v int64
		if name := k.name(key); !m.failed(k.optional(key, &v)) && k.kv.Has(name) && !slices.Contains(values, v) {
			m.fault("key %s is %d, which is not supported, only %s is", name, v, strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", " or "), "[]"))
		}
	}
	only("nextn_predict_layers", 0)
	only("expert_group_count", 0, 1)
	only("pooling_type", 0)
	only("classifier.pooling_type", 0)
	only("embedding_length_out", 0, c.Embedding)
	only("attention.key_length_swa", c.HeadDim)
	only("attention.value_length_swa", c.HeadDim)
	only("rope.dimension_count_swa", c.Turned())
	if name := k.name("classifier.output_labels"); k.kv.Has(name) {
		m.fault("key %s is there: a model that sorts texts is not supported", name)
	}
	if name := k.name("attention.causal"); k.kv.Has(name) {
		if causal, err := k.kv.Bool(name); !m.failed(err) && !causal {
			m.fault("key %s is false: attention to what follows is not supported", name)
		}
	}
	for _, key := range m.arch.others {
		name := k.name(key)
		switch theta := float32(0); {
		case !k.kv.Has(name):
		case key == "expert_shared_feed_forward_length":
			only(key, 0)
		case key != "rope.freq_base_swa":
			m.fault("key %s is not supported", name)
		case !m.failed(k.factor(key, &theta)) && float64(theta) != c.RopeTheta:
			m.fault("key %s is %v, which is not supported, only that of the other layers, %v, is", name, theta, c.RopeTheta)
		}
	}
}

// sizes reads what every model has, and reports whether all of it is right.
func (m *metadata) sizes(k keys) bool {
	c, before := &m.config, len(m.faults)
	for _, r := range []struct {
		key string
		to  *int64
	}{
		{"block_count", &c.Layers}, {"embedding_length", &c.Embedding}, {"feed_forward_length", &c.FFN},
		{"attention.head_count", &c.Heads}, {"context_length", &c.Context},
	} {
		m.failed(k.count(r.key, r.to))
	}
	eps := k.name("attention.layer_norm_rms_epsilon")
	v, err := k.kv.Float32(eps)
	if !m.failed(err) && (!(v >= 0) || math.IsInf(float64(v), 0)) {
		m.fault("key %s is %v", eps, v)
	}
	c.NormEps = v
	if c.Heads == 0 {
		return false
	}
	c.KVHeads, c.HeadDim = c.Heads, c.Embedding/c.Heads
	m.failed(k.optional("attention.head_count_kv", &c.KVHeads))
	m.failed(k.optional("attention.key_length", &c.HeadDim))
	if c.KVHeads < 1 || c.Heads%c.KVHeads != 0 {
		m.fault("%d query heads do not divide over %d kv heads", c.Heads, c.KVHeads)
	}
	return len(m.faults) == before
}

// rope reads the parameters of the rotary embedding, and says which variants of it and of attention the recorder
// does not have.
func (m *metadata) rope(k keys) {
	c := &m.config
	theta := float32(10000) // llama.cpp's default where the key is absent
	c.RopeTheta = float64(theta)
	if !m.failed(k.factor("rope.freq_base", &theta)) {
		if theta > 1 {
			c.RopeTheta = float64(theta)
		} else {
			m.fault("key %s is %v, want more than 1", k.name("rope.freq_base"), theta)
		}
	}
	dims, values := c.HeadDim, c.HeadDim
	m.failed(k.optional("rope.dimension_count", &dims))
	m.failed(k.optional("attention.value_length", &values))
	switch {
	case dims == c.HeadDim:
	case m.arch.wholeRope:
		m.fault("partial rope (%d of %d dimensions) is not supported", dims, c.HeadDim)
	case dims < 2 || dims > c.HeadDim || dims%2 != 0:
		m.fault("key %s is %d, of heads of %d elements", k.name("rope.dimension_count"), dims, c.HeadDim)
	default:
		c.RopeDims = dims
	}
	if values != c.HeadDim {
		m.fault("values of %d elements beside keys of %d are not supported", values, c.HeadDim)
		m.sized = false
	}
	if c.HeadDim <= 1<<12 { // else there is a fault already, and its table of periods might not fit in memory
		m.failed(readScaling(k, c))
	}
	// More than what a kind of scaling says of itself.
	attention := float32(1)
	switch {
	case m.failed(k.factor("rope.scaling.attn_factor", &attention)):
	case !(attention > 0):
		m.fault("key %s is %v, want more than 0", k.name("rope.scaling.attn_factor"), attention)
	case attention != 1:
		c.RopeMagnitude = cmp.Or(c.RopeMagnitude, 1) * attention
	}
}

// readScaling reads how rope is scaled.
func readScaling(k keys, c *decoder.Config) (err error) {
	// llama.cpp scales positions wherever there is a factor, but for scaling of the type none.
	scaling := "linear"
	if k.kv.Has(k.name("rope.scaling.type")) {
		if scaling, err = k.kv.String(k.name("rope.scaling.type")); err != nil {
			return err
		}
	}
	var factor, older float32
	if err := k.factor("rope.scaling.factor", &factor); err != nil {
		return err
	}
	if err := k.factor("rope.scale_linear", &older); err != nil {
		return err
	}
	if !k.kv.Has(k.name("rope.scaling.factor")) {
		factor = older
	}
	switch {
	case scaling == "none":
	case scaling != "linear" && scaling != "yarn" && scaling != "longrope":
		return fmt.Errorf("rope scaling %.40q is not supported", scaling)
	case factor < 0:
		return fmt.Errorf("key %s is %v: want a factor above 0", k.name("rope.scaling.factor"), factor)
	case scaling == "yarn":
		if err := readYarn(k, c, cmp.Or(factor, 1)); err != nil {
			return err
		}
	case factor != 0:
		c.RopeScale = 1 / factor
	}
	c.Trained = c.Context
	return k.optional("rope.scaling.original_context_length", &c.Trained)
}

// readYarn reads how yarn stretches rope. Which pairs turn fast or slow no key says that llama.cpp reads of these architectures.
func readYarn(k keys, c *decoder.Config, factor float32) error {
	trained := c.Context
	if err := k.optional("rope.scaling.original_context_length", &trained); err != nil {
		return err
	}
	y := decoder.Yarn{Factor: float64(factor), Trained: float64(trained), Fast: 32, Slow: 1, Rough: true}
	if err := y.Check(); err != nil {
		return err
	}
	c.RopePeriods, c.RopeMagnitude = y.Periods(*c), float32(y.Magnitude(1))
	return nil
}
