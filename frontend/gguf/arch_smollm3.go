package gguf

// smollm3 has no rope in every fourth layer.
var smollm3 = architecture{name: "smollm3", config: func(_ keys, c *Config) error {
	c.NoRope = 4
	return nil
}}
