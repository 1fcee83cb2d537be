package bind

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Report is what [Check] found.
type Report struct {
	Faults, Doubts []Finding
	// More is the number of further faults and doubts, which are not listed.
	More int
	// Dispatches is how many dispatches were compared with a compiled kernel.
	Dispatches int
}

// maxFindings is the maximum number of faults, and of doubts, that are listed.
const maxFindings = 100

// Finding is a fault or a doubt.
type Finding struct {
	Graph    string
	Command  string // "#12 rms"; "" if it is about the kernel itself
	Kernel   string // as the graph calls it
	Slot     int    // -1 if it is not about an argument
	Argument string // its name in the compiled kernel, or in the graph if that has none
	What     string
}

func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %s: ", ir.QuoteName(f.Graph))
	if f.Command != "" {
		b.WriteString(f.Command + ": ")
	}
	fmt.Fprintf(&b, "kernel @%s: ", ir.QuoteName(f.Kernel))
	if f.Slot >= 0 {
		fmt.Fprintf(&b, "slot %d", f.Slot)
		if f.Argument != "" {
			fmt.Fprintf(&b, " (%s)", f.Argument)
		}
		b.WriteString(": ")
	}
	return b.String() + f.What
}

func (r *Report) add(list *[]Finding, f Finding) {
	if len(*list) == maxFindings {
		r.More++
		return
	}
	*list = append(*list, f)
}
