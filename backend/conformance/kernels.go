package conformance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// families returns, by family, the number of its instances among the functions.
func families(functions []string) map[string]int {
	n := map[string]int{}
	for _, f := range functions {
		for _, d := range msl.Declarations(f) {
			n[d.Family()]++
		}
	}
	return n
}

// kernelTests returns a test for each function of the library.
func kernelTests(o Options) map[string]func(*T) {
	instances := families(o.functions())
	tests := map[string]func(*T){}
	if o.Source == "" {
		tests["generated/random"] = func(t *T) { generatedKernels(t, o, o.cases()) }
		tests["generated/lies"] = generatedLies
	}
	for _, function := range o.functions() {
		tests["kernel/"+function] = func(t *T) {
			for i, d := range msl.Declarations(function) {
				n := o.cases()
				if !o.Long {
					n = (n + instances[d.Family()] - 1) / instances[d.Family()]
				}
				total, err := kernelCases(t.Device, d, n, fmt.Sprintf("%s %d %d", function, i, o.Seed))
				if err != nil {
					t.Errorf("%s: %v", d.Family(), err)
					continue
				}
				if total.elements == 0 && !d.EffectsOnly {
					t.Errorf("%s: no result was compared with the term in %d dispatches", d.Family(), total.dispatches)
				}
				if d.EffectsOnly && t.other != nil {
					if err := alike(t.Device, t.other, d, n, fmt.Sprintf("%s %d %d", function, i, o.Seed)); err != nil {
						t.Errorf("%s: %v", d.Family(), err)
					}
				}
				t.Logf("%s: %d dispatches, %d results compared, %d of them to the bit", d.Family(), total.dispatches, total.elements, total.exact)
			}
			if err := witnessed(function, msl.Declarations(function)); err != nil {
				t.Errorf("%v", err)
			}
			if !slices.ContainsFunc(witnesses(function), func(w witness) bool { return w.OK }) {
				t.Errorf("%s: no @witness of %s is ok: add a dispatch as an engine makes it, with its grid (docs/kernels.md)", msl.Declarations(function)[0].Family(), function)
			}
			err := eachWitness(function, func(x *dispatch) error {
				_, err := check(t.Device, x, seedOf(function))
				return err
			})
			if err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	maps.Copy(tests, termTests(o))
	return tests
}

// maxMore is the max number of additional dispatches that are drawn until one has a result.
const maxMore = 30

// kernelCases checks n random dispatches of a declaration's kernel, seeded by name. Sizes
// are sometimes 0, as engines may have them, so if n is small all dispatches may be
// empty: then it goes on to the first that has a result to compare.
func kernelCases(dev backend.Device, d *decl.Decl, n int, name string) (verdict, error) {
	var total verdict
	for i := 0; i < n || i < n+maxMore && total.elements == 0 && len(d.Results) > 0; i++ {
		seed := seedOf(fmt.Sprintf("%s %d", name, i))
		x, err := random(d, rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			return total, fmt.Errorf("case %d: %w", i, err)
		}
		v, err := check(dev, x, seed)
		if err != nil {
			return total, fmt.Errorf("case %d: %w\n\t%v", i, err, x)
		}
		total.dispatches++
		total.elements += v.elements
		total.exact += v.exact
		total.survived = total.survived || v.survived
		total.updates = total.updates || v.updates
	}
	if total.updates && !total.survived {
		return total, fmt.Errorf("an update is declared, but in %d dispatches no old byte survived or mattered: declare a write", total.dispatches)
	}
	return total, nil
}

// maxWitness is the max sum of bytes of the memories of a witness that is run.
const maxWitness = 4 << 20

// eachWitness calls f with the dispatches of the witnesses of a function that are ok
// and not too large.
func eachWitness(function string, f func(x *dispatch) error) error {
	for _, w := range witnesses(function) {
		if !w.OK {
			continue
		}
		for _, d := range msl.Declarations(function) {
			if w.bind(d) != nil {
				continue
			}
			x, err := w.dispatch(d)
			if err != nil {
				return fmt.Errorf("%v: %s: %w", w, function, err)
			}
			size := int64(0)
			for _, m := range x.graph.Memories {
				size += m.Size
			}
			if size > maxWitness {
				break
			}
			if err := f(x); err != nil {
				return fmt.Errorf("%v: %w\n\t%v", w, err, x)
			}
			break
		}
	}
	return nil
}
