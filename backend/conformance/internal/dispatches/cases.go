package dispatches

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// Functions returns the names of the library's functions, or of those of one source.
func Functions(source string) []string {
	return slices.DeleteFunc(msl.Functions(), func(f string) bool { return source != "" && msl.Declarations(f)[0].File != source })
}

// Families returns, by family, the number of its instances among the functions.
func Families(functions []string) map[string]int {
	n := map[string]int{}
	for _, f := range functions {
		for _, d := range msl.Declarations(f) {
			n[d.Family()]++
		}
	}
	return n
}

// Everything is a number of values or of dispatches that none has more of.
const Everything = math.MaxInt

// maxMore is the max number of additional dispatches that are drawn until one has a result.
const maxMore = 30

// Cases checks n random dispatches of a declaration's kernel, seeded by name. Sizes
// are sometimes 0, as engines may have them, so if n is small all dispatches may be
// empty: then it goes on to the first that has a result to compare. Each is run with at most `values` values of its params.
func Cases(dev backend.Device, d *decl.Decl, n, values int, name string) (Verdict, error) {
	return cases(dev, d, n, values, name, false)
}

// Regular is the same with dispatches like those of models, aligned and with sizes of multiples of 256, for which devices may have other code.
func Regular(dev backend.Device, d *decl.Decl, n, values int, name string) (Verdict, error) {
	return cases(dev, d, n, values, name+" regular", true)
}

func cases(dev backend.Device, d *decl.Decl, n, values int, name string, regular bool) (Verdict, error) {
	var total Verdict
	for i := 0; i < n || i < n+maxMore && total.Elements == 0 && len(d.Results) > 0; i++ {
		seed := SeedOf(fmt.Sprintf("%s %d", name, i))
		x, err := random(d, rand.New(rand.NewPCG(seed, 1)), regular)
		if err != nil {
			return total, fmt.Errorf("case %d: %w", i, err)
		}
		v, err := check(dev, x, values, seed)
		if err != nil {
			return total, fmt.Errorf("case %d: %w\n\t%v", i, err, x)
		}
		v.Dispatches = 1
		total.Add(v)
	}
	if total.updates && !total.survived {
		return total, fmt.Errorf("an update is declared, but in %d dispatches no old byte survived or mattered: declare a write", total.Dispatches)
	}
	return total, nil
}

// maxWitness is the max sum of bytes of the memories of a witness that is run.
const maxWitness = 4 << 20

// eachWitness calls f with the dispatches of the witnesses of a function that are ok and not too large, but with no more
// than `some` of those, which the function's name and the turn choose.
func eachWitness(function string, some, turn int, f func(x *dispatch) error) error {
	var ok []witness
	for _, w := range witnesses(function) {
		if w.OK {
			ok = append(ok, w)
		}
	}
	first := SeedOf(function) + uint64(turn)*uint64(some)
	for i := range min(some, len(ok)) {
		w := ok[(first+uint64(i))%uint64(len(ok))]
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

// Witnesses checks what the source says of a function's dispatches: its declarations describe those that engines make
// and no others, there is one, and those that are not too large are judged on the device as random ones are, `some` of
// them: each member of a family runs others, and so does each turn.
func Witnesses(dev backend.Device, function string, some, turn int) error {
	ds := msl.Declarations(function)
	err := Witnessed(function, ds)
	if !slices.ContainsFunc(witnesses(function), func(w witness) bool { return w.OK }) {
		err = errors.Join(err, fmt.Errorf("%s: no @witness of %s is ok: add a dispatch as an engine makes it, with its grid (docs/kernels.md)", ds[0].Family(), function))
	}
	return errors.Join(err, eachWitness(function, some, turn, func(x *dispatch) error {
		_, err := check(dev, x, Everything, SeedOf(function))
		return err
	}))
}
