package gguf

import (
	"fmt"

	"github.com/mlxc/mlxc/frontend/decoder"
)

// granite is that of Granite 3: four factors beside Llama's layers.
var granite = architecture{name: "granite", ropeFactors: []string{ropeFactors}, keys: graniteKeys, others: []string{"deepstack_mapping", "expert_shared_feed_forward_length"}, config: graniteFactors}

// granitemoe is granite with experts, and perhaps one that every token takes.
var granitemoe = architecture{
	name: "granitemoe", experts: true, ropeFactors: []string{ropeFactors},
	keys: append([]string{"expert_shared_feed_forward_length"}, graniteKeys...),
	config: func(k keys, c *decoder.Config) error {
		if err := mixture(k, c); err != nil {
			return err
		}
		return graniteFactors(k, c)
	},
}

var graniteKeys = []string{"logit_scale", "residual_scale", "embedding_scale", "attention.scale"}

func graniteFactors(k keys, c *decoder.Config) error {
	for key, to := range map[string]*float32{
		"logit_scale": &c.LogitScale, "residual_scale": &c.ResidualScale, "embedding_scale": &c.EmbeddingScale,
		"attention.scale": &c.AttentionScale,
	} {
		if err := k.factor(key, to); err != nil {
			return err
		}
	}
	if c.LogitScale == 0 {
		return fmt.Errorf("key %s is missing or 0: logits are divided by it", k.name("logit_scale"))
	}
	// llama.cpp takes rope away from a model that says that it was not fine-tuned with it.
	if key := k.name("rope.scaling.finetuned"); k.kv.Has(key) {
		if tuned, err := k.kv.Bool(key); err != nil {
			return err
		} else if !tuned {
			return fmt.Errorf("key %s is false, which stands for a model without rope: not supported", key)
		}
	}
	return nil
}
