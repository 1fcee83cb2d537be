package cpu

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// controlGroupLimit returns the memory limit in bytes that the process's control group and its ancestors set, as
// containers and service managers do; [math.MaxInt64] if there is none. The kernel kills a process beyond it, so
// it counts like the machine's memory. Both versions of control groups are read, because a system may mount
// both. root is the file system from / on.
//
// Limits that the process cannot see do not count: in a cgroup namespace, the groups above the container's are not
// mounted. Nor do memory.high, beyond which the kernel only slows a process down, and limits of swap.
func controlGroupLimit(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	groups := controlGroups(readLines(root, "proc/self/cgroup"))
	for _, line := range readLines(root, "proc/self/mountinfo") {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		group, ok := groups[m.version]
		if !ok {
			continue
		}
		for dir := m.folder(group); ; dir = path.Dir(dir) {
			if raw, err := fs.ReadFile(root, path.Join(dir, m.file())); err == nil {
				// "max" is not a number, and version 1 writes a number above any machine's memory for "no limit".
				if n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && n > 0 {
					limit = min(limit, n)
				}
			}
			if dir == m.at || dir == "." {
				break
			}
		}
	}
	return limit
}

// readLines returns the lines of a file, none if it cannot be read.
func readLines(root fs.FS, name string) []string {
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// controlGroups returns the path of the process' group of memory, by version, from
// the lines of /proc/self/cgroup: "0::/a/b" is version 2, "5:cpu,memory:/a/b" the
// group of two controllers of version 1.
func controlGroups(lines []string) map[int]string {
	out := map[int]string{}
	for _, line := range lines {
		number, rest, _ := strings.Cut(line, ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if number == "0" && controllers == "" {
			out[2] = group
		} else if strings.Contains(","+controllers+",", ",memory,") {
			out[1] = group
		}
	}
	return out
}

// mount is where a hierarchy of control groups is mounted.
type mount struct {
	version int
	root    string // the group at the top of the mount
	at      string // the mount point, without the leading /
}

// parseMount reads a line of /proc/self/mountinfo:
// "30 23 0:26 /docker/1 /sys/fs/cgroup ro,nosuid shared:9 - cgroup2 cgroup rw".
// ok is false if the line is not a mount of control groups with the memory controller.
func parseMount(line string) (m mount, ok bool) {
	place, kind, ok := strings.Cut(line, " - ")
	f, k := strings.Fields(place), strings.Fields(kind)
	if !ok || len(f) < 5 || len(k) < 3 {
		return m, false
	}
	m.root, m.at = unescapeMount(f[3]), strings.Trim(unescapeMount(f[4]), "/")
	switch {
	case k[0] == "cgroup2":
		m.version = 2
	case k[0] == "cgroup" && strings.Contains(","+k[2]+",", ",memory,"):
		m.version = 1
	default:
		return m, false
	}
	if m.at == "" {
		m.at = "."
	}
	return m, true
}

// unescapeMount undoes how mountinfo writes spaces, tabs, line ends and backslashes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// folder returns the folder with the files of a group. For a group outside the mount it is the folder of the
// group at the top of the mount.
func (m mount) folder(group string) string {
	below := group
	if m.root != "/" {
		var inside bool
		if below, inside = strings.CutPrefix(group, m.root); !inside || below != "" && below[0] != '/' {
			return m.at
		}
	}
	dir := path.Join(m.at, below)
	if m.at != "." && dir != m.at && !strings.HasPrefix(dir, m.at+"/") || strings.HasPrefix(dir, "..") {
		return m.at // "/..", as a process in another namespace has it
	}
	return dir
}

// file returns the name of the file that holds the limit, which depends on the version.
func (m mount) file() string {
	if m.version == 1 {
		return "memory.limit_in_bytes"
	}
	return "memory.max"
}
