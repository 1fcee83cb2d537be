package backend

import (
	"cmp"
	"slices"
	"time"

	"github.com/mlxc/mlxc/ir"
)

// Span is when something ran on the device, by the host's clock. A device with another clock
// converts its times.
type Span struct{ Begin, End time.Time }

// Duration is the span's length.
func (s Span) Duration() time.Duration { return s.End.Sub(s.Begin) }

// Times are the times of an operation. They do not include the time for which the host waits.
type Times struct {
	Submitted time.Time     // when it was given to the queue
	Encode    time.Duration // for how long the host worked before the device could begin
	Span                    // from the beginning of the first command buffer to the end of the last
	// Buffers are the times of the command buffers, in order, if the device reports them.
	Buffers []BufferTime
	// Commands holds an entry for each sampled command when [Program.Profile] or
	// [Recording.Profile] is set.
	Commands []CommandTime
	// Unsampled is the number of commands without a time: the device had no room, or took none.
	Unsampled int
}

// BufferTime is the time of one command buffer.
type BufferTime struct {
	Label string
	Span
	// Dispatches and Barriers are their numbers in it; both are 0 if the device does not report them.
	Dispatches, Barriers int
}

// CommandTime is the time of one command.
type CommandTime struct {
	ID        ir.ID
	Op, Label string // those of the command
	Span
}

// Total is the sum of the times of commands that share a name.
type Total struct {
	Name  string
	Count int
	Time  time.Duration
}

// Fit moves the times of commands, from index from on, into the span of their operation. The two clocks are
// compared to about a microsecond, or much worse if the host was interrupted between reading them. All times are
// moved by the same amount and, if together they are longer than the span, shrunk by the same factor, so that
// their order and the ratios of their durations stay as measured.
func (t *Times) Fit(from int) {
	all, s := t.Commands[from:], t.Span
	if len(all) == 0 {
		return
	}
	first, last := all[0].Begin, all[0].End
	for _, x := range all[1:] {
		if x.Begin.Before(first) {
			first = x.Begin
		}
		if x.End.After(last) {
			last = x.End
		}
	}
	to, scale := first, 1.0
	if whole := last.Sub(first); whole > s.Duration() {
		to, scale = s.Begin, float64(s.Duration())/float64(whole)
	} else if first.Before(s.Begin) {
		to = s.Begin
	} else if last.After(s.End) {
		to = s.End.Add(-whole)
	} else {
		return
	}
	moved := func(x time.Time) time.Time { return to.Add(time.Duration(scale * float64(x.Sub(first)))) }
	for i := range all {
		all[i].Begin, all[i].End = moved(all[i].Begin), moved(all[i].End)
	}
}

// ByLabel sums the times of commands by label, by op where they have none; the
// longest first.
func (t *Times) ByLabel() []Total {
	return t.totals(func(c *CommandTime) string { return cmp.Or(c.Label, c.Op) })
}

// ByOp sums the times of commands by op, the longest first.
func (t *Times) ByOp() []Total { return t.totals(func(c *CommandTime) string { return c.Op }) }

func (t *Times) totals(name func(*CommandTime) string) (out []Total) {
	at := map[string]int{}
	for i := range t.Commands {
		c := &t.Commands[i]
		n := name(c)
		k, ok := at[n]
		if !ok {
			k = len(out)
			at[n] = k
			out = append(out, Total{Name: n})
		}
		out[k].Count++
		out[k].Time += c.Duration()
	}
	slices.SortFunc(out, func(a, b Total) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
	return out
}

// TimeOf returns the entry for [Times.Commands] of a command that ran from begin to end.
func TimeOf(c ir.Command, begin, end time.Time) CommandTime {
	t := CommandTime{ID: c.Num(), Span: Span{begin, end}}
	switch c := c.(type) {
	case *ir.Dispatch:
		t.Op, t.Label = c.Op, c.Label
	case *ir.Copy:
		t.Op, t.Label = "copy", c.Label
	case *ir.Fill:
		t.Op, t.Label = "fill", c.Label
	}
	return t
}
