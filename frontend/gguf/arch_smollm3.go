package gguf

import "github.com/mlxc/mlxc/frontend/decoder"

// smollm3 has no rope in every fourth layer.
var smollm3 = architecture{name: "smollm3", config: func(_ keys, c *decoder.Config) error {
	c.NoRope = 4
	return nil
}}
