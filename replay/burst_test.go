package replay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/replay"
)

// A step of a decoder: out = in + in, and out is carried to the next replay's in. The param pos is the
// row of a state into which out is written.
const stepping = `mlxt 1

graph g {
  param $pos u32 in [0, 7] += 1
  param $n u32 in [0, 9]
  require $pos + $n <= 9
  memory %in input 16 f32[4]
  memory %st state 128 f32[8, 4]
  memory %out output 16 f32[4] every
  memory %last output 16 f32[4]
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)

  #0 @add (a = %in[0:16], b = %in[0:16], c = %out[0:16]) grid threads [4, 1, 1] of [4, 1, 1]
  #1 copy %in -> %last
  barrier
  #2 copy %out -> %st[16*$pos:16*$pos + 16]
  #3 carry %out -> %in
  barrier
}
`

func TestRow(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(stepping))
	require.NoError(t, err)
	d := cpu.New(1)
	defer d.Close()
	ctx := context.Background()
	open := func() (*replay.Graph, *replay.Frame) {
		s, err := replay.Open(d, m, replay.Options{Poison: true})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		g, err := s.Graph(ctx, "")
		require.NoError(t, err)
		f, err := g.NewBurstFrame(ctx, 6)
		require.NoError(t, err)
		return g, f
	}
	begin := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40}

	// Single replays, with the host's work between them.
	g, _ := open()
	in := begin
	var outs [][]byte
	for pos := range 6 {
		require.NoError(t, g.SetParam("pos", float64(pos+1)))
		require.NoError(t, g.SetParam("n", 3))
		require.NoError(t, g.SetInput("in", in))
		_, err := g.Run(ctx)
		require.NoError(t, err)
		in, err = g.Output("out")
		require.NoError(t, err)
		outs = append(outs, in)
	}
	want, err := g.State("st")
	require.NoError(t, err)
	last, err := g.Output("last")
	require.NoError(t, err)

	// The same replays in one submission.
	_, f := open()
	require.NoError(t, f.SetParam("pos", 1))
	require.NoError(t, f.SetParam("n", 3))
	require.NoError(t, f.SetInput("in", begin))
	heard := 0
	r, err := f.SubmitBurst(ctx, 6, func(i int) { require.Equal(t, heard, i); heard++ })
	require.NoError(t, err)
	_, err = r.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 6, heard)
	require.Equal(t, 6, r.Result().Replays)
	got, err := f.State("st")
	require.NoError(t, err)
	require.Equal(t, want, got)
	for i := range outs {
		out, err := f.OutputOf("out", i)
		require.NoError(t, err)
		require.Equal(t, outs[i], out, "replay %d", i)
	}
	out, err := f.Output("out")
	require.NoError(t, err)
	require.Equal(t, outs[5], out)
	got, err = f.OutputOf("last", 5)
	require.NoError(t, err)
	require.Equal(t, last, got)

	// Invalid arguments are errors.
	_, err = f.OutputOf("last", 4)
	require.ErrorContains(t, err, "output %last of replay 4 of 6: it is not kept of every replay")
	_, err = f.OutputOf("out", 6)
	require.ErrorContains(t, err, "the last submission was of 6")
	_, err = f.SubmitBurst(ctx, 7, nil)
	require.ErrorContains(t, err, "a burst of 7 replays, the frame serves 1 to 6")
	_, err = g.SubmitBurst(ctx, 2, nil)
	require.ErrorContains(t, err, "the frame serves 1 to 1")
	require.NoError(t, f.SetParam("pos", 4))
	_, err = f.SubmitBurst(ctx, 6, nil)
	require.EqualError(t, err, "graph g: param $pos is 4 at first and 9 in replay 6, outside its bound [0, 7]")
	require.NoError(t, f.SetParam("pos", 2))
	require.NoError(t, f.SetParam("n", 3))
	_, err = f.SubmitBurst(ctx, 6, nil)
	require.EqualError(t, err, "graph g: params break $pos + $n <= 9 in replay 6: it is 10")

	// A submission of one replay carries nothing.
	require.NoError(t, f.SetInput("in", begin))
	for range 2 {
		_, err = f.Run(ctx)
		require.NoError(t, err)
		out, err := f.Output("out")
		require.NoError(t, err)
		require.Equal(t, outs[0], out)
	}
}

// If a burst is aborted between two replays, the results of those before remain.
func TestRowAborted(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(stepping))
	require.NoError(t, err)
	d := cpu.New(1)
	defer d.Close()
	s, err := replay.Open(d, m, replay.Options{})
	require.NoError(t, err)
	defer s.Close()
	g, err := s.Graph(context.Background(), "")
	require.NoError(t, err)
	f, err := g.NewBurstFrame(context.Background(), 6)
	require.NoError(t, err)
	require.NoError(t, f.SetParam("pos", 0))
	require.NoError(t, f.SetParam("n", 0))
	require.NoError(t, f.SetInput("in", binary.LittleEndian.AppendUint32(nil, 0x3f800000)))
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(context.Background())
	r, err := f.SubmitBurst(ctx, 6, func(i int) {
		if i == 2 {
			stop(enough)
		}
	})
	require.NoError(t, err)
	_, err = r.Wait(context.Background())
	require.ErrorIs(t, err, enough)
	require.Equal(t, 3, r.Result().Replays)
	require.False(t, r.Result().Torn)
	out, err := f.Output("out")
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 0x41}, out[:4], "2, 4, 8")
	_, err = f.OutputOf("out", 3)
	require.ErrorContains(t, err, "3 replays ended: ")
	st, err := f.State("st")
	require.NoError(t, err)
	require.Equal(t, uint32(0x41000000), binary.LittleEndian.Uint32(st[32:]))
	require.Zero(t, binary.LittleEndian.Uint32(st[48:]))
}
