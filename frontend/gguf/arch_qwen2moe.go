package gguf

import "github.com/mlxc/mlxc/frontend/decoder"

// qwen2moe is qwen2 with experts, whose shares do not add up to 1, and one that every token takes, by a share of its own.
var qwen2moe = architecture{
	name: "qwen2moe", experts: true,
	keys: []string{"expert_feed_forward_length", "expert_shared_feed_forward_length"},
	config: func(k keys, c *decoder.Config) error {
		c.RopeHalves, c.AllShares, c.SharedGate = true, true, true
		if c.SharedFFN == 0 {
			c.SharedFFN = c.FFN
		}
		return mixture(k, c)
	},
}
