package gguf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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
	// keys are those that only it has, behind "NAME.".
	keys []string
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

// known lists the keys of all architectures that the recorder uses, or that do not change
// what it computes. Any other key might change the result, so it is refused.
var known = []string{
	"block_count", "embedding_length", "feed_forward_length", "context_length",
	"attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
	"attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.dimension_count",
	"rope.scaling.type", "rope.scaling.factor", "rope.scale_linear", "rope.scaling.finetuned",
	"rope.scaling.original_context_length", "rope.scaling.attn_factor", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "expert_count", "expert_used_count", "vocab_size",
	"tensor_data_layout",
}

// readConfig reads and checks the metadata of a model. Its error names everything that is not supported.
func readConfig(f *ggufio.File) (c decoder.Config, arch *architecture, err error) {
	name, err := f.KV.String("general.architecture")
	if err != nil {
		return c, nil, err
	}
	i := slices.IndexFunc(architectures, func(a *architecture) bool { return a.name == name })
	if i < 0 {
		return c, nil, fmt.Errorf("architecture %q is not supported (%s are)", name, strings.Join(Architectures(), ", "))
	}
	arch = architectures[i]
	k := keys{f.KV, name}
	var missing []string
	for key := range f.KV.Keys() {
		if rest, ok := strings.CutPrefix(key, name+"."); ok && !slices.Contains(known, rest) && !slices.Contains(arch.keys, rest) {
			missing = append(missing, fmt.Sprintf("key %s is not known: it may change what the model computes", key))
		}
	}
	c.Name = name
	if f.KV.Has("general.name") {
		if c.Name, err = f.KV.String("general.name"); err != nil {
			return c, nil, err
		}
	}
	if err := readSizes(k, &c); err != nil {
		return c, nil, err
	}
	if err := decoder.HeadSize(c.HeadDim); err != nil {
		missing = append(missing, err.Error())
	}
	more, err := readRope(k, &c, arch)
	if err != nil {
		return c, nil, err
	}
	if err := readExperts(k, &c); err != nil {
		return c, nil, err
	}
	if c.Experts > 0 && !arch.experts {
		more = append(more, fmt.Sprintf("mixture of %d experts is not supported", c.Experts))
	}
	if err := arch.config(k, &c); err != nil {
		more = append(more, err.Error())
	}
	if missing = append(missing, more...); len(missing) > 0 {
		slices.Sort(missing)
		return c, nil, fmt.Errorf("%s", strings.Join(missing, "; "))
	}
	return c, arch, nil
}

// readSizes reads what every model has.
func readSizes(k keys, c *decoder.Config) error {
	for _, r := range []struct {
		key string
		to  *int64
	}{
		{"block_count", &c.Layers}, {"embedding_length", &c.Embedding}, {"feed_forward_length", &c.FFN},
		{"attention.head_count", &c.Heads}, {"context_length", &c.Context},
	} {
		if err := k.count(r.key, r.to); err != nil {
			return err
		}
	}
	c.KVHeads, c.HeadDim = c.Heads, c.Embedding/c.Heads
	if err := k.optional("attention.head_count_kv", &c.KVHeads); err != nil {
		return err
	}
	if err := k.optional("attention.key_length", &c.HeadDim); err != nil {
		return err
	}
	if c.KVHeads < 1 || c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("%d query heads do not divide over %d kv heads", c.Heads, c.KVHeads)
	}
	var err error
	if c.NormEps, err = k.kv.Float32(k.name("attention.layer_norm_rms_epsilon")); err != nil {
		return err
	}
	if !(c.NormEps >= 0) || math.IsInf(float64(c.NormEps), 0) {
		return fmt.Errorf("key %s is %v", k.name("attention.layer_norm_rms_epsilon"), c.NormEps)
	}
	return nil
}

// readRope reads the parameters of the rotary embedding, and says which variants of it and of attention the recorder
// does not have.
func readRope(k keys, c *decoder.Config, arch *architecture) (missing []string, err error) {
	theta := float32(10000) // llama.cpp's default where the key is absent
	if err := k.factor("rope.freq_base", &theta); err != nil {
		return nil, err
	}
	c.RopeTheta = float64(theta)
	if !(theta > 1) {
		return nil, fmt.Errorf("key %s is %v, want more than 1", k.name("rope.freq_base"), theta)
	}
	dims, values := c.HeadDim, c.HeadDim
	for key, to := range map[string]*int64{"rope.dimension_count": &dims, "attention.value_length": &values} {
		if err := k.optional(key, to); err != nil {
			return nil, err
		}
	}
	switch {
	case dims == c.HeadDim:
	case arch.wholeRope:
		missing = append(missing, fmt.Sprintf("partial rope (%d of %d dimensions) is not supported", dims, c.HeadDim))
	case dims < 2 || dims > c.HeadDim || dims%2 != 0:
		return nil, fmt.Errorf("key %s is %d, of heads of %d elements", k.name("rope.dimension_count"), dims, c.HeadDim)
	default:
		c.RopeDims = dims
	}
	if values != c.HeadDim {
		missing = append(missing, fmt.Sprintf("values of %d elements beside keys of %d are not supported", values, c.HeadDim))
	}
	// llama.cpp scales positions wherever there is a factor, but for scaling of the type none.
	scaling := "linear"
	if k.kv.Has(k.name("rope.scaling.type")) {
		if scaling, err = k.kv.String(k.name("rope.scaling.type")); err != nil {
			return nil, err
		}
	}
	var factor, older float32
	if err := k.factor("rope.scaling.factor", &factor); err != nil {
		return nil, err
	}
	if err := k.factor("rope.scale_linear", &older); err != nil {
		return nil, err
	}
	if !k.kv.Has(k.name("rope.scaling.factor")) {
		factor = older
	}
	switch {
	case scaling == "none":
	case scaling != "linear" && scaling != "yarn" && scaling != "longrope":
		missing = append(missing, fmt.Sprintf("rope scaling %q is not supported", scaling))
	case factor < 0:
		return nil, fmt.Errorf("key %s is %v: want a factor above 0", k.name("rope.scaling.factor"), factor)
	case scaling == "yarn":
		if err := readYarn(k, c, cmp.Or(factor, 1)); err != nil {
			return nil, err
		}
	case factor != 0:
		c.RopeScale = 1 / factor
	}
	c.Trained = c.Context
	if err := k.optional("rope.scaling.original_context_length", &c.Trained); err != nil {
		return nil, err
	}
	// More than what a kind of scaling says of itself.
	attention := float32(1)
	if err := k.factor("rope.scaling.attn_factor", &attention); err != nil {
		return nil, err
	}
	if !(attention > 0) {
		return nil, fmt.Errorf("key %s is %v, want more than 0", k.name("rope.scaling.attn_factor"), attention)
	}
	if attention != 1 {
		c.RopeMagnitude = cmp.Or(c.RopeMagnitude, 1) * attention
	}
	return missing, nil
}

// readYarn reads how yarn stretches rope.
func readYarn(k keys, c *decoder.Config, factor float32) error {
	fast, slow, trained := float32(32), float32(1), c.Context
	if err := k.factor("rope.scaling.yarn_beta_fast", &fast); err != nil {
		return err
	}
	if err := k.factor("rope.scaling.yarn_beta_slow", &slow); err != nil {
		return err
	}
	if err := k.optional("rope.scaling.original_context_length", &trained); err != nil {
		return err
	}
	y := decoder.Yarn{Factor: float64(factor), Trained: float64(trained), Fast: float64(fast), Slow: float64(slow), Rough: true}
	if err := y.Check(); err != nil {
		return err
	}
	c.RopePeriods, c.RopeMagnitude = y.Periods(*c), float32(y.Magnitude(1))
	return nil
}
