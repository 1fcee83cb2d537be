package record

import (
	"fmt"
	"slices"
)

// GroupStats describes the groups of commands that may run concurrently: those between two
// barriers or commits.
type GroupStats struct {
	Commands int // dispatches, copies, fills and carries
	Barriers int
	Groups   int
	// Sizes[i] is the number of groups of i+1 commands.
	Sizes []int
}

// Ratio returns the mean number of commands in a group.
func (s GroupStats) Ratio() float64 {
	if s.Groups == 0 {
		return 0
	}
	return float64(s.Commands) / float64(s.Groups)
}

func (s GroupStats) String() string {
	out := fmt.Sprintf("commands=%d barriers=%d groups=%d ratio=%.2f", s.Commands, s.Barriers, s.Groups, s.Ratio())
	for i, n := range s.Sizes {
		if n > 0 {
			out += fmt.Sprintf("\n  size %d: %d", i+1, n)
		}
	}
	return out
}

// count counts a group of n commands.
func (s *GroupStats) count(n int) {
	for len(s.Sizes) < n {
		s.Sizes = append(s.Sizes, 0)
	}
	s.Sizes[n-1]++
	s.Groups++
}

func (s GroupStats) clone() GroupStats {
	s.Sizes = slices.Clone(s.Sizes)
	return s
}

// Groups returns the statistics of the recording so far, including the commands since the
// last barrier.
func (e *Encoder) Groups() GroupStats {
	s := e.stats.clone()
	if e.group > 0 {
		s.count(e.group)
	}
	return s
}
