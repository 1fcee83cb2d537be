package ptxrun

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runClusters runs an entry whose blocks of 64 threads are clusters of a size, and returns what it writes.
func runClusters(code, size string, grid [3]uint32, out int) ([]byte, error) {
	text := strings.Replace(kernelOf(code), ".maxntid 384\n", ".maxntid 384\n.explicitcluster\n.reqnctapercluster "+size+"\n", 1)
	p, err := Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	m := &Memory{}
	got := make([]byte, out)
	err = p.Run(m, Launch{Params: []uint64{m.Add(make([]byte, 16)), m.Add(got)}, Grid: grid, Block: 64, Shared: 64 << 10})
	return got, err
}

// beside computes in %r3 the rank of the next block of the cluster, and in %rd3 where the thread writes its result.
const beside = `
	mov.u32 %r3, %cluster_ctarank;
	mov.u32 %r4, %ctaid.x;
	shl.b32 %r5, %r4, 6;
	add.s32 %r5, %r5, %r1;
	mul.wide.u32 %rd3, %r5, 4;
	add.s64 %rd3, %rd2, %rd3;
	add.s32 %r3, %r3, 1;
	mov.u32 %r6, %cluster_nctarank;
	rem.u32 %r3, %r3, %r6;
	shl.b32 %r7, %r1, 2;
	add.s32 %r7, %r7, %r2;
`

const (
	pushes = beside + `
	barrier.cluster.arrive.relaxed.aligned; // MUST what it waits for does not happen || may not have begun
	barrier.cluster.wait.acquire.aligned; // MUST may not have begun
	mapa.shared::cluster.u32 %r8, %r7, %r3;
	st.shared::cluster.b32 [%r8], %r5;
	barrier.cluster.arrive.release; // MUST what it waits for does not happen
	barrier.cluster.wait.acquire; // MUST no barrier lies between
	ld.shared.b32 %r9, [%r7];
	st.global.b32 [%rd3], %r9;
`
	pulls = beside + `
	st.shared.b32 [%r7], %r5;
	barrier.cluster.arrive.release.aligned; // MUST what it waits for does not happen
	barrier.cluster.wait.acquire.aligned; // MUST may not have begun
	mapa.shared::cluster.u32 %r8, %r7, %r3;
	ld.shared::cluster.b32 %r9, [%r8];
	st.global.b32 [%rd3], %r9;
	barrier.cluster.arrive; // MUST what it waits for does not happen
	barrier.cluster.wait; // MUST may have ended before
`
)

// TestClusters: blocks of a cluster read and write each other's shared memory, and what they need for that is an error where it is missing.
func TestClusters(t *testing.T) {
	const grid, threads = 8, 64
	for _, x := range []struct {
		code, size string
		from       func(block int) int // whose number a block gets
	}{
		{pushes, "4, 1, 1", func(b int) int { return b/4*4 + (b+3)%4 }},
		{pulls, "2", func(b int) int { return b/2*2 + (b+1)%2 }},
	} {
		want := make([]byte, 0, 4*grid*threads)
		for i := range grid * threads {
			want = binary.LittleEndian.AppendUint32(want, uint32(x.from(i/threads)*threads+i%threads))
		}
		omitted(t, x.code, want, func(code string) ([]byte, error) { return runClusters(code, x.size, [3]uint32{grid, 1, 1}, len(want)) })
	}
}

// TestClusterMistakes: what blocks of a cluster must not do is an error.
func TestClusterMistakes(t *testing.T) {
	replaced := func(code string, pairs ...string) string {
		out := strings.NewReplacer(pairs...).Replace(code)
		require.NotEqual(t, code, out)
		return out
	}
	for _, x := range []struct{ code, words string }{
		{replaced(pushes, "arrive.release", "arrive.relaxed"), "no barrier lies between"},
		{replaced(pulls, "arrive.release.aligned", "arrive.relaxed.aligned"), "has been written by thread 0 of block 1 of the cluster, and no barrier lies between"},
		{replaced(pulls, "barrier.cluster.arrive;", "barrier.cluster.arrive.relaxed;"), "of the cluster may have ended before"},
		{replaced(pulls, "barrier.cluster.wait;", "barrier.cluster.arrive;"), "has not waited since it has arrived"},
		{replaced(pulls, "%r7, %r3;", "%r7, 4;"), "in block 4 of a cluster of 4"},
		{replaced(pulls, "ld.shared::cluster", "ld.shared"), "4 bytes of shared memory at 0x"},
		{replaced(pulls, "[%r8]", "[%r8+65536]"), "4 bytes of shared memory at 0x10400"},
		{replaced(pulls, "ld.shared::cluster.b32 %r9, [%r8]", "st.shared::cluster.b32 [%r8], %r9; ld.shared.b32 %r9, [%r7]"), "no barrier lies between"},
		// Two blocks write one byte.
		{replaced(pushes, "%r7, %r3;", "%r7, 0;"), "has been written by thread 0 of block 0 of the cluster, and no barrier lies between"},
		{"	setp.lt.u32 %p1, %r1, 7;\n	@%p1 barrier.cluster.arrive.aligned;\n	@!%p1 bar.sync 0;\n", "not all threads that it names come to it"},
		{"	setp.lt.u32 %p1, %r1, 7;\n	barrier.cluster.arrive;\n	@%p1 barrier.cluster.wait.aligned;\n", "what it waits for does not happen"},
		{"	multimem.ld_reduce.b32 %r3, [%rd1];\n", "is not known here"},
	} {
		_, err := runClusters(x.code, "4, 1, 1", [3]uint32{4, 1, 1}, 4*4*64)
		assert.ErrorContains(t, err, x.words, x.code)
	}
	_, err := runClusters("", "4, 1, 1", [3]uint32{6, 1, 1}, 4)
	require.ErrorContains(t, err, "is not one of clusters of [4 1 1]")
	_, err = runClusters("", "0, 1, 1", [3]uint32{4, 1, 1}, 4)
	require.ErrorContains(t, err, "a cluster of 0 blocks")
	_, err = Parse([]byte(strings.Replace(kernelOf(""), ".maxntid 384\n", ".maxntid 384\n.explicitcluster\n", 1)))
	require.ErrorContains(t, err, "nothing says how large clusters are")
}

// TestClusterRanks: ranks count along x, then y, then z, and threads that have ended are not waited for.
func TestClusterRanks(t *testing.T) {
	got, err := runClusters(`
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ctaid.y;
	mov.u32 %r5, %ctaid.z;
	mad.lo.s32 %r6, %r4, 4, %r3;
	mad.lo.s32 %r6, %r5, 8, %r6;
	mul.wide.u32 %rd3, %r6, 4;
	add.s64 %rd3, %rd2, %rd3;
	mov.u32 %r7, %cluster_ctarank;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $end;
	st.global.b32 [%rd3], %r7;
	setp.ne.u32 %p1, %r7, 3;
	@%p1 bra $end;
	barrier.cluster.arrive;
	barrier.cluster.wait;
$end:
`, "2, 2, 2", [3]uint32{4, 2, 2}, 64)
	require.NoError(t, err)
	want := []uint32{0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7}
	for i, w := range want {
		assert.Equal(t, w, binary.LittleEndian.Uint32(got[4*i:]), "block %d", i)
	}
}
