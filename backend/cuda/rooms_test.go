//go:build linux && (amd64 || arm64)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air"
)

// TestRooms: of two even launches one after the other, one at least has no room for two of its blocks on a multiprocessor, and blocks of both have room there
// together.
func TestRooms(t *testing.T) {
	even, other, none := ptxmatrix.Fit{Resident: 2, Launches: 2, Teams: 3}, ptxmatrix.Fit{Rows: 1, Heads: 4}, ptxmatrix.Fit{}
	c := &code{}
	for _, f := range []ptxmatrix.Fit{none, even, even, none, even, none, even, other, even, even, even, other, other, even} {
		c.steps = append(c.steps, step{entry: &entry{form: form{fit: f}}})
	}
	c.rooms()
	var roomy []int
	for n, s := range c.steps {
		if s.room > 0 {
			require.EqualValues(t, ptxmatrix.Roomy, s.room)
			roomy = append(roomy, n)
		}
	}
	require.Equal(t, []int{1, 4, 6, 8, 10, 13}, roomy)

	// Of few rows, launches that are even then: they follow what is launched in all replays.
	c = &code{}
	for _, x := range []struct {
		any ptxmatrix.Fit
		few map[uint64]ptxmatrix.Fit
	}{
		{even, nil}, {other, map[uint64]ptxmatrix.Fit{2: even, 8: other}}, {none, nil}, {other, map[uint64]ptxmatrix.Fit{2: even, 8: even}}, {other, map[uint64]ptxmatrix.Fit{2: even, 8: even}}, {even, nil},
	} {
		s := step{entry: &entry{form: form{fit: x.any}}}
		for _, rows := range []uint64{2, 8} {
			if f, there := x.few[rows]; there {
				s.few = append(s.few, few{rows: rows, entry: &entry{form: form{fit: f}}})
			}
		}
		c.steps = append(c.steps, s)
	}
	c.rooms()
	rooms := func(rows uint64) (roomy []int) {
		for n := range c.steps {
			s := &c.steps[n]
			e := s.entry
			for i := range s.few {
				if s.few[i].rows == rows {
					e = s.few[i].entry
				}
			}
			if s.roomOf(e) > 0 {
				roomy = append(roomy, n)
			}
		}
		return roomy
	}
	require.Equal(t, []int{0, 5}, rooms(0))
	require.Equal(t, []int{0, 3, 5}, rooms(2))
	require.Equal(t, []int{0, 3, 5}, rooms(8))
}

// TestHurry: other code in front of an even launch lets that begin before it has waited itself, and nothing else does.
func TestHurry(t *testing.T) {
	even, other, none := ptxmatrix.Fit{Resident: 2, Launches: 2, Teams: 3}, ptxmatrix.Fit{Rows: 1, Heads: 4}, ptxmatrix.Fit{}
	c := &code{programmatic: true}
	for _, f := range []ptxmatrix.Fit{none, none, even, none, other, even, none} {
		s := step{kernel: &kernel{kernel: &air.Kernel{}}}
		s.entry = s.kernel.entry(form{waits: true, fit: f}, "", nil)
		c.steps = append(c.steps, s)
	}
	c.steps[4].few = []few{{rows: 2, entry: c.steps[2].entry}} // with few rows
	c.hurry()
	var ahead []int
	for n, s := range c.steps {
		require.Equal(t, s.ahead, s.entry.ahead)
		if s.ahead {
			require.True(t, s.entry.waits)
			ahead = append(ahead, n)
		}
	}
	require.Equal(t, []int{1, 3}, ahead)

	const wait, trigger = "\tgriddepcontrol.wait;\n", "\tgriddepcontrol.launch_dependents;\n"
	require.Equal(t, "{\n"+trigger+wait+"\tret;\n}\n", string(hurried([]byte("{\n"+wait+trigger+"\tret;\n}\n"))))
}
