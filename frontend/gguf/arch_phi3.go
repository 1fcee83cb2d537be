package gguf

import (
	"cmp"
	"fmt"

	"github.com/mlxc/mlxc/frontend/decoder"
)

// phi3 is that of Phi 3 and Phi 4: gate and up are one matrix, mostly queries, keys and values too.
var phi3 = architecture{
	name: "phi3", fusedUp: true,
	keys: []string{"attention.sliding_window"},
	config: func(k keys, c *decoder.Config) error {
		c.RopeHalves = true
		// A window changes nothing in a context that is not longer.
		var window int64
		if err := k.optional("attention.sliding_window", &window); err != nil {
			return err
		}
		if cmp.Or(window, c.Context) < 1 {
			return fmt.Errorf("key %s is %d", k.name("attention.sliding_window"), window)
		}
		c.Context = min(c.Context, cmp.Or(window, c.Context))
		return nil
	},
}
