package declarations

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// Options of [Corrupt]. The zero value corrupts all declarations in the short form.
type Options struct {
	// Source, if not empty, names a Metal source: only its declarations are corrupted.
	Source string
	// Choose, if not nil, picks the families that are corrupted in this run. A corruption may be noticed in one
	// instance of a family only, so all of them belong to it.
	Choose conformance.Choice
	// Long asks for more random dispatches.
	Long bool
}

// corruptCases is the number of random dispatches in which a mutant of an instance
// must be noticed; corruptLong that of the long form.
const (
	corruptCases = 40
	corruptLong  = 200
)

// fewer divides the number of cases for corruptions that need all of them and would take most
// of the time: a write that is declared as an update is noticed only after the last case, and
// those of @equivalent lines never.
const fewer = 4

// Corrupt corrupts every declaration of the library in every systematic way, and
// fails for each corruption that the tests of kernels, run on the device, do not
// notice, unless an @equivalent line says why it leaves the declaration true.
//
// Instances of a template share their lines of the source. A corruption of such a line
// counts as noticed if it is noticed for one of the instances.
func Corrupt(t *testing.T, open func() backend.Device, o Options) {
	var order []string
	byFamily := map[string][]instance{}
	for _, f := range dispatches.Functions(o.Source) {
		for i, d := range msl.Declarations(f) {
			name := d.Family()
			if byFamily[name] == nil {
				order = append(order, name)
			}
			byFamily[name] = append(byFamily[name], instance{f, i, d})
		}
	}
	cases := corruptCases
	if o.Long {
		cases = corruptLong
	}
	used := map[*decl.Equivalent]bool{}
	left := map[string]int{} // by file: number of families that were not run, since -run may choose some
	for _, name := range order {
		left[byFamily[name][0].d.File]++
	}
	if o.Choose != nil {
		order = o.Choose(order, func(string) string { return "" })
	}
	if o.Source == "" {
		t.Run("generated", func(t *testing.T) { corruptGenerated(t, open) })
	}
	counts := map[string]tally{} // by kind of corruption
	var mu sync.Mutex            // guards counts, used and left
	t.Run("families", func(t *testing.T) {
		for _, name := range order {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dev := open()
				defer closeDevice(t, dev)
				familyCounts, familyUsed := corruptFamily(t, dev, byFamily[name], cases)
				mu.Lock()
				defer mu.Unlock()
				left[byFamily[name][0].d.File]--
				for k, n := range familyCounts {
					counts[k] = counts[k].plus(n)
				}
				for _, e := range familyUsed {
					used[e] = true
				}
			})
		}
	})
	for _, f := range msl.Files() {
		for _, e := range equivalentsOf(f) {
			if !used[e] && left[f] == 0 && (o.Source == "" || o.Source == f) {
				t.Errorf("%v: @equivalent: %q is no corruption of %s that would go unnoticed: delete the line", e, e.Corruption, e.Declaration)
			}
		}
	}
	var total tally
	kinds := make([]string, 0, len(counts))
	for k, n := range counts {
		kinds = append(kinds, k)
		total = total.plus(n)
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		t.Logf("%-18s %v", k, counts[k])
	}
	t.Logf("%-18s %v", "total", total)
	if total.all == 0 {
		t.Error("no declaration was corrupted: this run takes none of those that -run names; MLXC_LONG=1 takes all")
	}
}

// instance is the declaration of a function with this index.
type instance struct {
	function string
	index    int
	d        *decl.Decl
}

// tally counts corruptions by how they were noticed.
type tally struct{ all, kernel, witness, impossible, equivalent int }

func (n tally) plus(o tally) tally {
	return tally{n.all + o.all, n.kernel + o.kernel, n.witness + o.witness, n.impossible + o.impossible, n.equivalent + o.equivalent}
}

func (n tally) String() string {
	return fmt.Sprintf("%4d corruptions: %4d contradict the kernel, %4d a witness, %3d themselves; %2d are equivalent", n.all, n.kernel, n.witness, n.impossible, n.equivalent)
}

// corruptFamily returns, by kind, how the corruptions of a family were noticed, and
// which equivalents are among them.
func corruptFamily(t *testing.T, dev backend.Device, instances []instance, cases int) (counts map[string]tally, used []*decl.Equivalent) {
	counts = map[string]tally{}
	// The key of a corruption is its text with a number, since several may have the same text.
	var order []string
	lies := map[string][]lie{}
	for _, x := range instances {
		seen := map[string]int{}
		for _, m := range mutants(x.d) {
			seen[m.String()]++
			key := fmt.Sprintf("%s (%d)", m, seen[m.String()])
			if lies[key] == nil {
				order = append(order, key)
			}
			lies[key] = append(lies[key], lie{x, m})
		}
	}
	for _, key := range order {
		m, in := lies[key][0].m, lies[key][0].in
		e := equivalent(in, m)
		n := cases
		if e != nil || strings.HasSuffix(m.what, "write -> update") {
			n /= fewer
		}
		err := noticed(dev, lies[key], n, e != nil)
		count := counts[m.kind]
		count.all++
		switch {
		case err != nil && e != nil:
			t.Errorf("%v: @equivalent: %q is said to be no lie (%s), and yet it shows: %v", e, m, e.Reason, err)
		case errors.Is(err, dispatches.ErrWitness):
			count.witness++
		case errors.Is(err, dispatches.ErrNoDispatch):
			count.impossible++
		case err != nil:
			count.kernel++
		case e != nil:
			used = append(used, e)
			count.equivalent++
		default:
			t.Errorf("%s: %v: %s: nobody notices. If it is true, add\n%s", in.d.Family(), in, m, suggest(in, m))
		}
		counts[m.kind] = count
	}
	return counts, used
}

func (x instance) String() string { return fmt.Sprintf("%s#%d", x.function, x.index) }

// lie is a mutant with the instance of which it was made.
type lie struct {
	in instance
	m  mutant
}

// noticed returns the error of the first of the lies, one for each instance, that the tests of kernels notice. Where the
// first does not show, witnesses of the others are asked before their kernels run, which takes longer, and at last the first
// runs longer; with `one`, nothing of that is done.
func noticed(dev backend.Device, lies []lie, cases int, one bool) error {
	if err := lies[0].witnessed(); err != nil {
		return err
	}
	if err := lies[0].run(dev, cases); err != nil || one {
		return err
	}
	for _, l := range lies[1:] {
		if err := l.witnessed(); err != nil {
			return err
		}
	}
	for _, l := range lies[1:] {
		if err := l.run(dev, cases); err != nil {
			return err
		}
	}
	return lies[0].run(dev, patience*cases)
}

// patience is how many times more dispatches are run before a lie counts as one that nobody notices. Some lies show in few
// dispatches: one about the keys that a query sees shows only where there are fewer keys than queries.
const patience = 8

// witnessed compares witnesses with a corrupted declaration in place of the right one.
func (l lie) witnessed() error {
	ds := slices.Clone(msl.Declarations(l.in.function))
	ds[l.in.index] = l.m.d
	return dispatches.Witnessed(l.in.function, ds)
}

// run runs the kernel as a corrupted declaration says.
func (l lie) run(dev backend.Device, cases int) error {
	_, err := dispatches.Cases(dev, l.m.d, cases, dispatches.Everything, fmt.Sprintf("%s %d", l.in.function, l.in.index))
	return err
}
