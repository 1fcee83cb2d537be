//go:build linux && (amd64 || arm64)

package cuda

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/ptx"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
)

// TestResident: the assembler is told how many blocks share a multiprocessor, if that is known and they are few.
func TestResident(t *testing.T) {
	x := &kernel{kernel: &air.Kernel{Args: []air.Arg{{Name: "x"}, {Name: "at", Attribute: "thread_position_in_grid"}, {Name: "y"}}}}
	number := func(i int, v uint64) parameter { return parameter{number: 2 + i, value: v} }
	known := []parameter{{number: 0, value: 7}, {number: 1, aligned: true}, number(0, 33), number(1, 576), number(2, 1), number(3, 32), number(4, 8), number(5, 1|nvptx.WholeThreadgroups), {number: 8, value: 9}}
	require.Equal(t, facts{threads: 256, blocks: [3]uint64{2, 72, 1}, aligned: 2}, x.facts(known))
	require.Equal(t, facts{blocks: [3]uint64{2, 72, 0}, aligned: 2}, x.facts(known[:7]), "the threads of a threadgroup are not known")
	known[3].value = 0 // the table of additions has them
	require.Equal(t, facts{threads: 256, blocks: [3]uint64{2, 0, 1}, aligned: 2}, x.facts(known))

	const text = ".visible .entry mlxc_kernel(\n)\n.maxntid 256\n{\n}\n"
	told := func(n string) string {
		return ".visible .entry mlxc_kernel(\n)\n.maxntid 256\n.minnctapersm " + n + "\n{\n}\n"
	}
	of := func(text string, f facts, multiprocessors int) string {
		return string(changedText(t, []byte(text), func(m *ptx.Module) { resident(m, f, multiprocessors) }))
	}
	for _, c := range []struct {
		blocks, threads uint64
		cores           int
		want            string
	}{
		{1, 256, 132, told("1")},
		{132, 256, 132, told("2")},
		{98, 256, 132, told("1")},
		{133, 256, 132, told("2")},
		{2 * 132, 256, 132, told("2")},
		{2*132 + 1, 256, 132, text},
		{4 * 132, 64, 132, told("8")},
		{3 * 132, 64, 132, told("6")},
		{2 * 132, 64, 132, told("2")},
		{395, 64, 132, told("3")},
		{5 * 132, 64, 132, told("5")},
		{256, 128, 132, told("4")},
		{8 * 132, 64, 132, told("8")},
		{1, 512, 132, told("1")},
		{1, 1024, 132, text},
		{256, 320, 132, told("2")},
		{256, 512, 132, told("2")},
		{396, 320, 132, told("3")},
		{397, 320, 132, text},
		{512, 448, 132, text},
		{0, 0, 132, text},
		{1, 256, 0, text},
	} {
		require.Equal(t, c.want, of(text, facts{threads: c.threads, blocks: [3]uint64{1, c.blocks, 1}}, c.cores), "%d of %d", c.blocks, c.threads)
	}
	said := strings.Replace(text, "\n{", "\n.minnctapersm 3\n{", 1)
	require.NotEqual(t, text, said)
	require.Equal(t, told("1"), of(said, facts{threads: 128, blocks: [3]uint64{1, 132, 1}}, 132), "fewer than was said")
	require.Equal(t, told("3"), of(said, facts{threads: 128, blocks: [3]uint64{1, 264, 1}}, 132), "more registers are needed than four blocks have")
	require.Equal(t, said, of(said, facts{}, 132), "a grid that nobody knows")
}
