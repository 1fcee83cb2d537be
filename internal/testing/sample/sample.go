package sample

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Env names the environment variable with the run's number, 0 to [Runs]-1; 0 if it is not set.
const Env = "MLXC_SAMPLE"

// WholeEnv names the environment variable that makes a run take every member.
const WholeEnv = "MLXC_LONG"

// Runs is the number of different runs: together they take every member of what [Families] and [Kernels] are given.
const Runs = 128

// Few: a run takes one in Few of the members that are not their family's first.
const Few = 8

// Instances: a run takes one in Instances of the kernels of each template, and at least one. So another type or width
// adds little to the time of a run.
const Instances = 128

// Rare: what takes long and finds little is done by one run in Rare.
const Rare = 16

// Slow: a test that takes seconds, beside others that would notice most of what it notices, is done by one run in Slow.
const Slow = 16

// Templates: a template whose kernels are few is taken by one run in Templates.
const Templates = 8

// PartEnv names the environment variable that divides the members of a whole run among several: "0/8" is the first of
// eight parts.
const PartEnv = "MLXC_PART"

// Parted returns the members of the part that [PartEnv] names, all if it names none.
func Parted[M any](members []M) (out []M) {
	text := os.Getenv(PartEnv)
	if text == "" {
		return members
	}
	var part, of int
	if _, err := fmt.Sscanf(text, "%d/%d", &part, &of); err != nil || part < 0 || part >= of {
		panic(fmt.Sprintf("%s=%s: it says which of how many parts, like 0/8", PartEnv, text))
	}
	for i, m := range members {
		if i%of == part {
			out = append(out, m)
		}
	}
	return out
}

// Whole reports whether everything is to be tested.
func Whole() bool { return os.Getenv(WholeEnv) != "" }

// Run returns the number of this run.
func Run() int {
	text := os.Getenv(Env)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= Runs {
		panic(fmt.Sprintf("%s=%s: it is a number from 0 to %d", Env, text, Runs-1))
	}
	return n
}

// Long skips a slow test under go test -short, which is for a quick look at what an edit breaks elsewhere.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make test has it")
	}
}

// Seldom skips a test in all but one run in [Slow], which other runs take turns at, and under go test -short.
func Seldom(t testing.TB) {
	t.Helper()
	Long(t)
	if !mine(t.Name()) {
		t.Skipf("one run in %d takes it (%s=1 takes all)", Slow, WholeEnv)
	}
}

// VetTurn is the turn of go vet, which the Makefile starts in runs whose [SlowTurn] it is. It takes as long as all tests of
// another turn together, and so has no slow test beside it.
const VetTurn = 0

// spread goes into the hash by which slow tests are divided among turns. It was found by trying: with it no turn has more than ten of 124.
const spread = "5481"

// SlowTurn is the turn of this run, less than [Slow]. Of the runs whose numbers have one remainder by Slow each has another turn.
// So the eight runs that take a slow test have all remainders by 8, and reach all members of which the test takes one in 2, 3, 4
// or [Few] by the number of the run. Of one in 5, 6 or 7 they reach at least 3 members (the factor 5 is for that), of one in
// sixteen a half and of one in 128 a sixteenth. make test-all has the others.
func SlowTurn() int { return (Run() + 5*(Run()/Slow)) % Slow }

// mine reports whether this run takes a test that one run in [Slow] takes.
func mine(test string) bool { return Whole() || SlowTurn() == turnOf(test) }

// turnOf returns the turn of a slow test, which is not that of vet.
func turnOf(test string) int { return (VetTurn + 1 + int(hash32(test+spread)%(Slow-1))) % Slow }

// Turn is a number for what is chosen within a member that is chosen itself: its remainders by 2 and 4 are all taken by
// runs whose numbers have one remainder by 4, [Few] or [Rare].
func Turn() int { return Run() + Run()/Rare }

// T is the part of [testing.TB] that is needed to log the choice.
type T interface {
	Helper()
	Logf(format string, args ...any)
}

// Families returns the members that this run takes, in their order: the first of each family, and one in `in` of all
// the others. name stands for the caller, so that not all tests choose the same.
func Families[M any](t T, name string, members []M, family func(M) string, in int) (out []M) {
	t.Helper()
	if Whole() {
		return Parted(members)
	}
	return firsts(t, name, members, family, in)
}

// firsts is [Families] of a run that is not whole.
func firsts[M any](t T, name string, members []M, family func(M) string, in int) (out []M) {
	t.Helper()
	seen := map[string]bool{}
	others := 0
	for _, m := range members {
		switch f := family(m); {
		case !seen[f]:
			seen[f] = true
			if short() && !taken(name, len(seen)-1, Few) {
				continue
			}
		case taken(name, others, in):
			others++
		default:
			others++
			continue
		}
		out = append(out, m)
	}
	t.Logf("%s: %d of %d members (%s=%d repeats this choice, %s=1 takes all)", name, len(out), len(members), Env, Run(), WholeEnv)
	return out
}

// short reports whether go test was asked to be -short: then not every family is taken either.
func short() bool { return flag.Lookup("test.short") != nil && testing.Short() }

// Of is [Families] for members of one family.
func Of[M any](t T, name string, members []M, in int) []M {
	t.Helper()
	return Families(t, name, members, func(M) string { return "" }, in)
}

// Kernels returns the members that this run takes, in their order. It takes one in [Instances] of each family, and at
// least one. The next run takes others, and [Instances] runs in a row take all.
func Kernels[M any](t T, name string, members []M, family func(M) string) []M {
	t.Helper()
	return kernels(t, name, members, family, 1)
}

// kernels is [Kernels], but of each family at least one member is taken in `turn` runs.
func kernels[M any](t T, name string, members []M, family func(M) string, turn int) (out []M) {
	t.Helper()
	if Whole() {
		return Parted(members)
	}
	type place struct {
		size, index, first int
		seen               bool
	}
	all := map[string]*place{}
	for _, m := range members {
		f := family(m)
		if all[f] == nil {
			all[f] = &place{first: Run() + hash(name+"\x00"+f)}
		}
		all[f].size++
	}
	families := 0
	for _, m := range members {
		p := all[family(m)]
		if !p.seen {
			p.seen = true
			families++
			if short() && !taken(name, families, Few) {
				p.first = -1
			}
		}
		if p.first >= 0 && (p.index+p.first)%min(p.size*turn, Instances) == 0 {
			out = append(out, m)
		}
		p.index++
	}
	t.Logf("%s: %d of %d members (%s=%d repeats this choice, %s=1 takes all)", name, len(out), len(members), Env, Run(), WholeEnv)
	return out
}

// Turns returns one of the members, or one in [Instances] of many: another one in each run.
func Turns[M any](t T, name string, members []M) []M {
	t.Helper()
	return Kernels(t, name, members, func(M) string { return "" })
}

// Choose returns [Kernels] in the form that the conformance suite calls, but of a family of few at least one in [Templates] runs. Tests that give the same name choose the
// same kernels.
func Choose(t T, name string) func(members []string, family func(member string) string) []string {
	return func(members []string, family func(string) string) []string {
		t.Helper()
		return kernels(t, name, members, family, Templates)
	}
}

// ChooseSome is [Choose] without families: it takes the first member, and one in `in` of the others. It is for a
// second way to compile kernels, where a first way has already taken a member of every family.
func ChooseSome(t T, name string, in int) func(members []string, family func(member string) string) []string {
	return func(members []string, _ func(string) string) []string {
		t.Helper()
		return Families(t, name, members, func(string) string { return "" }, in)
	}
}

// UnderChecker is the name by which kernels are chosen that the run compiles with the checker's code beforehand.
const UnderChecker = "checked"

// Checked chooses the kernels that a run compiles with the checker's code: one in [Runs] of those without 16-bit
// floats, whose types the checker's code does not look at. A whole run takes the first of each family and one in [Few] of all
// others: a kernel takes a second of a core to compile so, and there are thousands.
// Tests that give the same name choose the same kernels.
func Checked(t T, name string) func(members []string, family func(member string) string) []string {
	some := ChooseSome(t, name, Runs)
	return func(members []string, family func(string) string) []string {
		t.Helper()
		if Whole() {
			return Parted(firsts(t, name, members, family, Few))
		}
		return some(slices.DeleteFunc(slices.Clone(members), func(name string) bool { return strings.Contains(name, "float16") }), family)
	}
}

// Takes reports whether this run takes the member with an index, as one in `in`, of a family without a first one,
// such as the bytes of a file.
func Takes(name string, index, in int) bool { return Whole() || taken(name, index, in) }

// taken reports whether this run takes the member with an index, as one in `in`.
func taken(name string, index, in int) bool {
	return (index+Run()+hash(name))%in == 0
}

// hash makes a number, less than [Runs], of a name.
func hash(name string) int { return int(hash32(name) % Runs) }

func hash32(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()
}
