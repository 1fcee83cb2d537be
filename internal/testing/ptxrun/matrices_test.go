package ptxrun

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMatrixLoads: ldmatrix gives lane l columns 2·(l%4) and the next of row l/4, of each matrix; transposed, these
// are rows of that column; stmatrix stores what ldmatrix gives.
func TestMatrixLoads(t *testing.T) {
	in := make([]byte, 512)
	for i := range 256 { // matrix, row, column
		binary.LittleEndian.PutUint16(in[2*i:], uint16(i/64<<8|i/8%8<<4|i%8))
	}
	for _, trans := range []string{"", ".trans"} {
		for _, n := range []int{1, 2, 4} {
			registers := map[int]string{1: "{%r10}", 2: "{%r10, %r11}", 4: "{%r10, %r11, %r12, %r13}"}[n]
			code := fmt.Sprintf(`
	shl.b32 %%r3, %%r1, 4;
	add.s32 %%r4, %%r2, %%r3;
	cvt.u64.u32 %%rd3, %%r3;
	add.s64 %%rd4, %%rd1, %%rd3;
	add.s64 %%rd5, %%rd2, %%rd3;
	ld.global.v4.b32 {%%r5, %%r6, %%r7, %%r8}, [%%rd4];
	st.shared.v4.b32 [%%r4], {%%r5, %%r6, %%r7, %%r8};
	cp.async.wait_all;
	bar.warp.sync -1; // MUST no barrier lies between
	ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s, [%%r4];
	st.global.v4.b32 [%%rd5], {%%r10, %%r11, %%r12, %%r13};
	stmatrix.sync.aligned.m8n8.x%[1]d%[2]s.shared.b16 [%%r4+512], %[3]s;
	bar.warp.sync -1; // MUST no barrier lies between
	ld.shared.v4.b32 {%%r5, %%r6, %%r7, %%r8}, [%%r4+512];
	st.global.v4.b32 [%%rd5+512], {%%r5, %%r6, %%r7, %%r8};
`, n, trans, registers)
			want := make([]byte, 1024)
			for i := range want[512:] {
				want[512+i] = poison
			}
			copy(want[512:], in[:128*n])
			for lane := range 32 {
				for m := range n {
					for e := range 2 {
						row, column := lane/4, lane%4*2+e
						if trans != "" {
							row, column = column, row
						}
						binary.LittleEndian.PutUint16(want[16*lane+4*m+2*e:], uint16(m<<8|row<<4|column))
					}
				}
			}
			omissions(t, code, 32, in, want)
		}
	}
}

// TestElect: one thread is elected, the first.
func TestElect(t *testing.T) {
	got, err := runKernel(`
	elect.sync %r3|%p1, -1;
	@!%p1 bra $end;
	st.global.b32 [%rd2], %r1;
	st.global.b32 [%rd2+4], %r3;
$end:
	elect.sync _|%p1, -1;
`, 32, []byte{0}, 8)
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 8), got)
}

// TestDot: a sum of products has the bits that GPUs of compute capability 9.0 give it.
func TestDot(t *testing.T) {
	const one, inf, nan = 0x3c00, 0x7c00, 0x7e00
	h := func(x float64) uint16 { return uint16(half(x)) }
	b := func(x float32) uint16 { return uint16(math.Float32bits(x) >> 16) }
	s := func(x float64) uint32 { return math.Float32bits(float32(x)) }
	all := func(x uint16) (a [16]uint16) {
		for i := range a {
			a[i] = x
		}
		return a
	}
	but := func(a [16]uint16, i int, x uint16) [16]uint16 { a[i] = x; return a }
	for i, x := range []struct {
		a, b   [16]uint16
		c      uint32
		negate bool
		bfloat bool
		want   uint32
	}{
		{all(one), all(one), s(1), false, false, s(17)},
		{all(one), all(one), s(1), true, false, s(-15)},
		// Of numbers below 2^-25 of the greatest nothing is left, above it bits down to that.
		{all(h(0x1p-12)), all(h(0x1p-13)), s(1), false, false, s(1 + 0x1p-21)},
		{all(h(0x1p-13)), all(h(0x1p-13)), s(1), false, false, s(1)},
		{all(h(0x1p-12)), all(h(0x1.8p-13)), s(1), false, false, s(1 + 0x1p-21)},
		{all(h(0x1p-12)), all(h(-0x1.8p-13)), s(1), false, false, s(1 - 0x1p-21)},
		{all(h(0x1p-13)), all(h(-0x1p-13)), s(1), false, false, s(1)},
		// The sum is truncated.
		{but(all(0), 3, h(0x1p-12)), but(all(0), 3, h(0x1.8p-12)), s(1), false, false, s(1)},
		{but(all(0), 3, h(0x1p-12)), but(all(0), 3, h(0x1p-12)), s(-1), false, false, s(-1 + 0x1p-24)},
		{but(all(0), 3, h(0x1p-13)), but(all(0), 3, h(0x1p-12)), s(-1), false, false, s(-1 + 0x1p-24)},
		// The exponent of 1.5 · 1.5 counts as 0.
		{but(but(all(h(0x1p-12)), 0, h(1.5)), 1, 0), but(all(h(0x1p-13)), 0, h(1.5)), 0, false, false, s(2.25 + 0x1p-22)},
		// Nothing is rounded where all is exact, and small numbers are none.
		{but(all(0), 3, h(0x1p-24)), but(all(0), 3, h(0x1p-24)), 0, false, false, s(0x1p-48)},
		{but(all(0), 3, b(0x1p-100)), but(all(0), 3, b(0x1p-45)), 0, false, true, 1 << 4},
		{but(all(0), 3, b(0x1p-100)), but(all(0), 3, b(0x1p-51)), 0, false, true, 0},
		{but(all(0), 3, b(0x1p-130)), but(all(0), 3, b(0x1p10)), 1, false, true, s(0x1p-120)},
		{all(0), all(0), 0x0040_0000, false, true, 0x0040_0000},
		{all(0), all(0), 1 << 31, false, false, 0},
		{all(0), all(1 << 15), 1 << 31, false, false, 1 << 31},
		{all(b(0x1p100)), all(b(0x1p27)), 0, false, true, 0x7f800000},
		{all(b(0x1p100)), all(b(-0x1p27)), 0, false, true, 0xff800000},
		{but(all(one), 3, inf), all(one), 0, false, false, 0x7f800000},
		{but(all(one), 3, inf), all(one), 0, true, false, 0xff800000},
		{but(all(one), 3, inf), all(0), 0, false, false, nan32},
		{but(all(one), 3, inf), all(one), 0xff800000, false, false, nan32},
		{but(all(one), 3, nan), all(one), 0, false, false, nan32},
		// What an H200 computed, by the measurements of Khattak and Mikaitis (arXiv 2512.07004): with one bit more or
		// less these would be others.
		{[16]uint16{0x3f8b, 0x3ed0, 0xb811, 0xb856, 0xbaf5, 0x3043, 0x3f4e, 0x3553, 0x32a5, 0xbae9, 0x3dae, 0x2cff, 0xb440, 0x3b23, 0x283a, 0xbe4f},
			[16]uint16{0xb670, 0xb879, 0x3fb4, 0x3198, 0x2d61, 0x411c, 0x3a87, 0x2663, 0xbd70, 0x3566, 0x3c25, 0x2db7, 0xbe6c, 0x2def, 0x34e9, 0x378a}, 0x3e142f36, false, false, 0xbe465b6e},
		{[16]uint16{0x3d45, 0x3ec5, 0xbd4f, 0xc02b, 0xbde9, 0x401e, 0x3f3c, 0xbf2c, 0x3e23, 0xc046, 0xbee5, 0xbf71, 0xbda3, 0xbfc7, 0xbd8c, 0xbe3b},
			[16]uint16{0xbfdf, 0xbe1b, 0xbed8, 0xbfa6, 0xbef1, 0x3fbc, 0xbeec, 0xbfcb, 0x3ed7, 0x3fe5, 0xbdd8, 0x4011, 0xbf0e, 0x3f22, 0xbd84, 0xbf0b}, 0x3e2045c7, false, true, 0xbef6ff3e},
	} {
		var a, b row16
		for k := range a {
			a[k], b[k] = elementOf(x.a[k], x.bfloat), elementOf(x.b[k], x.bfloat)
		}
		got := dot(&a, &b, &x.a, &x.b, x.c, x.negate, x.bfloat)
		assert.Equalf(t, x.want, got, "case %d: 0x%x, and not 0x%x", i, got, x.want)
	}
}
