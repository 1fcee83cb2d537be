package gguf

import (
	"fmt"
	"math"
	"strings"

	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
)

// Config is the shape of a Llama model.
type Config struct {
	Name      string
	Layers    int64
	Embedding int64 // width of the residual stream
	FFN       int64 // width of the feed-forward layer
	Heads     int64
	KVHeads   int64
	HeadDim   int64
	Vocab     int64
	Context   int64 // positions that the model was trained for
	RopeTheta float64
	NormEps   float32
}

// readConfig reads and checks the metadata of a llama model.
func readConfig(f *ggufio.File) (Config, error) {
	var c Config
	kv := f.KV
	if err := knownKeys(kv); err != nil {
		return c, err
	}
	arch, err := kv.String("general.architecture")
	if err != nil {
		return c, err
	}
	if arch != "llama" {
		return c, fmt.Errorf("architecture %q is not supported, only \"llama\" is", arch)
	}
	c.Name = arch
	if kv.Has("general.name") {
		if c.Name, err = kv.String("general.name"); err != nil {
			return c, err
		}
	}
	required := []struct {
		key string
		to  *int64
	}{
		{"llama.block_count", &c.Layers}, {"llama.embedding_length", &c.Embedding}, {"llama.feed_forward_length", &c.FFN},
		{"llama.attention.head_count", &c.Heads}, {"llama.context_length", &c.Context},
	}
	for _, r := range required {
		v, err := kv.Uint32(r.key)
		if err != nil {
			return c, err
		}
		if v == 0 || v > 1<<20 {
			return c, fmt.Errorf("key %s is %d, outside [1, %d]", r.key, v, 1<<20)
		}
		*r.to = int64(v)
	}
	c.KVHeads = c.Heads
	optional := []struct {
		key string
		to  *int64
	}{{"llama.attention.head_count_kv", &c.KVHeads}, {"llama.attention.key_length", &c.HeadDim}}
	c.HeadDim = c.Embedding / c.Heads
	for _, o := range optional {
		if !kv.Has(o.key) {
			continue
		}
		v, err := kv.Uint32(o.key)
		if err != nil {
			return c, err
		}
		*o.to = int64(v)
	}
	if c.KVHeads < 1 || c.Heads%c.KVHeads != 0 {
		return c, fmt.Errorf("%d query heads do not divide over %d kv heads", c.Heads, c.KVHeads)
	}
	if c.HeadDim != 64 && c.HeadDim != 96 && c.HeadDim != 128 {
		return c, fmt.Errorf("heads of %d elements are not supported, only 64, 96 and 128 are", c.HeadDim)
	}
	if c.NormEps, err = kv.Float32("llama.attention.layer_norm_rms_epsilon"); err != nil {
		return c, err
	}
	if !(c.NormEps >= 0) || math.IsInf(float64(c.NormEps), 0) {
		return c, fmt.Errorf("key llama.attention.layer_norm_rms_epsilon is %v", c.NormEps)
	}
	return c, readRope(kv, &c)
}

// known lists the keys of a Llama model that the recorder uses, or that do not change
// what it computes. Any other key might change the result, so it is refused.
var known = map[string]bool{
	"llama.block_count": true, "llama.embedding_length": true, "llama.feed_forward_length": true, "llama.context_length": true,
	"llama.attention.head_count": true, "llama.attention.head_count_kv": true, "llama.attention.key_length": true, "llama.attention.value_length": true,
	"llama.attention.layer_norm_rms_epsilon": true, "llama.rope.freq_base": true, "llama.rope.dimension_count": true,
	"llama.rope.scaling.type": true, "llama.rope.scaling.factor": true, "llama.rope.scale_linear": true, "llama.rope.scaling.finetuned": true,
	"llama.rope.scaling.original_context_length": true, "llama.expert_count": true, "llama.expert_used_count": true, "llama.vocab_size": true,
	"llama.tensor_data_layout": true,
}

func knownKeys(kv *ggufio.KV) error {
	for key := range kv.Keys() {
		if strings.HasPrefix(key, "llama.") && !known[key] {
			return fmt.Errorf("key %s is not known: it may change what the model computes", key)
		}
	}
	return nil
}

// readRope reads the parameters of the rotary embedding, and refuses every variant that
// the recorder does not have.
func readRope(kv *ggufio.KV, c *Config) error {
	c.RopeTheta = 10000 // llama.cpp's default where the key is absent
	if kv.Has("llama.rope.freq_base") {
		v, err := kv.Float32("llama.rope.freq_base")
		if err != nil {
			return err
		}
		c.RopeTheta = float64(v)
	}
	if !(c.RopeTheta > 1) || math.IsInf(c.RopeTheta, 0) {
		return fmt.Errorf("key llama.rope.freq_base is %v, want more than 1", c.RopeTheta)
	}
	if kv.Has("llama.rope.dimension_count") {
		v, err := kv.Uint32("llama.rope.dimension_count")
		if err != nil {
			return err
		}
		if int64(v) != c.HeadDim {
			return fmt.Errorf("partial rope (%d of %d dimensions) is not supported", v, c.HeadDim)
		}
	}
	if kv.Has("llama.rope.scaling.type") {
		v, err := kv.String("llama.rope.scaling.type")
		if err != nil {
			return err
		}
		if v != "none" {
			return fmt.Errorf("rope scaling %q is not supported", v)
		}
	}
	for _, key := range []string{"llama.rope.scaling.factor", "llama.rope.scale_linear"} {
		if !kv.Has(key) {
			continue
		}
		v, err := kv.Float32(key)
		if err != nil {
			return err
		}
		if v != 0 && v != 1 {
			return fmt.Errorf("key %s is %v: rope scaling is not supported", key, v)
		}
	}
	if kv.Has("llama.attention.value_length") {
		v, err := kv.Uint32("llama.attention.value_length")
		if err != nil {
			return err
		}
		if int64(v) != c.HeadDim {
			return fmt.Errorf("values of %d elements beside keys of %d are not supported", v, c.HeadDim)
		}
	}
	if kv.Has("llama.expert_count") {
		v, err := kv.Uint32("llama.expert_count")
		if err != nil {
			return err
		}
		if v > 0 {
			return fmt.Errorf("mixture of %d experts is not supported", v)
		}
	}
	return nil
}
