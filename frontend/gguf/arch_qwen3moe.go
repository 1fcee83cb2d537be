package gguf

import "github.com/mlxc/mlxc/frontend/decoder"

// qwen3moe is qwen3 with experts.
var qwen3moe = architecture{
	name: "qwen3moe", experts: true,
	keys: []string{"expert_feed_forward_length"},
	config: func(k keys, c *decoder.Config) error {
		c.RopeHalves, c.HeadNorms = true, true
		return mixture(k, c)
	},
}
