package gguf

import "github.com/mlxc/mlxc/frontend/decoder"

// qwen3 normalizes each head of queries and keys.
var qwen3 = architecture{name: "qwen3", config: func(_ keys, c *decoder.Config) error {
	c.RopeHalves, c.HeadNorms = true, true
	return nil
}}
