package metallib_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// attributes are the abbreviations that the tables have for attributes.
var attributes = map[string]string{
	"thread_position_in_grid": "tpig", "threadgroup_position_in_grid": "tgpig", "thread_position_in_threadgroup": "tpitg",
	"thread_index_in_threadgroup": "tiitg", "thread_index_in_simdgroup": "tiisg", "simdgroup_index_in_threadgroup": "sgitg",
	"threads_per_grid": "tpg", "threads_per_threadgroup": "tptg", "threadgroups_per_grid": "tgpg", "simdgroups_per_threadgroup": "sgptg",
	"dispatch_simdgroups_per_threadgroup": "dsgptg", "threads_per_simdgroup": "tpsg", "quadgroup_index_in_threadgroup": "qgitg",
	"thread_index_in_quadgroup": "tiiqg",
}

// row formats a kernel as a line of the tables. The tables know more about writes: a buffer that the body only stores
// to is rw/w.
func row(k *air.Kernel) string {
	var args []string
	for i := range k.Args {
		a := &k.Args[i]
		var s string
		if a.Attribute != "" {
			s = "@" + attributes[a.Attribute] + ":" + a.Type
		} else {
			size := "*"
			if a.Size > 0 {
				size = fmt.Sprintf("#%d", a.Size)
			}
			s = fmt.Sprintf("%d:%s:%s:%s%s:%s", a.Index, [...]string{"", "r", "w", "rw"}[a.Access], [...]string{"", "d", "c", "t"}[a.Space], a.Type, size, a.Name)
			if a.If != "" {
				s += "?" + a.If
			}
		}
		if a.Unused {
			s += "!"
		}
		args = append(args, s)
	}
	threads := ""
	if k.MaxThreadgroup > 0 {
		threads = fmt.Sprint(k.MaxThreadgroup)
	}
	var constants []string
	for _, c := range k.Constants {
		constants = append(constants, fmt.Sprintf("%s=%d:%s", c.Name, c.Index, c.Type))
	}
	bytes := int64(0)
	for _, m := range k.Threadgroup {
		bytes += m.Size
	}
	return strings.TrimRight(fmt.Sprintf("%s\t%s\t%s\t%s", strings.Join(args, " "), threads, strings.Join(constants, " "), fmt.Sprint(bytes)), "\t")
}

// counts are totals over the kernels of a library.
type counts struct {
	Kernels, Constants, Conditional, MaxThreadgroup, Threadgroup, ThreadgroupArgs, Gaps int
	Reads, ReadsUnused, Writes, Constant, ConstantUnused, SizedDevice                   int
	Attributes                                                                          map[string]int // kernels
}

// The numbers were counted by other programs, in what LLVM's disassembler printed of every kernel.
var libraries = map[string]counts{
	"0.16.3": {
		Kernels: 9869, Constants: 135, Conditional: 480, MaxThreadgroup: 1953, Threadgroup: 2028, ThreadgroupArgs: 97, Gaps: 2543,
		Reads: 21669, ReadsUnused: 1107, Writes: 10158, Constant: 25761, ConstantUnused: 898, SizedDevice: 336,
		Attributes: map[string]int{
			"thread_position_in_grid": 7176, "threadgroup_position_in_grid": 2709, "threads_per_grid": 3603, "thread_index_in_simdgroup": 2566,
			"simdgroup_index_in_threadgroup": 2566, "thread_position_in_threadgroup": 2530, "threads_per_threadgroup": 486,
			"threadgroups_per_grid": 6, "thread_index_in_threadgroup": 162, "simdgroups_per_threadgroup": 138,
			"dispatch_simdgroups_per_threadgroup": 69, "threads_per_simdgroup": 320,
		},
	},
	"0.32.4": {
		Kernels: 17248, Constants: 742, Conditional: 1090, MaxThreadgroup: 2482, Threadgroup: 5512, ThreadgroupArgs: 0, Gaps: 2877,
		Reads: 40842, ReadsUnused: 1421, Writes: 18308, Constant: 81872, ConstantUnused: 11981, SizedDevice: 366,
		Attributes: map[string]int{
			"thread_position_in_grid": 9164, "threadgroup_position_in_grid": 8471, "threads_per_grid": 5160, "thread_index_in_simdgroup": 7382,
			"simdgroup_index_in_threadgroup": 6749, "thread_position_in_threadgroup": 4378, "threads_per_threadgroup": 1597,
			"threadgroups_per_grid": 2943, "thread_index_in_threadgroup": 839, "simdgroups_per_threadgroup": 512,
			"threads_per_simdgroup": 24, "quadgroup_index_in_threadgroup": 288, "thread_index_in_quadgroup": 288,
		},
	},
}

func (c *counts) add(k *air.Kernel) {
	one := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	c.Kernels++
	one(&c.Constants, len(k.Constants) > 0)
	one(&c.MaxThreadgroup, k.MaxThreadgroup > 0)
	one(&c.Threadgroup, len(k.Threadgroup) > 0)
	var slots []int
	seen := map[string]bool{}
	for i := range k.Args {
		a := &k.Args[i]
		one(&c.Conditional, a.If != "")
		switch {
		case a.Attribute != "":
			seen[a.Attribute] = true
			continue
		case a.Space == air.Threadgroup:
			c.ThreadgroupArgs++
			continue
		case a.Space == air.Constant:
			c.Constant++
			one(&c.ConstantUnused, a.Unused)
		case a.Access == air.Read:
			c.Reads++
			one(&c.ReadsUnused, a.Unused)
		default:
			c.Writes++
		}
		one(&c.SizedDevice, a.Space == air.Device && a.Size > 0)
		slots = append(slots, a.Index)
	}
	for name := range seen {
		c.Attributes[name]++
	}
	slices.Sort(slots)
	one(&c.Gaps, len(slots) > 0 && slots[len(slots)-1] != len(slots)-1)
}

// Describe agrees with what other programs found out about every kernel of both libraries.
func TestLibraries(t *testing.T) {
	sample.Long(t)
	for _, version := range metallibs.Versions {
		t.Run(version, func(t *testing.T) {
			lib := metallibs.Open(t, version)
			got := counts{Attributes: map[string]int{}}
			described := map[string]string{}
			for i := range lib.Kernels {
				entry := &lib.Kernels[i]
				k, err := lib.Describe(entry.Name)
				require.NoError(t, err)
				if k.AIR != (air.Version{Major: 2, Minor: 6}) || k.Metal != (air.Version{Major: 3, Minor: 1}) || entry.AIR != k.AIR || entry.Metal != k.Metal ||
					!slices.Equal(k.Options, []string{"denorms_disable", "fast_math_disable", "framebuffer_fetch_enable"}) {
					t.Fatalf("%s: versions %v %v, options %v; in the list %v %v", k.Name, k.AIR, k.Metal, k.Options, entry.AIR, entry.Metal)
				}
				got.add(k)
				described[entry.Name] = row(k)
			}
			assert.Equal(t, libraries[version], got)

			signatures := map[string]string{}
			rows := 0
			for _, l := range metallibs.Table(t, version) {
				name, rest, _ := strings.Cut(l, "\t")
				if strings.HasPrefix(name, "=") {
					columns := append(strings.Split(rest, "\t"), "", "")
					signatures[name[1:]] = strings.ReplaceAll(strings.Join(columns[:3], "\t"), ":rw/w:", ":rw:")
					continue
				}
				signature, bytes, _ := strings.Cut(rest, "\t")
				if want := signatures[signature] + "\t" + cmp.Or(bytes, "0"); want != described[name] {
					require.Equal(t, want, described[name], name)
				}
				rows++
			}
			assert.Equal(t, map[string]int{"0.16.3": 7799, "0.32.4": 14041}[version], rows)
		})
	}
}
