//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/internal/environ"
	"github.com/mlxc/mlxc/ir"
)

// injectionVariable has the path of the tool that takes ranges. Tools set it for programs that they start.
const injectionVariable = "NVTX_INJECTION64_PATH"

// attach loads the tool that takes ranges, if there is one. As in every program with ranges, a tool that cannot be
// used is no error.
func (d *Device) attach() {
	if path, set := environ.Text(injectionVariable); set {
		if d.ranges, d.noRanges = driver.AttachLibrary(path); d.noRanges != nil {
			d.noRanges = fmt.Errorf("cuda: the tool of %s: %w", injectionVariable, d.noRanges)
		}
	}
}

// NoRanges says why the tool that the environment names gets no ranges; nil: it gets them, or there is none.
func (d *Device) NoRanges() error { return d.noRanges }

// mark is a place where a range begins, or the innermost one ends.
type mark struct {
	step int32  // it stands before this step
	name []byte // nil: the range ends
}

// mark sets the ranges of a code: its groups, and its commands that have labels.
func (c *code) mark() {
	add := func(step int32, name string) {
		c.marks = append(c.marks, mark{step, append([]byte(name), 0)})
	}
	end := func(step int32) { c.marks = append(c.marks, mark{step, nil}) }
	next := int32(0)
	for i, n := range c.nodes {
		switch n := n.(type) {
		case *ir.GroupBegin:
			add(next, n.Label)
		case *ir.GroupEnd:
			end(next)
		case ir.Command:
			first := next
			for next < int32(len(c.steps)) && c.steps[next].node == int32(i) {
				next++
			}
			if label := backend.TimeOf(n, time.Time{}, time.Time{}).Label; label != "" && next > first {
				add(first, label)
				end(next)
			}
		}
	}
}

// teller reports the ranges of a code to a tool while the code is launched step by step.
type teller struct {
	*driver.Ranges
	marks []mark // not reported yet
	open  int
}

func (d *Device) teller(c *code) teller {
	if d.ranges == nil {
		return teller{}
	}
	return teller{Ranges: d.ranges, marks: c.marks}
}

// at reports the marks before a step.
func (t *teller) at(step int) {
	for len(t.marks) > 0 && int(t.marks[0].step) <= step {
		if t.marks[0].name == nil {
			t.Pop()
			t.open--
		} else {
			t.Push(t.marks[0].name)
			t.open++
		}
		t.marks = t.marks[1:]
	}
}

// end ends the ranges that are open, also those of an abandoned launch.
func (t *teller) end() {
	for ; t.open > 0; t.open-- {
		t.Pop()
	}
}
