package record_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// step is one call of a script.
type step struct {
	kind    string
	a, b, c int // tensors
	text    string
}

func drawStep(t *rapid.T) step {
	tensor := rapid.IntRange(0, 5)
	return step{
		kind: rapid.SampledFrom([]string{"add", "add", "mul", "silu", "norm", "raw", "scratch", "copy", "fill", "barrier", "commit", "group", "param", "discard"}).Draw(t, "kind"),
		a:    tensor.Draw(t, "a"), b: tensor.Draw(t, "b"), c: tensor.Draw(t, "c"),
		text: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "text"),
	}
}

// tensor is one of three rows of two states.
func tensor(s *record.Session, i int) record.Tensor {
	return s.State(fmt.Sprint("t", i/3), ir.F32, 3, elements).Row(ir.Const(int64(i % 3)))
}

// spy is a device that remembers the nodes that it executes.
type spy struct {
	backend.Device
	nodes [][]ir.Node
}

func (s *spy) NewQueue() (backend.Queue, error) {
	q, err := s.Device.NewQueue()
	return spyQueue{q, s}, err
}

type spyQueue struct {
	backend.Queue
	s *spy
}

func (q spyQueue) CommandBuffer(ctx context.Context, r backend.Recording) (backend.CommandBuffer, error) {
	c, err := q.Queue.CommandBuffer(ctx, r)
	return &spyBuffer{CommandBuffer: c, s: q.s}, err
}

type spyBuffer struct {
	backend.CommandBuffer
	s     *spy
	nodes []ir.Node
}

func (c *spyBuffer) Encode(n ir.Node) error {
	c.nodes = append(c.nodes, n)
	return c.CommandBuffer.Encode(n)
}

func (c *spyBuffer) Commit(ctx context.Context, label string, order ir.CommitOrder) (backend.Pending, error) {
	c.s.nodes = append(c.s.nodes, c.nodes)
	return c.CommandBuffer.Commit(ctx, label, order)
}

// runScript makes the calls of a script. All tensors are states, so that their contents are
// defined.
func runScript(s *record.Session, script []step) {
	var ts []record.Tensor
	for i := range 6 {
		ts = append(ts, tensor(s, i))
	}
	mark := s.ScratchMark()
	for _, x := range script {
		a, b, c := ts[x.a], ts[x.b], ts[x.c]
		into := []record.Option{record.Into(c), record.Label(x.text)}
		switch x.kind {
		case "add":
			s.Add(a, b, into...)
		case "mul":
			s.Mul(a, b, into...)
		case "silu":
			s.Sigmoid(a, into...)
		case "norm":
			s.RMSNorm(a, 1e-5, into...)
		case "raw":
			d := s.Dispatch(s.Function("vv_Addfloat32")).Buffer(0, a).Buffer(1, b).Buffer(2, c)
			if x.text == "x" {
				d.Reads(a, b).Writes(c)
			}
			d.Op([]string{"", "op"}[x.b%2])
			if x.text == "y" {
				d.Threads(record.Size(elements), [3]uint32{32, 1, 1})
			} else {
				d.Threads(record.Size(elements), [3]uint32{64, 1, 1})
			}
		case "scratch":
			s.Add(s.Sigmoid(a), s.Sigmoid(b), into...)
			if x.text == "x" {
				s.ScratchReset(mark)
			}
		case "copy":
			if x.a != x.c {
				s.Copy(c, a, x.text)
			}
		case "fill":
			s.Fill(c, byte(x.a), x.text)
		case "barrier":
			s.Barrier()
		case "commit":
			s.Commit(x.text)
		case "group":
			s.Group(x.text)
			s.Silu(a)
			s.EndGroup()
		case "param":
			s.Param("p"+x.text, 1, 1)
		case "discard":
			if x.text == "x" && x.a == 0 {
				s.Discard()
			}
		}
	}
}

// A recording that repeats the previous one, as a whole or up to some call, has the same
// barriers, reasons, counters and bytes as in a session that compares nothing.
func TestRepeatedRecordings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cpu.New(1)
		spies := []*spy{{Device: c}, {Device: c}}
		devices := []*testdevice.Device{testdevice.New(spies[0], testdevice.Options{}), testdevice.New(spies[1], testdevice.Options{})}
		live, both := record.New("t", record.Live(devices[0])), record.New("t", record.Live(devices[1]), record.Capture())
		all := []*record.Session{live, both}
		script := rapid.SliceOfN(rapid.Custom(drawStep), 1, 25).Draw(t, "script")
		var last []*record.Result
		var reasons [][]record.Conflict
		for range rapid.IntRange(2, 8).Draw(t, "recordings") {
			switch at := rapid.IntRange(0, len(script)-1).Draw(t, "at"); rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				script = slices.Clone(script)
				script[at] = drawStep(t)
			case 3: // only the text of the step changes
				script = slices.Clone(script)
				script[at].text = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "text")
			case 1:
				script = slices.Insert(slices.Clone(script), at, drawStep(t))
			case 2:
				if len(script) > 1 {
					script = slices.Delete(slices.Clone(script), at, at+1)
				}
			}
			for _, s := range all {
				runScript(s, script)
			}
			require.Equal(t, both.Groups(), live.Groups())
			require.Equal(t, both.Conflicts(), live.Conflicts())
			require.Equal(t, both.TrackerSize(), live.TrackerSize())
			want, got := both.Counters(), live.Counters()
			want.Syncs, got.Syncs = 0, 0 // whether growing scratch waits depends on what is still running
			require.Equal(t, want, got)
			for _, s := range all {
				r, err := s.Finish()
				require.NoError(t, err)
				last = append(last, r)
				reasons = append(reasons, r.Conflicts())
			}
			require.Equal(t, spies[1].nodes, spies[0].nodes)
			for i := range 6 {
				want, err := both.Bytes(tensor(both, i))
				require.NoError(t, err)
				got, err := live.Bytes(tensor(live, i))
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got), "state %d", i)
			}
		}
		for i, r := range last { // later recordings did not change the logs of earlier ones
			require.Equal(t, reasons[i], r.Conflicts())
		}
		for i, s := range all {
			require.NoError(t, s.Close())
			require.Empty(t, devices[i].Leaks())
		}
		require.NoError(t, c.Close())
	})
}

// A repeated recording allocates next to nothing.
func TestRepeatedRecordingsTakeTheirNodes(t *testing.T) {
	c := cpu.New(1)
	s := record.New("t", record.Live(c))
	k := s.Function("vv_Addfloat32")
	x, y := s.State("x", ir.F32, elements), s.State("y", ir.F32, elements)
	once := func() {
		for range 500 {
			s.Dispatch(k).Buffer(0, x).Buffer(1, x).Buffer(2, y).Threads(record.Size(elements), [3]uint32{32, 1, 1})
		}
	}
	finish := func() {
		_, err := s.Finish()
		require.NoError(t, err)
	}
	once()
	finish()
	once()
	finish()
	// AllocsPerRun runs once twice, so the second is not a repetition, and counts what other goroutines allocate.
	require.Less(t, testing.AllocsPerRun(1, once), 50.0)
	finish()
	require.NoError(t, s.Close())
	require.NoError(t, c.Close())
}

// After a discard of commands that repeated the previous recording, the commands in their
// place are checked.
func TestDiscardOfARepetition(t *testing.T) {
	d := device(t, testdevice.Options{})
	s := record.New("t", record.Live(d))
	x, y := s.State("x", ir.F32, 4), s.State("y", ir.F32, 4)
	for range 2 {
		for range 3 {
			s.Add(x, x, record.Into(y))
		}
		if s.Counters().CommandBuffers == 1 {
			_, err := s.Finish()
			require.NoError(t, err)
		}
	}
	s.Discard()
	s.Mul(x, x, record.Into(y))
	_, err := s.Finish()
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
