//go:build linux && (amd64 || arm64)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
)

// An assembler is told how few blocks a multiprocessor has, of those whose number is known.
func TestResident(t *testing.T) {
	x := &kernel{kernel: &air.Kernel{Args: []air.Arg{{Name: "x"}, {Name: "at", Attribute: "thread_position_in_grid"}, {Name: "y"}}}}
	number := func(i int, v uint64) parameter { return parameter{2 + i, v} }
	known := []parameter{{0, 7}, number(0, 33), number(1, 576), number(2, 1), number(3, 32), number(4, 8), number(5, 1|air.WholeThreadgroups), {8, 9}}
	blocks, threads := x.blocks(known)
	require.Equal(t, []uint64{2 * 72, 256}, []uint64{blocks, threads})
	blocks, _ = x.blocks(known[:6])
	require.Zero(t, blocks, "the threads of a threadgroup are not known")
	known[2].value = 0 // a table adds them
	blocks, _ = x.blocks(known)
	require.Zero(t, blocks)

	const text = ".visible .entry mlxc_kernel(\n)\n.maxntid 256\n{\n}\n"
	told := func(n string) string {
		return ".visible .entry mlxc_kernel(\n)\n.maxntid 256\n.minnctapersm " + n + "\n{\n}\n"
	}
	for _, c := range []struct {
		blocks, threads uint64
		cores           int
		want            string
	}{
		{1, 256, 132, told("1")},
		{132, 256, 132, told("1")},
		{133, 256, 132, told("2")},
		{2 * 132, 256, 132, told("2")},
		{2*132 + 1, 256, 132, text},
		{8 * 132, 64, 132, told("8")},
		{1, 512, 132, told("1")},
		{1, 1024, 132, text},
		{0, 0, 132, text},
		{1, 256, 0, text},
	} {
		require.Equal(t, c.want, string(resident([]byte(text), c.blocks, c.threads, c.cores)), "%d of %d", c.blocks, c.threads)
	}
	require.Equal(t, "no entry", string(resident([]byte("no entry"), 1, 32, 132)))
}
