package gguf

// qwen3moe is qwen3 with experts.
var qwen3moe = architecture{
	name: "qwen3moe", experts: true,
	keys: []string{"expert_feed_forward_length"},
	config: func(k keys, c *Config) error {
		c.RopeHalves, c.HeadNorms = true, true
		return mixture(k, c)
	},
}
