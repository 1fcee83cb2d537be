package conformance

import (
	"fmt"

	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
)

// termTests returns a test for each pair of kernels with equal terms. A run takes the pairs of which it tests both kernels
// anyway, and a sample of those of which it tests one: the other one has to be compiled for the pair alone.
func termTests(o Options) map[string]func(*T) {
	tests := map[string]func(*T){}
	taken := map[string]bool{}
	for _, f := range o.functions() {
		taken[f] = true
	}
	var both, one []string // names of tests, by how many kernels of the pair the run tests anyway
	for _, pair := range dispatches.Twins() {
		a, b := pair[0], pair[1]
		if o.Source != "" && a.File != o.Source && b.File != o.Source {
			continue
		}
		name := fmt.Sprintf("term/%s=%s", a.Name, b.Name)
		switch {
		case tests[name] != nil: // two functions can have several declarations with equal terms
		case taken[a.Name] && taken[b.Name]:
			both = append(both, name)
		case taken[a.Name] || taken[b.Name]:
			one = append(one, name)
		}
		tests[name] = func(t *T) {
			cases := 20
			if o.Long {
				cases = o.cases()
			}
			n, err := dispatches.SameBits(t.Device, a, b, cases)
			if err == nil && n == 0 {
				n, err = dispatches.SameBits(t.Device, b, a, cases) // b may describe fewer dispatches, all of which suit a
			}
			if err != nil {
				t.Errorf("%v", err)
			}
			if n == 0 && err == nil {
				t.Logf("no dispatch suits both")
			}
		}
	}
	if o.Choose == nil {
		return tests
	}
	chosen := map[string]func(*T){}
	for _, name := range append(both, o.Choose(one, func(string) string { return "" })...) {
		chosen[name] = tests[name]
	}
	return chosen
}
