package ir_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

func TestIndirect(t *testing.T) {
	const text = `mlxt 1
graph g {
  param $pos u32 in [0, 7]
  memory %x input 64
  memory %y output 64
  memory %counts scratch 64
  memory %args argument 64 = values(0: u64 4*$pos, 8: u32 8, 16: i64 4*$pos, 24: i32 8)
  kernel @k metallib "k.metallib" sha256 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff "k" args(0 a: device f32 read, 1 o: device f32 write)
  #0 @k (a = A, o = %y[0:4]) grid GRID
      effects complete reads READS writes WRITES
}
`
	parse := func(a, grid, reads, writes string) (*ir.Module, error) {
		return mlxt.Parse(context.Background(), "g", []byte(strings.NewReplacer("A,", a+",", "GRID", grid, "READS", reads, "WRITES", writes).Replace(text)))
	}
	const direct = "threadgroups [2, 1, 1] of [32, 1, 1]"
	const counted = direct + " at %counts[4:16]"
	for _, c := range []struct{ a, grid, reads, writes, want string }{
		{"%x[0:4]", counted, "%x[0:4], %counts[4:16]", "may %y[0:4]", ""},
		{"%x[0:4]", counted, "%x[0:4]", "may %y[0:4]", "takes its grid from %counts[4:16], which its effects do not list (add it to what is read)"},
		{"%x[0:4]", counted, "%x[0:4], %counts[4:16]", "must %y[0:4]", "is said to write %y[0:4] for certain (a count may be zero: say may)"},
		{"%x[0:4]", direct + " at %counts[4:20]", "%x[0:4], %counts[4:20]", "may %y[0:4]", "12 bytes from a multiple of 4 on"},
		{"%x[0:4]", direct + " at %counts[2:14]", "%x[0:4], %counts[2:14]", "may %y[0:4]", "12 bytes from a multiple of 4 on"},
		{"%x[0:4]", direct + " at %counts[60:72]", "%x[0:4]", "may %y[0:4]", "the grid at %counts[60:72] leaves the memory"},
		{"%x[0:4]", "threads [2, 1, 1] of [32, 1, 1] at %counts[4:16]", "%x[0:4], %counts[4:16]", "may %y[0:4]", "no constant greatest number of threadgroups"},
		{"%x[0:4]", "threadgroups [$pos, 1, 1] of [32, 1, 1] at %counts[4:16]", "%x[0:4], %counts[4:16]", "may %y[0:4]", "no constant greatest number of threadgroups"},
		{"%x[4*$pos:4*$pos + 4] at %args[0:8]", direct, "%x[4*$pos:4*$pos + 4]", "may %y[0:4]", ""},
		{"%x[4*$pos:4*$pos + 4] at %args[16:24]", direct, "%x[4*$pos:4*$pos + 4]", "may %y[0:4]", ""},
		{"%x[8:12] at %args[8:12]", direct, "%x[8:12]", "may %y[0:4]", ""},
		{"%x[4:8] at %args[8:12]", direct, "%x[4:8]", "may %y[0:4]", "takes the offset of %x[4:8] from %args[8:12], which does not hold it"},
		{"%x[4*$pos:4*$pos + 4] at %args[8:12]", direct, "%x[0:64]", "may %y[0:4]", "which does not hold it"},
		{"%x[4*$pos:4*$pos + 4] at %args[0:4]", direct, "%x[0:64]", "may %y[0:4]", "which does not hold it"},
		{"%x[4*$pos:4*$pos + 4] at %x[0:8]", direct, "%x[0:64]", "may %y[0:4]", "which does not hold it"},
		{"%counts[8:12] at %args[8:12]", direct, "%counts[8:12]", "may %y[0:4]", "scratch is moved by passes: bind it at the offset itself"},
	} {
		m, err := parse(c.a, c.grid, c.reads, c.writes)
		if c.want != "" {
			require.ErrorContains(t, err, c.want, "%v", c)
			continue
		}
		require.NoError(t, err, "%v", c)
		again := m.Clone()
		d := m.Graphs[0].Nodes[0].(*ir.Dispatch)
		d.EachView(func(v *ir.View) { v.Off = v.Off.AddConst(64) })
		require.NotEqual(t, mlxt.Format(again), mlxt.Format(m), "a clone shares nothing")
		require.Contains(t, mlxt.Format(again), c.grid)
		require.Contains(t, mlxt.Format(again), "a = "+c.a+",")
	}
}
