package conformance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// kernelTests returns a test for each function of the library.
func kernelTests(o Options) map[string]func(*T) {
	instances := dispatches.Families(o.functions())
	tests := map[string]func(*T){}
	if o.Source == "" {
		tests["generated/random"] = func(t *T) { generatedKernels(t, o, o.cases()) }
	}
	for _, function := range o.functions() {
		tests["kernel/"+function] = func(t *T) {
			for i, d := range msl.Declarations(function) {
				n := o.cases()
				if !o.Long {
					n = (n + instances[d.Family()] - 1) / instances[d.Family()]
				}
				total, err := dispatches.Cases(t.Device, d, n, o.values(), fmt.Sprintf("%s %d %d", function, i, o.Seed))
				if err != nil {
					t.Errorf("%s: %v", d.Family(), err)
					continue
				}
				if o.Regular > 0 && !d.EffectsOnly {
					more, err := dispatches.Regular(t.Device, d, o.Regular, o.values(), fmt.Sprintf("%s %d %d", function, i, o.Seed))
					if err != nil {
						t.Errorf("%s: %v", d.Family(), err)
					}
					total.Add(more)
				}
				if total.Elements == 0 && !d.EffectsOnly {
					t.Errorf("%s: no result was compared with the term in %d dispatches", d.Family(), total.Dispatches)
				}
				if d.EffectsOnly && t.other != nil {
					if err := dispatches.Alike(t.Device, t.other, d, n, fmt.Sprintf("%s %d %d", function, i, o.Seed)); err != nil {
						t.Errorf("%s: %v", d.Family(), err)
					}
				}
				t.Logf("%s: %d dispatches, %d results compared, %d of them to the bit", d.Family(), total.Dispatches, total.Elements, total.Exact)
			}
			if err := dispatches.Witnesses(t.Device, function, o.witnesses(), o.Turn); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	maps.Copy(tests, termTests(o))
	return tests
}

// generatedKernels runs the examples and n random generated kernels, a few
// dispatches of each.
func generatedKernels(t *T, o Options, n int) {
	texts := slices.Clone(dispatches.Generated)
	for k := range n {
		texts = append(texts, dispatches.RandomGenerated(rand.New(rand.NewPCG(o.Seed, uint64(k)))))
	}
	exact, total := 0, 0
	for k, text := range texts {
		d, err := decl.Elementwise(text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		v, err := dispatches.Cases(t.Device, d, 3, o.values(), fmt.Sprint("generated ", k, o.Seed))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		exact, total = exact+v.Exact, total+v.Elements
	}
	t.Logf("%d generated kernels: %d results compared, %d of them to the bit", len(texts), total, exact)
}
