package record_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
)

// A serial recording has no barriers; its list is the execution order. Passes determine which part of that order
// is needed.
func TestSerial(t *testing.T) {
	steps := func(r *record.Session) (x, y record.Tensor) {
		x, y = r.Input("x", ir.F32, 4), r.Output("y", ir.F32, 4)
		r.Add(r.Mul(r.Add(x, x), x), x, record.Into(y))
		return x, y
	}
	r := record.New("g", record.Serial())
	steps(r)
	g, err := r.Graph()
	require.NoError(t, err)
	require.Equal(t, ir.Serial, g.Ordering)
	s := g.Stats()
	require.Zero(t, s.Barriers)
	require.Equal(t, 3, s.Epochs)
	found, err := meaning.Of(context.Background(), g)
	require.NoError(t, err)
	require.NoError(t, found.Err())
	g.Ordering = ir.ByBarriers
	found, err = meaning.Of(context.Background(), g)
	require.NoError(t, err)
	require.Error(t, found.Err(), "the order is said nowhere else")

	plain := record.New("g")
	steps(plain)
	h, err := plain.Graph()
	require.NoError(t, err)
	g.Ordering = ir.Serial
	require.Equal(t, prove.Proved, prove.Check(context.Background(), g, h, prove.Options{Strict: true}).Verdict)

	c := cpu.New(2)
	defer c.Close()
	live := record.New("g", record.Serial(), record.Live(testdevice.New(c, testdevice.Options{Reverse: true})), record.Capture())
	in := live.Input("in", ir.F32, 4)
	data, err := live.Bytes(in)
	require.NoError(t, err)
	for i := range 4 {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i+1)))
	}
	out := live.Output("out", ir.F32, 4)
	live.Add(live.Mul(live.Add(in, in), in), in, record.Into(out))
	res, err := live.Finish()
	require.NoError(t, err)
	require.Equal(t, ir.Serial, res.Graph.Ordering)
	require.Empty(t, res.Races())
	data, err = live.Bytes(out)
	require.NoError(t, err)
	for i, want := range []float32{3, 10, 21, 36} {
		require.Equal(t, want, math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
	require.NoError(t, live.Close())

	_, err = record.New("g", record.Serial(), record.ManualBarriers()).Graph()
	require.ErrorContains(t, err, "Serial and ManualBarriers")
}
