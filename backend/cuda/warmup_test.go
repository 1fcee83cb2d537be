//go:build linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/ptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/msl"
)

// turning is the PTX of a kernel that reverses the numbers of each warp, stores 70 where the result is 7, and
// nothing behind the end. It has 8 instructions up to the wait, and 19 behind it.
const turning = `.version 8.0
.target sm_90
.address_size 64

.visible .entry mlxc_kernel(
	.param .u64 .ptr .global .align 1 mlxc_kernel_param_0,
	.param .u32 mlxc_kernel_param_1
)                                       // @mlxc_kernel
.maxntid 64
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<12>;
	.reg .b64 	%rd<4>;

// %bb.0:
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	shl.b32 	%r3, %r2, 6;
	add.s32 	%r4, %r3, %r1;
	ld.param.b64 	%rd1, [mlxc_kernel_param_0];
	mul.wide.u32 	%rd2, %r4, 4;
	add.s64 	%rd3, %rd1, %rd2;
	// begin inline asm
	griddepcontrol.wait;
	griddepcontrol.launch_dependents;
	// end inline asm
	ld.global.b32 	%r5, [%rd3];
	and.b32 	%r6, %r1, 31;
	xor.b32 	%r7, %r6, 31;
	shfl.sync.idx.b32 	%r8, %r5, %r7, 31, -1;
	add.s32 	%r10, %r8, 1;
	add.s32 	%r10, %r10, 1;
	add.s32 	%r10, %r10, 1;
	add.s32 	%r10, %r10, 1;
	add.s32 	%r10, %r10, 1;
	sub.s32 	%r8, %r10, 5;
	setp.ne.s32 	%p1, %r8, 7;
	@%p1 bra 	$L__BB0_2;
	mov.b32 	%r8, 70;
$L__BB0_2:                              // %end
	ld.param.b32 	%r9, [mlxc_kernel_param_1];
	setp.ge.u32 	%p2, %r4, %r9;
	@%p2 bra 	$L__BB0_3;
	st.global.b32 	[%rd3], %r8;
$L__BB0_3:
	ret;
}
`

var ofTurning = facts{threads: 64, blocks: [3]uint64{2, 1, 1}}

// TestWarmedUp: with a warm-up warp a kernel stores the same, and that warp, though it goes all the way, neither
// waits nor accesses memory.
func TestWarmedUp(t *testing.T) {
	run := func(text string, block uint32, memory bool) ([]byte, map[string]int) {
		p, err := ptxrun.Parse([]byte(text))
		require.NoError(t, err, "%s", text)
		var m ptxrun.Memory
		data := make([]byte, 4*128)
		for i := range 128 {
			binary.LittleEndian.PutUint32(data[4*i:], uint32(i))
		}
		params := []uint64{1 << 40, 100} // where nothing is
		if memory {
			params[0] = m.Add(data)
		}
		require.NoError(t, p.Run(&m, ptxrun.Launch{Params: params, Grid: [3]uint32{2, 1, 1}, Block: block}), "%s", text)
		return data, p.Calls
	}
	want, calls := run(turning, 64, true)
	assert.Equal(t, uint32(31), binary.LittleEndian.Uint32(want))
	assert.Equal(t, uint32(70), binary.LittleEndian.Uint32(want[4*24:]))
	assert.Equal(t, uint32(127-99+96), binary.LittleEndian.Uint32(want[4*99:]))
	assert.Equal(t, uint32(100), binary.LittleEndian.Uint32(want[4*100:]))
	text, ok := warmedUpText(t, turning, ofTurning)
	require.True(t, ok)
	assert.Contains(t, text, ".maxntid 96")
	got, again := run(text, 96, true)
	assert.Equal(t, want, got)
	assert.Equal(t, calls, again, "the threads that wait, and let others begin, are those of the launch")
	assert.Equal(t, map[string]int{"wait": 128, "launch_dependents": 128}, again)
	// If all warps warm up, memory that is not there is not accessed.
	all := strings.Replace(text, "%rehearses0, %thread0, 64", "%rehearses0, %thread0, 0", 1)
	require.NotEqual(t, text, all)
	_, none := run(all, 64, false)
	assert.Empty(t, none)
}

// warmedUpText is a text with a warm-up warp, if it can have one.
func warmedUpText(t *testing.T, text string, f facts) (out string, ok bool) {
	t.Helper()
	return string(changedText(t, []byte(text), func(m *ptx.Module) { ok = warmedUp(m, f, 132) })), ok
}

// TestNotWarmedUp: kernels get no warm-up warp where it could do harm, or would gain nothing.
func TestNotWarmedUp(t *testing.T) {
	_, ok := warmedUpText(t, turning, ofTurning)
	require.True(t, ok)
	const store = "\tst.global.b32 \t[%rd3], %r8;\n"
	for what, text := range map[string]string{
		"it does not wait":                strings.Replace(turning, "\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n", "", 1),
		"it goes round":                   strings.Replace(turning, "@%p2 bra \t$L__BB0_3", "@%p2 bra \t$L__BB0_2", 1),
		"its threads meet":                strings.Replace(turning, store, "\tbar.sync \t0;\n"+store, 1),
		"it has memory of a threadgroup":  strings.Replace(turning, store, "\tst.shared.b32 \t[%r1], %r8;\n"+store, 1),
		"it reads it":                     strings.Replace(turning, store, "\tld.shared.b32 \t%r8, [%r1];\n"+store, 1),
		"its memory may be any":           strings.Replace(turning, "st.global.b32", "st.b32", 1),
		"it counts in memory":             strings.Replace(turning, store, "\tatom.global.add.u32 \t%r8, [%rd3], 1;\n", 1),
		"it counts, and looks not":        strings.Replace(turning, store, "\tred.global.add.u32 \t[%rd3], 1;\n", 1),
		"it stores sometimes":             strings.Replace(turning, store, "\t@%p1 st.global.b32 \t[%rd3], %r8;\n", 1),
		"it calls":                        strings.Replace(turning, store, "\tcall.uni f, (%r1);\n"+store, 1),
		"two instructions are in a line":  strings.Replace(turning, store, "\tmov.b32 %r9, 1; mov.b32 %r10, 2;\n"+store, 1),
		"it asks for how many there are":  strings.Replace(turning, "%r2, %ctaid.x", "%r2, %ntid.x", 1),
		"it has rows of threads":          strings.Replace(turning, "%r2, %ctaid.x", "%r2, %tid.y", 1),
		"it is said nowhere how many are": strings.Replace(turning, ".maxntid 64\n", "", 1),
		"no instruction that is known":    strings.Replace(turning, store, "\tvote.sync.any.pred \t%p2, %p1, -1;\n"+store, 1),
		"a table of ways":                 strings.Replace(turning, store, "\tbrx.idx \t%r1, $ways;\n"+store, 1),
		"there is much before the wait":   strings.ReplaceAll(turning, "\tadd.s32 \t%r10, %r10, 1;\n", ""),
	} {
		require.NotEqual(t, turning, text, what)
		got, ok := warmedUpText(t, text, ofTurning)
		assert.False(t, ok, what)
		assert.Equal(t, text, got, what)
	}
	for what, f := range map[string]facts{
		"nobody knows how many blocks":     {threads: 64},
		"nor threads":                      {blocks: [3]uint64{2, 1, 1}},
		"no whole warps":                   {threads: 48, blocks: [3]uint64{2, 1, 1}},
		"there is no room in a block":      {threads: 1024, blocks: [3]uint64{1, 1, 1}},
		"others have warmed it up already": {threads: 64, blocks: [3]uint64{132*5 + 1, 1, 1}},
	} {
		_, ok := warmedUpText(t, turning, f)
		assert.False(t, ok, what)
	}
	// A branch back is no loop, if it makes no cycle.
	back := strings.Replace(turning, "$L__BB0_3:\n\tret;\n", "$L__BB0_3:\n\tbra \t$L__BB0_5;\n$L__BB0_4:\n\tret;\n$L__BB0_5:\n\tbra \t$L__BB0_4;\n", 1)
	_, ok = warmedUpText(t, back, ofTurning)
	assert.True(t, ok)
	_, ok = warmedUpText(t, strings.Replace(back, "$L__BB0_4:\n\tret;", "$L__BB0_4:\n\t@%p1 bra \t$L__BB0_3;\n\tret;", 1), ofTurning)
	assert.False(t, ok)
	// Unreachable code does not count.
	_, ok = warmedUpText(t, strings.Replace(turning, "$L__BB0_3:\n\tret;\n", "$L__BB0_3:\n\tret;\n$L__BB0_4:\n\tbar.sync \t0;\n\tbra \t$L__BB0_4;\n", 1), ofTurning)
	assert.True(t, ok)
}

// TestOwnWarmUp: the kernels of a decode get a warm-up warp, except for attention, which has a barrier.
func TestOwnWarmUp(t *testing.T) {
	archive, err := prebuilt.Own()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		scalars []uint64 // K, N or the like, as values
		grid    [6]uint64
		want    bool
	}{
		"affine_qmv_add_float_gs_32_b_4":          {[]uint64{576, 576}, [6]uint64{32, 288, 1, 32, 4, 1 | nvptx.WholeThreadgroups}, true},
		"affine_qmv_fast_add_float_gs_32_b_4":     {[]uint64{1536, 576}, [6]uint64{32, 288, 1, 32, 4, 1 | nvptx.WholeThreadgroups}, true},
		"affine_qmv_rms_silu_mul_float_gs_32_b_4": {[]uint64{925353388, 576, 1536}, [6]uint64{32, 768, 1, 32, 2, 1 | nvptx.WholeThreadgroups}, true},
		"sdpa_rows_float_64_64":                   {[]uint64{3, 100, 64, 192, 64, 192, 1040187392}, [6]uint64{2304, 1, 1, 256, 1, 1 | nvptx.WholeThreadgroups}, false},
	} {
		file := msl.Declarations(name)[0].File
		source, err := msl.Source(file)
		require.NoError(t, err)
		r := prebuilt.NewRequest(file, source, name)
		r.Launch = nvptx.Launch{Programmatic: true, Values: true}
		if strings.HasPrefix(name, "sdpa") {
			for i := range 6 {
				r.Constants = append(r.Constants, air.ConstantValue{Index: 20 + i})
			}
		}
		k, err := archive.Find(r)
		require.NoError(t, err, name)
		x := &kernel{kernel: k.Description}
		n := x.parameters() - 6
		var known []parameter
		for i := range n - len(c.scalars) {
			known = append(known, parameter{number: i, aligned: true})
		}
		for i, v := range append(c.scalars, c.grid[:]...) {
			known = append(known, parameter{number: n - len(c.scalars) + i, value: v})
		}
		f := x.facts(known)
		m, err := ptx.Parse(k.PTX)
		require.NoError(t, err, name)
		specialised(m, known)
		folded(m, f)
		opaque(m, known)
		assert.Equal(t, c.want, warmedUp(m, f, 132), name)
	}
}
