package gguf

import (
	"fmt"

	"github.com/mlxc/mlxc/frontend/decoder"
)

// gptOSS has a window in every second layer, sinks, and experts with biases.
var gptOSS = architecture{
	name: "gpt-oss", experts: true, ffnNorm: "post_attention_norm",
	keys:   []string{"attention.sliding_window", "attention.sliding_window_pattern", "expert_feed_forward_length"},
	others: []string{"rope.freq_base_swa"},
	config: func(k keys, c *decoder.Config) error {
		c.RopeHalves, c.Sinks, c.ClampedGates = true, true, true
		if err := k.window(c, 0, 2); err != nil {
			return err
		}
		if c.Window == 0 {
			return fmt.Errorf("key %s is missing or 0", k.name("attention.sliding_window"))
		}
		return mixture(k, c)
	},
}
