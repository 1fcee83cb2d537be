package gguf

// qwen3 normalizes each head of queries and keys.
var qwen3 = architecture{name: "qwen3", config: func(_ keys, c *Config) error {
	c.RopeHalves, c.HeadNorms = true, true
	return nil
}}
