package routes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
)

// slot is an argument of a compiled kernel as testdata/metallib has it.
type slot struct {
	index     int
	bytes     int    // of a reference; 0: a pointer
	unused    bool   // by the body
	condition string // the constant without which it does not exist
}

var slotPattern = regexp.MustCompile(`^(\d+):(?:r|rw|rw/w):[dc]:[^:]*?(\*|#\d+):\w+(\?\w+)?(!?)$`)

// released returns the arguments of the kernels of a release of MLX.
func released(t *testing.T, version string) map[string][]slot {
	signatures, kernels := map[string][]slot{}, map[string][]slot{}
	for _, line := range metallibs.Table(t, version) {
		f := strings.Split(line, "\t")
		if !strings.HasPrefix(line, "=") {
			kernels[f[0]] = signatures[f[1]]
			continue
		}
		slots := []slot{}
		for _, a := range strings.Fields(f[1]) {
			m := slotPattern.FindStringSubmatch(a)
			if m == nil {
				continue // a thread's position, or threadgroup memory
			}
			s := slot{condition: strings.TrimPrefix(m[3], "?"), unused: m[4] != ""}
			s.index, _ = strconv.Atoi(m[1])
			s.bytes, _ = strconv.Atoi(strings.TrimPrefix(m[2], "#"))
			slots = append(slots, s)
		}
		signatures[f[0][1:]] = slots
	}
	return kernels
}

// described returns the arguments of a kernel of a library.
func described(library *metallib.Library, kernel string) (slots []slot, ok bool) {
	k, err := library.Describe(kernel)
	if err != nil {
		return nil, false
	}
	for i := range k.Args {
		if a := &k.Args[i]; a.Attribute == "" && a.Space != air.Threadgroup {
			slots = append(slots, slot{a.Index, int(a.Size), a.Unused, a.If})
		}
	}
	return slots, true
}

// fits returns what a message lacks that a compiled kernel wants.
func (d *Dispatch) fits(slots []slot) string {
	for _, s := range slots {
		at := slices.IndexFunc(d.Arguments, func(a Argument) bool { return a.Slot == s.index })
		switch {
		case s.unused || s.condition != "" && at < 0:
		case strings.HasPrefix(d.Kernel, "gemv_wide_gather") && s.index == 2: // a bias, which its constant 1 says is not there
		case at < 0:
			return fmt.Sprintf("slot %d is not bound", s.index)
		case d.Arguments[at].Buffer == nil && s.bytes > 0:
			n := 0
			for _, v := range d.Arguments[at].Values {
				n += v.Bytes
			}
			if n != s.bytes {
				return fmt.Sprintf("slot %d has %d bytes, the kernel reads %d", s.index, n, s.bytes)
			}
		}
	}
	return ""
}

// compiledLate are kernels that MLX compiles when it runs, so that no library has them.
var compiledLate = regexp.MustCompile(`^(gather(_front|_axis)?(u?int|b?float|bool)|scatter|compute_dynamic_offset)`)

// Every kernel that MLX 0.32.4 is said to take is in its library, and gets the arguments that it wants.
func TestRelease(t *testing.T) {
	kernels, library := released(t, "0.32.4"), metallibs.Open(t, "0.32.4")
	wrong, right := map[string]string{}, map[string]bool{}
	for _, c := range read(t) {
		if operations[c.Op] == nil || c.Error != "" {
			continue
		}
		for chips := range c.Sent {
			e := &Encoder{Chip: chip(strings.Split(chips, "+")[0]), Version: Release0_32_4}
			operations[c.Op](e, &c)
			for _, d := range e.Sent {
				if compiledLate.MatchString(d.Kernel) {
					continue
				}
				slots, ok := kernels[d.Kernel]
				if !ok { // the table has a part of the library's kernels
					slots, ok = described(library, d.Kernel)
					kernels[d.Kernel] = slots
				}
				problem := "not in the library"
				if ok {
					problem = d.fits(slots)
				}
				if problem == "" {
					right[d.Kernel] = true
				} else {
					wrong[d.Kernel] = problem
				}
			}
		}
	}
	t.Logf("%d kernels of 0.32.4", len(right))
	for _, k := range slices.Sorted(maps.Keys(wrong)) {
		t.Errorf("%s: %s", k, wrong[k])
	}
}
