package gguf

import "github.com/mlxc/mlxc/frontend/decoder"

// qwen2 is that of Qwen 1.5, 2 and 2.5: queries, keys and values have biases.
var qwen2 = architecture{name: "qwen2", config: func(_ keys, c *decoder.Config) error {
	c.RopeHalves = true
	return nil
}}
