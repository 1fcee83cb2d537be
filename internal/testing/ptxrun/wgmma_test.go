package ptxrun

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMatrixRefusals: what wgmma must not do, or is not known to do here, is an error that names the line.
func TestMatrixRefusals(t *testing.T) {
	const (
		head = `
	mov.b64 %rd4, 274878431232;
	shr.u32 %r3, %r2, 4;
	cvt.u64.u32 %rd5, %r3;
	or.b64 %rd4, %rd4, %rd5;
	setp.ne.u32 %p1, %r1, %r1;
`
		first = "	setp.ne.u32 %p2, %r1, 0;\n	@%p2 bra $on;\n" // the others go to $on

		fence, commit, wait = "	wgmma.fence.sync.aligned;\n", "	wgmma.commit_group.sync.aligned;\n", "	wgmma.wait_group.sync.aligned 0;\n"

		small  = "	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd4, %rd4, %p1, 1, 1, 0, 0;\n"
		bfloat = "	wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd4, %rd4, %p1, 1, 1, 0, 0;\n"
		next   = "	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f4, %f5, %f6, %f7}, %rd4, %rd4, %p1, 1, 1, 0, 0;\n"
		wide   = "	wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %rd4, %rd4, %p1, 1, 1, 0, 0;\n"
		inner  = "	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f8, %f9, %f10, %f11}, {%f0, %f1, %f2, %f3}, %rd4, %p1, 1, 1, 0;\n"
	)
	for _, x := range []struct {
		code    string
		threads uint32
		words   string // of the error; "": none
	}{
		{head + fence + small + small + next + commit + wait, 128, ""},
		{head + fence + small + bfloat + commit + wait, 128, ""},
		{head + fence + small + commit + wait + small + commit + wait + "	mov.b32 %f0, 1;\n", 256, ""},
		{head + fence + inner + inner + commit + wait + fence + small + commit + wait, 128, ""},
		{head + small, 128, "line 26: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd4, %rd4, %p1, 1, 1, 0, 0;: thread 0 has executed no wgmma.fence before"},
		{head + fence + "	mov.b32 %f3, 0;\n" + small, 128, "a register of the sum since its last wgmma.fence"},
		{head + fence + small + commit + wait + "	mov.b32 %f12, %f3;\n" + small, 128, "a register of the sum since its last wgmma.fence"},
		{head + fence + "	mov.b32 %f3, 0;\n" + inner, 128, "a register of A since its last wgmma.fence"},
		{head + fence + inner + "	mov.b32 %f3, 0;\n", 128, "is one of wgmma.mma_async of line 27, for which the thread has not waited"},
		{head + fence + small + commit + "	mov.b32 %f12, %f3;\n" + wait, 128, "is one of wgmma.mma_async of line 27, for which the thread has not waited"},
		{head + fence + small + commit + next + commit + "	wgmma.wait_group.sync.aligned 1;\n	mov.b32 %f12, %f3;\n", 128, ""},
		{head + fence + small + commit + next + commit + "	wgmma.wait_group.sync.aligned 1;\n	mov.b32 %f12, %f4;\n", 128, "is one of wgmma.mma_async of line 29"},
		{head + fence + small + wait + "	mov.b32 %f12, %f3;\n", 128, "for which the thread has not waited"},
		{head + fence + small + wide, 128, "of another shape"},
		{head + fence + small + commit + fence + wide, 128, "of another shape"},
		{head + fence + small + commit + wait + wide, 128, "of another shape"},
		{head + fence + small + commit + wait + fence + wide + commit + wait, 128, ""},
		{head + fence + small + inner, 128, "a register of A as a sum of wgmma.mma_async of line 27"},
		{head + fence + inner + small, 128, "or as a factor"},
		{head + fence + small, 96, "does not happen"},
		{head + "	setp.lt.u32 %p2, %r1, 96;\n	@%p2 bra $on;\n	bar.sync 0;\n$on:\n" + fence + small, 128, "does not happen"},
		{head + "	setp.eq.u32 %p2, %r1, 7;\n	@%p2 bra $end;\n" + fence + small + "$end:\n", 128, "lane 7 does not take part"},
		{head + "	cvt.u64.u32 %rd5, %r1;\n	add.s64 %rd4, %rd4, %rd5;\n" + fence + small, 128, "differ in a descriptor or a scale"},
		{head + "	or.b64 %rd4, %rd4, 562949953421312;\n" + fence + small, 128, "has a base offset"},
		{head + "	or.b64 %rd4, %rd4, 16384;\n" + fence + small, 128, "has bits that mean nothing"},
		{head + "	or.b64 %rd4, %rd4, 4611686018427387904;\n	add.s64 %rd4, %rd4, 8;\n" + fence + small, 128, "its pattern repeats every 0x400 bytes"},
		{head + "	add.s64 %rd4, %rd4, 4096;\n" + fence + small, 128, "16 bytes of shared memory at 0x10400, of row 0 of a matrix"},
		{head + fence + strings.Replace(small, "1, 0, 0", "1, 0, 1", 1), 128, "is not known here"},
		{head + fence + strings.Replace(small, "1, 1, 0, 0", "1, 2, 0, 0", 1), 128, "is not known here"},
		{head + fence + strings.Replace(small, "m64n8k16", "m64n12k16", 1), 128, "is not known here"},
		{head + fence + small + commit + wait + "	setp.lt.u32 %p2, %r1, 96;\n	@!%p2 st.shared.b32 [%r2], %r1;\n", 128, "no barrier lies between that warp 0 has waited for it and this"},
		{head + first + "	cp.async.cg.shared.global [%r2], [%rd1], 16;\n$on:\n" + fence + small, 128, "matrix B: the byte of shared memory at 0x400 is still in flight"},
		{head + first + "	cp.async.cg.shared.global [%r2], [%rd1], 16;\n	fence.proxy.async;\n	cp.async.wait_all;\n$on:\n	bar.sync 0;\n" + fence + small, 128, "0x400 has been written by thread 0, which has not executed fence.proxy.async since"},
		{head + first + "	st.shared.b64 [%r2], %rd1;\n	fence.proxy.async;\n	st.shared.b64 [%r2+8], %rd1;\n$on:\n	bar.sync 0;\n" + fence + small, 128, "0x408 has been written by thread 0, which has not executed fence.proxy.async since"},
		{head + fence + small + "	st.shared.b32 [%r2], %r1;\n", 128, "are read by wgmma.mma_async of line 27: warp 0 has not waited for it"},
		{head + fence + small + "	cp.async.cg.shared.global [%r2], [%rd1], 16;\n", 128, "are read by wgmma.mma_async of line 27: warp 0 has not waited for it"},
	} {
		_, err := runKernel(x.code, x.threads, make([]byte, 16), 4)
		if x.words == "" {
			require.NoError(t, err, x.code)
		} else {
			assert.ErrorContains(t, err, x.words, x.code)
			assert.Regexp(t, `line \d+: `, err.Error())
		}
	}
}

// TestLayouts: the elements of a matrix are where the PTX ISA's canonical layouts for K-major matrices have them, in
// CuTe's terms: of T elements in 16 bytes, ((8,m),(T,2k)):((1T,SBO),(1,LBO)) without swizzling, and else
// ((8,m),(T,2k)):((bT,SBO),(1,T)) with b of 2, 4 or 8, of which Swizzle<log2 b, 4, 3> exchanges pieces of 16 bytes.
func TestLayouts(t *testing.T) {
	const start, leading, stride, rows = 4096, 256, 2048, 24
	for mode, b := range []int{1, 8, 4, 2} {
		for k := range max(1, b/2) { // the 16 columns of several that are taken
			threads := make([]*thread, warpgroup)
			shared := make([]byte, 16<<10)
			for i := range threads {
				threads[i] = &thread{index: uint32(i), shared: shared}
			}
			for row := range rows {
				for column := range 16 {
					offset := row%8*b*8 + row/8*stride/2 + column%8
					if mode == 0 {
						offset += column / 8 * leading / 2
					} else {
						offset += (2*k + column/8) * 8
					}
					offset *= 2
					offset ^= offset >> 7 & (b - 1) << 4
					binary.LittleEndian.PutUint16(shared[start-sharedBase+offset:], uint16(row<<8|column))
				}
			}
			descriptor := uint64(mode)<<62 | stride>>4<<32 | leading>>4<<16 | uint64(start+32*k)>>4
			_, raw, err := newOrder(&cluster{threads: threads}, threads, len(shared)).matrix(threads, 1, descriptor, rows, false)
			require.NoError(t, err)
			for row := range rows {
				for column := range 16 {
					require.Equal(t, uint16(row<<8|column), raw[row][column], "mode %d, row %d, column %d", mode, row, column)
				}
			}
		}
	}
}
