package ptxrun

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kernelOf is an entry with the addresses %rd1 of what it reads and %rd2 of what it writes, the thread's number %r1,
// and 64 KiB of shared memory from the address %r2 on.
func kernelOf(code string) string {
	return `.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 memory[];
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1
)
.maxntid 384
{
	.reg .pred 	%p<10>;
	.reg .b16 	%rs<10>;
	.reg .b32 	%r<50>;
	.reg .b32 	%f<200>;
	.reg .b64 	%rd<20>;
	ld.param.b64 	%rd1, [k_param_0];
	ld.param.b64 	%rd2, [k_param_1];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, memory;
` + code + `
	ret;
}
`
}

// runKernel runs an entry of one block, which reads in, and returns what it writes.
func runKernel(code string, threads uint32, in []byte, out int) ([]byte, error) {
	p, err := Parse([]byte(kernelOf(code)))
	if err != nil {
		return nil, err
	}
	m := &Memory{}
	got := make([]byte, out)
	err = p.Run(m, Launch{Params: []uint64{m.Add(in), m.Add(got)}, Grid: [3]uint32{1, 1, 1}, Block: threads, Shared: 64 << 10})
	return got, err
}

// omissions checks that a program is right, and that without any one of its lines that have a remark "// MUST what" it
// is an error that has the words what, or those behind a "||"; it names the line of the instruction that is wrong then.
func omissions(t *testing.T, code string, threads uint32, in, want []byte) {
	t.Helper()
	omitted(t, code, want, func(code string) ([]byte, error) { return runKernel(code, threads, in, len(want)) })
}

// omitted does so with programs that something runs.
func omitted(t *testing.T, code string, want []byte, run func(code string) ([]byte, error)) {
	t.Helper()
	got, err := run(code)
	require.NoError(t, err, code)
	require.Equal(t, want, got)
	lines := strings.Split(code, "\n")
	for i, l := range lines {
		_, words, must := strings.Cut(l, "// MUST ")
		if !must {
			continue
		}
		left := append(append(append([]string{}, lines[:i]...), ""), lines[i+1:]...)
		_, err := run(strings.Join(left, "\n"))
		if assert.Error(t, err, l) {
			one := false
			for _, w := range strings.Split(words, " || ") {
				one = one || strings.Contains(err.Error(), w)
			}
			assert.True(t, one, "%s: %v", l, err)
			assert.Regexp(t, `line \d+: `, err.Error())
		}
	}
}

func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// TestCopies: what cp.async copies is there when it has been waited for, for other threads behind a barrier.
func TestCopies(t *testing.T) {
	in := numbered(128 * 16)
	want := make([]byte, len(in))
	for i := range 128 {
		// A thread takes the 16 bytes of its neighbor, the last of which are zeros.
		n := 16 - 2*((i^1)&7)

		copy(want[16*i:16*i+n], in[16*(i^1):])
	}
	omissions(t, `
	shl.b32 %r3, %r1, 4;
	cvt.u64.u32 %rd3, %r3;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	add.s32 %r4, %r2, %r3;
	and.b32 %r5, %r1, 7;
	shl.b32 %r5, %r5, 1;
	sub.s32 %r5, 16, %r5;
	cp.async.cg.shared.global [%r4], [%rd4], 16, %r5;
	cp.async.commit_group; // MUST has not waited for its cp.async of line
	cp.async.ca.shared.global [%r4+4096], [%rd4], 8;
	cp.async.commit_group;
	cp.async.wait_group 1; // MUST has not waited for its cp.async of line
	bar.sync 0; // MUST no barrier lies between
	xor.b32 %r6, %r3, 16;
	add.s32 %r6, %r2, %r6;
	ld.shared.v4.b32 {%r7, %r8, %r9, %r10}, [%r6];
	st.global.v4.b32 [%rd5], {%r7, %r8, %r9, %r10};
	bar.sync 0; // MUST no barrier lies between
	cp.async.cg.shared.global [%r4], [%rd4], 16;
	cp.async.wait_all; // MUST has not waited for its cp.async of line
	ld.shared.b32 %r7, [%r4];
	ld.shared.b32 %r7, [%r4+4096];
`, 128, in, want)
}

// TestUnordered: uses of shared memory that nothing orders are errors, as are other mistakes with copies.
func TestUnordered(t *testing.T) {
	const (
		first  = "	setp.ne.u32 %p1, %r1, 0;\n	@%p1 bra $on;\n" // the others go to $on
		last   = "	setp.ne.u32 %p2, %r1, 63;\n	@%p2 bra $end;\n"
		copies = "	cp.async.ca.shared.global [%r2], [%rd1], 4;\n"
	)
	for _, x := range []struct{ code, words string }{
		{copies + "	st.shared.b8 [%r2+3], 1;\n", "0x403 is still in flight: thread 0 has not waited for its cp.async of line 20"},
		{first + copies + "$on:\n" + last + "	cp.async.ca.shared.global [%r2], [%rd1], 8;\n$end:\n", "0x400 is still in flight"},
		{"	st.shared.b8 [%r2], 1;\n	cp.async.wait_all;\n	bar.sync 0;\n	ld.shared.b8 %r3, [%r2];\n" + first + "$on:\n" + last + "	st.shared.b8 [%r2], 2;\n$end:\n", "0x400 has been read by thread 62, and no barrier lies between"},
		{"	cp.async.wait_all;\n" + first + "	ld.shared.b8 %r3, [%r2];\n$on:\n" + last + "	st.shared.b8 [%r2], 2;\n$end:\n", "0x400 has been read by thread 0, and no barrier lies between"},
		{first + "	st.shared.b8 [%r2], 2;\n$on:\n" + last + copies + "$end:\n", "0x400 has been written by thread 0, and no barrier lies between"},
		// What a thread does behind its arrival is not known to those that wait for that.
		{"	cp.async.wait_all;\n	bar.sync 0;\n" + first + "	st.shared.b8 [%r2], 2;\n$on:\n" + last + "	st.shared.b8 [%r2], 3;\n$end:\n", "0x400 has been written by thread 0, as another one, and no barrier lies between"},
		{"	cp.async.wait_all;\n	setp.lt.u32 %p1, %r1, 32;\n	@!%p1 bra $on;\n	bar.arrive 1, 64;\n	st.shared.b8 [%r2], 2;\n	bra $end;\n$on:\n	bar.sync 1, 64;\n	ld.shared.b8 %r3, [%r2];\n$end:\n", "0x400 has been written by thread 31, and no barrier lies between"},
		{"	cp.async.cg.shared.global [%r2+8], [%rd1], 16;\n", "are not at multiples of their size"},
		{"	cp.async.cg.shared.global [%r2], [%rd1+8], 16;\n", "are not at multiples of their size"},
		{"	cp.async.cg.shared.global [%r2], [%rd1], 16, 17;\n", "17 bytes of memory for 16"},
		{"	cp.async.cg.shared.global [%r2], [%rd1+16], 16;\n", "are nobody's"},
		{"	cp.async.cg.shared.global [%r2+65536], [%rd1], 16;\n", "16 bytes of shared memory at 0x10400"},
		{"	cp.async.cg.shared.global [%r2], [%rd1], 8;\n", "is not known here"},
		{first + "	mbarrier.init.shared.b64 [%r2], 2;\n	mbarrier.arrive.shared.b64 %rd3, [%r2], 3;\n$on:\n", "3 arrive where 2 are missing"},
	} {
		_, err := runKernel(x.code, 64, make([]byte, 16), 4)
		if assert.ErrorContains(t, err, x.words, x.code) {
			assert.Regexp(t, `line \d+: `, err.Error())
		}
	}
	_, err := runKernel("	cp.async.cg.shared.global [%r2], [%rd1+16], 16, 0;\n", 1, make([]byte, 16), 4)
	require.NoError(t, err, "nothing is read")
}

// halves returns matrices of halves or bfloats, row after row, and their values.
func halves(r *rand.Rand, n int, bfloat bool) (b []byte, values []float64) {
	for range n {
		x := float32(r.NormFloat64())
		v := half(float64(x))
		y := ofHalf(v)
		if bfloat {
			v = bfloatOf(x)
			y = ofBfloat(v)
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
		values = append(values, y)
	}
	return b, values
}

func bfloatOf(x float32) uint64 { return uint64(math.Float32bits(x) >> 16) }

// matrixKernel multiplies a matrix of 64 rows and one of n rows, of 64 elements each, rows of 128 bytes, which lie
// behind each other in memory, and stores the sums of each thread.
func matrixKernel(n int, typ string, registers, swizzled bool) string {
	var d []string
	for i := range n / 2 {
		d = append(d, fmt.Sprintf("%%f%d", i))
	}
	list := "{" + strings.Join(d, ", ") + "}"
	var b strings.Builder
	// Each thread copies pieces of 16 bytes: piece %r3 is that of row %r3/8 and column %r3%8.
	fmt.Fprintf(&b, `
	mov.u32 %%r3, %%r1;
$copy:
	shl.b32 %%r4, %%r3, 4;
	cvt.u64.u32 %%rd3, %%r4;
	add.s64 %%rd3, %%rd1, %%rd3;
	shr.u32 %%r5, %%r3, 3;
	and.b32 %%r6, %%r3, 7;
`)
	if swizzled {
		b.WriteString("	and.b32 %r7, %r5, 7;\n	xor.b32 %r6, %r6, %r7;\n	shl.b32 %r5, %r5, 7;\n	shl.b32 %r6, %r6, 4;\n")
	} else {
		// The eight rows of a column's piece lie behind each other, then the columns, then the next eight rows.
		b.WriteString("	and.b32 %r7, %r5, 7;\n	shr.u32 %r5, %r5, 3;\n	shl.b32 %r5, %r5, 10;\n	shl.b32 %r7, %r7, 4;\n	add.s32 %r5, %r5, %r7;\n	shl.b32 %r6, %r6, 7;\n")
	}
	fmt.Fprintf(&b, `	add.s32 %%r5, %%r5, %%r6;
	add.s32 %%r5, %%r5, %%r2;
	cp.async.cg.shared.global [%%r5], [%%rd3], 16;
	add.s32 %%r3, %%r3, 128;
	setp.lt.u32 %%p1, %%r3, %d;
	@%%p1 bra $copy;
	cp.async.commit_group; // MUST has not waited for its cp.async of line
	cp.async.wait_group 0; // MUST has not waited for its cp.async of line
`, 8*(64+n))
	if registers {
		// Row lane/4 of the warp's 16, and columns 2·(lane%4) and up, from memory.
		b.WriteString(`	and.b32 %r3, %r1, 31;
	shr.u32 %r4, %r1, 5;
	shr.u32 %r5, %r3, 2;
	shl.b32 %r4, %r4, 4;
	add.s32 %r4, %r4, %r5;
	shl.b32 %r4, %r4, 7;
	and.b32 %r5, %r3, 3;
	shl.b32 %r5, %r5, 2;
	add.s32 %r4, %r4, %r5;
	cvt.u64.u32 %rd3, %r4;
	add.s64 %rd3, %rd1, %rd3;
`)
		for k := range 4 {
			for i := range 4 {
				fmt.Fprintf(&b, "	ld.global.b32 %%r%d, [%%rd3+%d];\n", 10+4*k+i, 32*k+i%2*1024+i/2*16)
			}
		}
	}
	b.WriteString(`	fence.proxy.async; // MUST has not executed fence.proxy.async since
	bar.sync 0; // MUST no barrier lies between its fence.proxy.async and this
	shr.u32 %r3, %r2, 4;
	cvt.u64.u32 %rd4, %r3;
`)
	if swizzled {
		b.WriteString("	or.b64 %rd4, %rd4, 4611686293305294848;\n") // a stride of 1024, and 1 in the highest two bits
	} else {
		b.WriteString("	or.b64 %rd4, %rd4, 274878431232;\n") // a stride of 1024, leading 128
	}
	b.WriteString("	add.s64 %rd5, %rd4, 512;\n	setp.ne.b32 %p2, %r1, %r1;\n	setp.eq.b32 %p3, %r1, %r1;\n	wgmma.fence.sync.aligned; // MUST wgmma.fence\n")
	for k := range 4 {
		scale, step := "%p3", 2
		if k == 0 {
			scale = "%p2"
		}
		if !swizzled {
			step = 16
		}
		fmt.Fprintf(&b, "	add.s64 %%rd6, %%rd4, %d;\n	add.s64 %%rd7, %%rd5, %d;\n", step*k, step*k)
		if registers {
			fmt.Fprintf(&b, "	wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%[2]s %s, {%%r%d, %%r%d, %%r%d, %%r%d}, %%rd7, %s, 1, 1, 0;\n", n, typ, list, 10+4*k, 11+4*k, 12+4*k, 13+4*k, scale)
		} else {
			fmt.Fprintf(&b, "	wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%[2]s %s, %%rd6, %%rd7, %s, 1, 1, 0, 0;\n", n, typ, list, scale)
		}
	}
	fmt.Fprintf(&b, `	wgmma.commit_group.sync.aligned; // MUST for which the thread has not waited
	wgmma.wait_group.sync.aligned 0; // MUST for which the thread has not waited
	mul.wide.u32 %%rd3, %%r1, %d;
	add.s64 %%rd3, %%rd2, %%rd3;
`, 2*n)
	for i := range n / 2 {
		fmt.Fprintf(&b, "	st.global.b32 [%%rd3+%d], %%f%d;\n", 4*i, i)
	}
	b.WriteString("	bar.sync 0; // MUST has not waited for it\n	st.shared.b32 [%r2+8192], 1;\n")
	return b.String()
}

// TestMatrices: wgmma multiplies matrices with the layouts that its descriptors have, and what it needs is an error
// where it is missing.
func TestMatrices(t *testing.T) {
	for _, x := range []struct {
		n                   int
		typ                 string
		registers, swizzled bool
	}{{8, "f16", false, true}, {128, "f16", true, true}, {64, "bf16", false, true}, {24, "bf16", true, false}, {16, "f16", false, false}, {256, "f16", false, true}} {
		r := rand.New(rand.NewPCG(uint64(x.n), 3))
		in, values := halves(r, 64*(64+x.n), x.typ == "bf16")
		code := matrixKernel(x.n, x.typ, x.registers, x.swizzled)
		got, err := runKernel(code, 128, in, 64*4*x.n)
		require.NoError(t, err, "%+v", x)
		for thread := range 128 {
			for i := range x.n / 2 {
				row, column := thread/32*16+thread%32/4+8*(i/2%2), i/4*8+thread%4*2+i%2
				sum, all := 0., 0.
				for k := range 64 {
					p := values[64*row+k] * values[64*(64+column)+k]
					sum += p
					all += math.Abs(p)
				}
				require.InDelta(t, sum, single(uint64(binary.LittleEndian.Uint32(got[4*(thread*x.n/2+i):]))), all*0x1p-20, "%+v: row %d, column %d", x, row, column)
			}
		}
		if x.n < 128 {
			omissions(t, code, 128, in, got)
		}
	}
}

// TestBlocks: a block begins with nothing on its way, whatever the one before has left.
func TestBlocks(t *testing.T) {
	p, err := Parse([]byte(kernelOf(`
	ld.shared.b32 %r3, [%r2];
	mov.u32 %r4, %ctaid.x;
	mul.wide.u32 %rd3, %r4, 4;
	add.s64 %rd3, %rd2, %rd3;
	st.global.b32 [%rd3], %r3;
	mov.b32 %f0, 0;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $on;
	mbarrier.init.shared.b64 [%r2+16], 1;
	st.shared.b32 [%r2+1024], %r1;
	fence.proxy.async;
$on:
	bar.sync 0;
	setp.ne.u32 %p1, %r1, 32;
	@%p1 bra $multiply;
	cp.async.cg.shared.global [%r2], [%rd1], 16;
	cp.async.commit_group;
	cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2+32], [%rd1], 16, [%r2+16];
$multiply:
	mov.b64 %rd4, 274878431360;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd4, %rd4, %p2, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
`)))
	require.NoError(t, err)
	m := &Memory{}
	got := make([]byte, 12)
	require.NoError(t, p.Run(m, Launch{Params: []uint64{m.Add(make([]byte, 16)), m.Add(got)}, Grid: [3]uint32{3, 1, 1}, Block: 128, Shared: 64 << 10}))
	for i := range got {
		assert.Equal(t, byte(poison), got[i])
	}
}
