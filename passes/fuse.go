package passes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/passes/internal/fusion"
)

// fuse replaces groups of dispatches by one that computes the same terms, to
// the bit unless allowed otherwise (passes/internal/fusion, passes/internal/isel). max-threads is how many threads a
// threadgroup of the device's pipelines can have. Unless generate=false, elementwise
// commands that no kernel of the library computes together become a generated one.
// allow names rewrites that may change bits, joined by +; only round concerns it.
func fuse(ctx context.Context, g *ir.Graph, o Values, r *Report) error {
	opt := fusion.Options{MaxThreads: 1024, Generate: true}
	if s, ok := o["max-threads"]; ok {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 1 {
			return fmt.Errorf("max-threads=%s: want a number from 1 on", s)
		}
		opt.MaxThreads = n
	}
	if s, ok := o["generate"]; ok {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Errorf("generate=%s: want true or false", s)
		}
		opt.Generate = b
	}
	if s, ok := o["allow"]; ok && s != "none" {
		names := strings.Split(s, "+")
		if err := term.CheckAllowed(names); err != nil {
			return fmt.Errorf("allow=%s: %v", s, err)
		}
		opt.Unrounded = slices.Contains(names, term.Unrounded)
	}
	remarks, flow := fusion.Run(ctx, g, opt)
	r.keep(flow)
	r.expect(len(remarks))
	fused := false
	for _, m := range remarks {
		r.say(m.Node, m.Done, m.Text)
		fused = fused || m.Done
	}
	if !fused {
		r.unchanged()
	}
	return nil
}
