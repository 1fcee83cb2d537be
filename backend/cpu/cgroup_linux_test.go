package cpu

import (
	"math"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

// TestControlGroupLimit: the lowest limit of the process's control group and its ancestors counts, wherever the
// hierarchy is mounted.
func TestControlGroupLimit(t *testing.T) {
	const (
		two    = "25 1 0:22 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		one    = "33 25 0:28 / /sys/fs/cgroup/memory rw shared:12 - cgroup cgroup rw,memory\n34 25 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
		hybrid = "31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" + one
		docker = "33 25 0:28 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
		spaced = `30 23 0:26 / /mnt/a\040b rw - cgroup2 cgroup2 rw`
	)
	tests := []struct {
		name          string
		group, mounts string
		files         map[string]string
		want          int64
	}{
		{"none", "", "", nil, math.MaxInt64},
		{"version 2, its own", "0::/a/b\n", two, map[string]string{"sys/fs/cgroup/a/b/memory.max": "1000000\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 1000000},
		{"version 2, a parent's is less", "0::/a/b\n", two, map[string]string{"sys/fs/cgroup/a/b/memory.max": "1000000\n", "sys/fs/cgroup/a/memory.max": "999\n"}, 999},
		{"version 2, only a grandparent's", "0::/a/b/c\n", two, map[string]string{"sys/fs/cgroup/a/memory.max": "77\n"}, 77},
		{"version 2, another group's", "0::/a\n", two, map[string]string{"sys/fs/cgroup/b/memory.max": "5\n", "sys/fs/cgroup/a/x/memory.max": "6\n"}, math.MaxInt64},
		{"version 2, in a namespace", "0::/\n", two, map[string]string{"sys/fs/cgroup/memory.max": "123\n"}, 123},
		{"version 2, outside of its namespace", "0::/../../x\n", two, map[string]string{"sys/fs/cgroup/memory.max": "124\n", "sys/x/memory.max": "1\n", "x/memory.max": "2\n"}, 124},
		{"version 2, max", "0::/a\n", two, map[string]string{"sys/fs/cgroup/a/memory.max": "max\n"}, math.MaxInt64},
		{"version 2, a strange file", "0::/a\n", two, map[string]string{"sys/fs/cgroup/a/memory.max": "-3\n"}, math.MaxInt64},
		{"version 2, a place with a space", "0::/g\n", spaced, map[string]string{"mnt/a b/g/memory.max": "9\n"}, 9},
		{"version 1", "5:cpu:/x\n4:memory:/a/b\n", one, map[string]string{"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "5000\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1\n"}, 5000},
		{"version 1, a parent's", "4:cpu,memory:/a/b\n", one, map[string]string{"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n"}, 4096},
		{"version 1, no limit", "4:memory:/a\n", one, map[string]string{"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 9223372036854771712},
		{"version 1, a container without a namespace", "4:memory:/docker/1/x\n", docker, map[string]string{"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "800\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "900\n"}, 800},
		{"version 1, a container that sees another group", "4:memory:/docker/11\n", docker, map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "900\n", "sys/fs/cgroup/memory/1/memory.limit_in_bytes": "1\n"}, 900},
		{"both, the limit in version 1", "4:memory:/a\n0::/a\n", hybrid, map[string]string{"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "300\n"}, 300},
		{"both, the limit in version 2", "4:memory:/a\n0::/a\n", hybrid, map[string]string{"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "300\n", "sys/fs/cgroup/unified/a/memory.max": "200"}, 200},
		{"lines that make no sense", "x\n0::\n:::\n", "- \n1 2 3 - cgroup2\n", nil, math.MaxInt64},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(x.group)}, "proc/self/mountinfo": {Data: []byte(x.mounts)}}
			for name, data := range x.files {
				root[name] = &fstest.MapFile{Data: []byte(data)}
			}
			assert.Equal(t, x.want, controlGroupLimit(root))
		})
	}
	assert.Positive(t, controlGroupLimit(os.DirFS("/")))
	d := New(1)
	defer d.Close()
	assert.LessOrEqual(t, d.Info().Memory, controlGroupLimit(os.DirFS("/")))
	assert.Positive(t, d.Info().Memory)
}
