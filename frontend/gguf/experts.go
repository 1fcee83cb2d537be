package gguf

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/frontend/decoder"
)

// readExperts reads the sizes of a mixture of experts. A model without the keys has none.
func readExperts(k keys, c *decoder.Config, arch *architecture) error {
	if err := k.optional("expert_count", &c.Experts); err != nil || c.Experts == 0 {
		return err
	}
	if err := k.count("expert_used_count", &c.UsedExperts); err != nil {
		return err
	}
	if c.Experts > 1<<12 || c.UsedExperts > c.Experts {
		return fmt.Errorf("%d of %d experts: want at most as many as there are, and there are at most %d", c.UsedExperts, c.Experts, 1<<12)
	}
	c.ExpertFFN = c.FFN
	for key, to := range map[string]*int64{"expert_feed_forward_length": &c.ExpertFFN, "expert_shared_feed_forward_length": &c.SharedFFN} {
		if !slices.Contains(arch.keys, key) {
			continue // it has no effect
		}
		if err := k.optional(key, to); err != nil {
			return err
		}
	}
	if c.ExpertFFN < 1 || c.ExpertFFN > 1<<20 || c.SharedFFN > 1<<20 {
		return fmt.Errorf("experts are %d wide, a shared one %d: outside [1, %d]", c.ExpertFFN, c.SharedFFN, 1<<20)
	}
	return nil
}

// mixture is for architectures that always have experts: it reads nothing more, but refuses a model without them.
func mixture(k keys, c *decoder.Config) error {
	if c.Experts == 0 {
		return fmt.Errorf("key %s is missing or 0", k.name("expert_count"))
	}
	return nil
}
