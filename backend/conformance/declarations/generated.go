package declarations

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/msl/decl"
)

// noLies are the corruptions of the examples that leave them true, with the reason.
var noLies = map[string]string{
	"shape: in2[0] 1 -> 2":                   "more bytes declared as read than are read",
	"shape: in3_f16[0] 1 -> 2":               "more bytes declared as read than are read",
	"operation: out0: abs(in0[i]) -> in0[i]": "one of the two stands where in0[i] is not negative",
}

// corruptGenerated corrupts the declarations of generated kernels and fails for each
// corruption, of the bytes or values that they declare, that the tests do not notice.
func corruptGenerated(t *testing.T, open func() backend.Device) {
	dev := open()
	defer closeDevice(t, dev)
	for k, text := range dispatches.Generated {
		if k == 4 || k == 5 {
			continue // a copy or a constant has little that could be corrupted
		}
		d, err := decl.Elementwise(text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, m := range mutants(d) {
			switch m.kind {
			case "threads", "group", "inplace": // running a kernel on the CPU does not show these
				continue
			}
			if strings.Contains(m.String(), ": round(f32, ") {
				continue // this leaves the declaration true
			}
			if reason := noLies[m.String()]; reason != "" {
				continue
			}
			if _, err := dispatches.Cases(dev, m.d, 40, dispatches.Everything, fmt.Sprint("generated ", k)); err == nil {
				t.Errorf("%q: %v: nobody notices", text, m)
			}
		}
	}
}
