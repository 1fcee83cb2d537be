package gguf

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/frontend/decoder"
)

// gemma2 normalizes what it adds, bounds scores and logits, and has a window in every second layer.
var gemma2 = architecture{
	name: "gemma2",
	keys: []string{"attention.sliding_window", "attention.sliding_window_pattern", "attn_logit_softcapping", "final_logit_softcapping", "rope.freq_base_swa"},
	config: func(k keys, c *decoder.Config) error {
		c.AttentionCap, c.LogitCap = 50, 30
		if err := k.bound("attn_logit_softcapping", &c.AttentionCap); err != nil {
			return err
		}
		if err := k.window(c, 4096, 2); err != nil {
			return err
		}
		return gemma(k, c, 46)
	},
}

// gemma3 normalizes each head of queries and keys, and has a window in five of six layers, with a rope of their own.
var gemma3 = architecture{
	name: "gemma3",
	keys: []string{"attention.sliding_window", "attention.sliding_window_pattern", "final_logit_softcapping", "rope.freq_base_swa"},
	config: func(k keys, c *decoder.Config) error {
		c.HeadNorms, c.LocalTheta = true, 10000
		if err := k.window(c, 0, 6); err != nil {
			return err
		}
		return gemma(k, c, 62)
	},
}

// gemma is what both have. The largest model of each scales scores by 1/√(width of a token / heads), and not by 1/√(size of a
// head). No key says so: it is recognized by its number of layers.
func gemma(k keys, c *decoder.Config, largest int64) error {
	c.RopeHalves, c.PostNorms, c.GeluGates = true, true, true
	c.EmbeddingScale = float32(math.Sqrt(float64(c.Embedding)))
	if c.Layers == largest {
		c.AttentionScale = float32(1 / math.Sqrt(float64(c.Embedding/c.Heads)))
	}
	local := float32(c.LocalTheta)
	if err := k.factor("rope.freq_base_swa", &local); err != nil {
		return err
	}
	if local != 0 && !(local > 1) {
		return fmt.Errorf("key %s is %v, want more than 1", k.name("rope.freq_base_swa"), local)
	}
	c.LocalTheta = float64(local)
	if local != 0 && (c.RopePeriods != nil || c.RopeMagnitude != 0 || c.RopeDims != 0) {
		return fmt.Errorf("rope of layers with a window is supported only beside a scaling of the type linear")
	}
	return k.bound("final_logit_softcapping", &c.LogitCap)
}

// bound reads a number that something is kept within; 0: it is not.
func (k keys) bound(key string, to *float32) error {
	if err := k.factor(key, to); err != nil {
		return err
	}
	if *to < 0 {
		return fmt.Errorf("key %s is %v, want no negative number", k.name(key), *to)
	}
	return nil
}
