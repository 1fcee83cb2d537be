package gguf

import "github.com/mlxc/mlxc/frontend/decoder"

// phi3 is that of Phi 3 and Phi 4: gate and up are one matrix, mostly queries, keys and values too. All its layers have the
// window, if it has one.
var phi3 = architecture{
	name: "phi3", fusedUp: true, ropeFactors: []string{longFactors, shortFactors},
	keys: []string{"attention.sliding_window", "attention.sliding_window_pattern"},
	config: func(k keys, c *decoder.Config) error {
		c.RopeHalves = true
		return k.window(c, 0, 0)
	},
}
