package ptxrun

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBulkCopies: what a bulk copy brings is there for those that have seen its mbarrier's phase complete.
func TestBulkCopies(t *testing.T) {
	in := numbered(128 * 16)
	omissions(t, `
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $ready;
	mbarrier.init.shared::cta.b64 [%r2+2048], 1; // MUST there is no mbarrier
	fence.mbarrier_init.release.cluster; // MUST has executed neither
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2+2048], 2048; // MUST does not happen
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [%r2+2048]; // MUST does not happen
$ready:
	bar.sync 0; // MUST no barrier lies between
$wait:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+2048], 0;
	@!%p2 bra $wait; // MUST nobody has seen || no barrier lies between
	shl.b32 %r3, %r1, 4;
	cvt.u64.u32 %rd3, %r3;
	add.s64 %rd3, %rd2, %rd3;
	add.s32 %r4, %r2, %r3;
	ld.shared.v4.b32 {%r7, %r8, %r9, %r10}, [%r4];
	st.global.v4.b32 [%rd3], {%r7, %r8, %r9, %r10};
`, 128, in, in)
	_, err := runKernel("	ld.shared.b32 %r3, [%r2];\n	mbarrier.init.shared::cta.b64 [%r2+8], 1;\n	ld.shared.b32 %r3, [%r2+12];", 1, in, 4)
	require.ErrorContains(t, err, "is one of an mbarrier")
}

// pipeline multiplies with three warpgroups: a thread of the first brings tiles of two matrices A, of 64 rows, and one
// B, of 64 rows, with 64 columns each, into two stages, and the two others multiply each its A with B. Tiles lie in
// memory as they do in a stage.
func pipeline(steps int) string {
	var d []string
	for i := range 32 {
		d = append(d, fmt.Sprintf("%%f%d", i))
	}
	var b strings.Builder
	b.WriteString(`
	add.s32 %r10, %r2, 49152;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $ready;
	mbarrier.init.shared.b64 [%r10], 1;
	mbarrier.init.shared.b64 [%r10+8], 1;
	mbarrier.init.shared.b64 [%r10+16], 256;
	mbarrier.init.shared.b64 [%r10+24], 256;
	fence.proxy.async.shared::cta; // MUST has executed neither
$ready:
	bar.sync 0; // MUST no barrier lies between
	mov.u32 %r11, 0;
	setp.gt.u32 %p1, %r1, 127;
	@%p1 bra $consumer;
	setmaxnreg.dec.sync.aligned.u32 40;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $end;
$produce:
	and.b32 %r12, %r11, 1;
	shr.u32 %r13, %r11, 1;
	and.b32 %r13, %r13, 1;
	xor.b32 %r13, %r13, 1;
	shl.b32 %r14, %r12, 3;
	add.s32 %r14, %r14, %r10;
	mul.lo.u32 %r15, %r12, 24576;
	add.s32 %r15, %r15, %r2;
$empty:
	mbarrier.try_wait.parity.shared.b64 %p2, [%r14+16], %r13;
	@!%p2 bra $empty; // MUST no barrier lies between
	mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r14], 24576;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r15], [%rd1], 24576, [%r14];
	add.s64 %rd1, %rd1, 24576;
	add.s32 %r11, %r11, 1;
`)
	fmt.Fprintf(&b, "	setp.lt.u32 %%p2, %%r11, %d;\n	@%%p2 bra $produce;\n	bra $end;\n", steps)
	b.WriteString(`$consumer:
	setmaxnreg.inc.sync.aligned.u32 232;
	shr.u32 %r16, %r1, 7;
	sub.s32 %r16, %r16, 1;
	shl.b32 %r16, %r16, 13;
$consume:
	and.b32 %r12, %r11, 1;
	shr.u32 %r13, %r11, 1;
	and.b32 %r13, %r13, 1;
	shl.b32 %r14, %r12, 3;
	add.s32 %r14, %r14, %r10;
	mul.lo.u32 %r15, %r12, 24576;
	add.s32 %r15, %r15, %r2;
$full:
	mbarrier.try_wait.parity.shared.b64 %p2, [%r14], %r13;
	@!%p2 bra $full; // MUST not all threads have waited for its mbarrier
	add.s32 %r17, %r15, %r16;
	shr.u32 %r17, %r17, 4;
	cvt.u64.u32 %rd4, %r17;
	or.b64 %rd4, %rd4, 274878431232;
	add.s32 %r17, %r15, 16384;
	shr.u32 %r17, %r17, 4;
	cvt.u64.u32 %rd5, %r17;
	or.b64 %rd5, %rd5, 274878431232;
	setp.ne.u32 %p3, %r11, 0;
	setp.eq.u32 %p4, %r1, %r1;
	wgmma.fence.sync.aligned; // MUST no wgmma.fence
`)
	for k := range 4 {
		scale := "%p4"
		if k == 0 {
			scale = "%p3"
		}
		fmt.Fprintf(&b, "	add.s64 %%rd6, %%rd4, %d;\n	add.s64 %%rd7, %%rd5, %[1]d;\n	wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%s}, %%rd6, %%rd7, %s, 1, 1, 0, 0;\n", 16*k, strings.Join(d, ", "), scale)
	}
	fmt.Fprintf(&b, `	wgmma.commit_group.sync.aligned; // MUST has not waited for it
	wgmma.wait_group.sync.aligned 0; // MUST has not waited for it
	mbarrier.arrive.shared.b64 %%rd9, [%%r14+16]; // MUST does not happen
	add.s32 %%r11, %%r11, 1;
	setp.lt.u32 %%p2, %%r11, %d;
	@%%p2 bra $consume;
	bar.sync 1, 256; // MUST no barrier lies between || wgmma
	sub.s32 %%r3, %%r1, 128;
	shl.b32 %%r3, %%r3, 7;
	add.s32 %%r4, %%r2, %%r3;
	cvt.u64.u32 %%rd3, %%r3;
	add.s64 %%rd3, %%rd2, %%rd3;
`, steps)
	for i := range 32 {
		fmt.Fprintf(&b, "	st.shared.b32 [%%r4+%d], %%f%d;\n	ld.shared.b32 %%r5, [%%r4+%[1]d];\n	st.global.b32 [%%rd3+%[1]d], %%r5;\n", 4*i, i)
	}
	b.WriteString("$end:\n")
	return b.String()
}

// TestPipeline: warpgroups that bring tiles and that multiply them work together by mbarriers.
func TestPipeline(t *testing.T) {
	const steps = 5
	r := rand.New(rand.NewPCG(4, 3))
	in, values := halves(r, steps*3*64*64, false)
	code := pipeline(steps)
	got, err := runKernel(code, 384, in, 2*64*64*4)
	require.NoError(t, err)
	at := func(step, matrix, row, k int) float64 {
		return values[(step*3+matrix)*4096+row/8*512+k/8*64+row%8*8+k%8]
	}
	for thread := range 256 {
		for i := range 32 {
			row, column := thread%128/32*16+thread%32/4+8*(i/2%2), i/4*8+thread%4*2+i%2
			sum := 0.
			for k := range steps * 64 {
				sum += at(k/64, thread/128, row, k%64) * at(k/64, 2, column, k%64)
			}
			require.InDelta(t, sum, single(uint64(binary.LittleEndian.Uint32(got[128*thread+4*i:]))), 1e-3)
		}
	}
	omissions(t, code, 384, in, got)
}

// TestNamedBarriers: bar.arrive and bar.sync of some threads order what those do, and no others.
func TestNamedBarriers(t *testing.T) {
	want := make([]byte, 4*64)
	for i := range 32 {
		binary.LittleEndian.PutUint32(want[4*(32+i):], uint32(31-i))
	}
	omissions(t, `
	cp.async.wait_all; // has nothing to wait for
	setp.gt.u32 %p1, %r1, 31;
	@%p1 bra $other;
	shl.b32 %r3, %r1, 2;
	add.s32 %r3, %r3, %r2;
	st.shared.b32 [%r3], %r1;
	bar.arrive 2, 64; // MUST does not happen
	bra $end;
$other:
	sub.s32 %r3, 63, %r1;
	shl.b32 %r3, %r3, 2;
	add.s32 %r3, %r3, %r2;
	bar.sync 2, 64; // MUST no barrier lies between
	ld.shared.b32 %r4, [%r3];
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd3, %rd3, %rd2;
	st.global.b32 [%rd3], %r4;
$end:
`, 64, []byte{0}, want)
	for code, words := range map[string]string{
		"	bar.sync 1, 96;":                       "does not happen",
		"	bar.sync 1, 32;":                       "64 threads have come to barrier 1, which is of 32",
		"	bar.sync 1, 72;":                       "64 threads have come to barrier 1, which is of 72",
		"	bar.arrive 1, 64;\n	bar.arrive 1, 64;": "have arrived at barrier 1",
		"	shr.u32 %r3, %r1, 5;\n	bar.sync %r3;":  "does not happen",
		"	setp.lt.u32 %p1, %r1, 32;\n	@%p1 bra $end;\n	bar.sync 0, 64;\n$end:": "does not happen",
	} {
		_, err := runKernel(code, 64, []byte{0}, 4)
		require.ErrorContains(t, err, words, code)
	}
}
