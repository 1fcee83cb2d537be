package record_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
)

var oneThread = [3]uint32{1, 1, 1}

// Every mistake gives an error that says what is wrong and names the call that made it. It
// does not affect the next recording.
func TestMistakesAtTheCall(t *testing.T) {
	type session = *record.Session
	other := record.New("other")
	foreigner := other.Input("x", ir.F32, 4)
	input := func(s session, shape ...int64) record.Tensor { return s.Input("x", ir.F32, shape...) }
	state := func(s session) record.Tensor { return s.State("state", ir.U8, 4, 4) }
	for name, c := range map[string]struct {
		do   func(s session)
		want string
	}{
		"tensor of another session": {func(s session) { s.Silu(foreigner) }, "did not come from this encoder"},
		"zero tensor":               {func(s session) { s.Fill(record.Tensor{}, 0, "") }, "did not come from this encoder"},
		"free of another session":   {func(s session) { s.NewPool("p", ir.Scratch).Free(foreigner) }, "did not come from this encoder"},

		"row without dimensions":  {func(s session) { s.Fill(s.State("scalar", ir.F32).Row(ir.Const(0)), 0, "") }, "Row of a tensor without dimensions"},
		"rows without dimensions": {func(s session) { s.Fill(s.State("scalar", ir.F32).Rows(ir.Const(0), ir.Const(1)), 0, "") }, "Rows of a tensor without dimensions"},
		"slice outside":           {func(s session) { s.Fill(s.State("x", ir.F32, 4).Slice(ir.Const(8), ir.Const(12)), 0, "") }, "Slice of 12 bytes from byte 8 on of a tensor of 16"},
		"transpose out of range":  {func(s session) { s.Silu(input(s, 4).Transpose(0, 1)) }, "Transpose of dimensions 0 and 1 of 1"},
		"reshape of other size":   {func(s session) { s.Silu(input(s, 4).Reshape(record.Dims(2)...)) }, "Reshape of 4 elements to 2"},
		"reshape negative":        {func(s session) { s.Silu(input(s, 4).Reshape(record.Dims(-2, -2)...)) }, "a dimension of -2"},
		"reshape transposed":      {func(s session) { s.Silu(input(s, 2, 3).Transpose(0, 1).Reshape(record.Dims(6)...)) }, "not row-contiguous"},
		"reshape inner param":     {func(s session) { n := s.Param("n", 1, 2); s.Silu(input(s, 4).Reshape(n, n)) }, "only the outermost dimension"},
		"reshape, then copy":      {func(s session) { x := input(s, 2, 2).Reshape(record.Dims(3)...); s.CopyTo("copy", x, x) }, "Reshape of 4 elements to 3"},
		"into a bad view":         {func(s session) { s.Silu(input(s, 4), record.Into(s.Output("y", ir.F32, 2).Reshape(record.Dims(4)...))) }, "Into: Reshape of 2 elements"},

		"copy of a column": {func(s session) { s.Copy(state(s).Row(ir.Const(0)), state(s).Transpose(0, 1).Row(ir.Const(1)), "") }, "is strided"},
		"fill of a column": {func(s session) { s.Fill(state(s).Transpose(0, 1).Row(ir.Const(1)), 0, "") }, "is strided"},
		"copy of lengths":  {func(s session) { s.Copy(state(s).Row(ir.Const(0)), state(s).Slice(ir.Const(8), ir.Const(3)), "") }, "their lengths differ"},
		"copy with overlap": {func(s session) {
			s.Copy(state(s).Slice(ir.Const(0), ir.Const(4)), state(s).Slice(ir.Const(3), ir.Const(4)), "")
		}, "overlap"},
		"copy before itself": {func(s session) {
			s.Copy(state(s).Slice(ir.Const(3), ir.Const(4)), state(s).Slice(ir.Const(0), ir.Const(4)), "")
		}, "overlap"},

		"scratch of negative shape": {func(s session) { s.Scratch(ir.F32, record.Dims(-2, -3)...) }, "has no size"},
		"scratch that wraps":        {func(s session) { s.Scratch(ir.F32, record.Dims(1<<32+1, 1<<32)...) }, "is too large"},
		"scratch beside scratch": {func(s session) {
			for range 3 {
				s.Scratch(ir.U8, record.Dims(1<<46)...)
			}
		}, "is too large beside"},
		"scratch of a negative param": {func(s session) { s.Scratch(ir.F32, s.Param("n", 1, 4).AddConst(-2)) }, "has no size"},
		"pool of negative shape":      {func(s session) { s.NewPool("p", ir.Scratch).Alloc(ir.F32, -2, -3) }, "has no size"},
		"pool that wraps":             {func(s session) { s.NewPool("p", ir.Scratch).Alloc(ir.F32, 1<<32+1, 1<<32) }, "is too large"},
		"pool of everything":          {func(s session) { s.NewPool("p", ir.Scratch).Alloc(ir.U8, math.MaxInt64) }, "is too large"},

		"add of integers":    {func(s session) { x := s.Input("i", ir.U32, 4); s.Add(x, x) }, "takes f32, f16 or bf16, not u32"},
		"mul of shapes":      {func(s session) { s.Mul(input(s, 2, 3), s.Input("y", ir.F32, 3, 2)) }, "do not fit"},
		"silu of a scalar":   {func(s session) { s.Silu(s.Input("scalar", ir.F32)) }, "at least one dimension"},
		"argmax of a scalar": {func(s session) { s.Argmax(s.Input("scalar", ir.F32)) }, "at least one dimension"},
		"add of two types":   {func(s session) { s.Add(input(s, 4), s.Input("h", ir.F16, 4)) }, "takes operands of one type, not f32[4] and f16[4]"},
		"no such kernel": {func(s session) {
			x := s.Input("narrow", ir.F16, 2, 3, 4)
			s.Sub(x.Transpose(0, 2), x.Reshape(record.Dims(4, 3, 2)...))
		}, `no function "g3_Subtractfloat16" (there is `},
		"more dimensions than a kernel has": {func(s session) {
			x := input(s, 2, 3, 4, 5, 6)
			s.Add(x.Transpose(0, 4).Transpose(1, 3), x.Reshape(record.Dims(6, 5, 4, 3, 2)...))
		}, "gn2_Addfloat32: @require ndim == 4 does not hold"},
		"into a strided result": {func(s session) {
			s.Silu(input(s, 2, 3).Transpose(0, 1), record.Into(s.Output("y", ir.F32, 3, 2)))
		}, "silu gives f32[3, 2] with the strides [1 3] of its operand, Into has f32[3, 2] with strides [2 1]"},
		"into a transposed":  {func(s session) { s.Silu(input(s, 3, 2), record.Into(s.Output("y", ir.F32, 2, 3).Transpose(0, 1))) }, "results are row-contiguous"},
		"copy to other type": {func(s session) { s.CopyTo("copy", s.State("i", ir.U32, 2, 2), input(s, 2, 2)) }, "both are of one type"},
		"matmul of a scalar": {func(s session) { s.Matmul(s.Input("scalar", ir.F32), record.Dense(input(s, 4, 4))) }, "at least one dimension"},
		"matmul by a vector": {func(s session) { s.Matmul(input(s, 4), record.Dense(input(s, 4))) }, "want a dense matrix [N, K]"},
		"matmul by nothing":  {func(s session) { s.Matmul(input(s, 4), record.Matrix{}) }, "want a dense matrix [N, K]"},
		"matmul transposed":  {func(s session) { s.Matmul(input(s, 1, 4), record.Dense(s.Input("w", ir.F32, 4, 4).Transpose(0, 1))) }, "is not row-contiguous"},
		"matmul of 7 bits": {func(s session) {
			q := record.QTensor{W: s.Weight("w7", ir.NewBlob(make([]byte, 4*28)), ir.U32, 4, 7), N: 4, K: 32, Bits: 7, Group: 32}
			q.Scales, q.Biases = s.RandomWeight("s7", 1, ir.F32, 4, 1), s.RandomWeight("b7", 2, ir.F32, 4, 1)
			s.Matmul(input(s, 1, 32), record.Quantized(q))
		}, "matmul: MLX has [2 3 4 5 6 8] bits in groups of [32 64 128], not 7 bits in groups of 32"},
		"matmul of no bits": {func(s session) { s.Matmul(input(s, 1, 4), record.Quantized(record.QTensor{N: 4, K: 4})) }, "whole groups and whole 32-bit words"},
		"matmul of wrong scales": {func(s session) {
			w := s.Input("w", ir.U32, 8, 8)
			z := s.Input("z", ir.F32, 8, 2)
			s.Matmul(input(s, 1, 64), record.Quantized(record.QTensor{W: w, Scales: z, Biases: z, N: 8, K: 64, Bits: 4, Group: 64}))
		}, "needs 64 words, 8 scales and 8 biases, and has 64, 16 and 16"},
		"embed of floats":   {func(s session) { s.Embed(input(s, 4), record.Dense(s.Input("w", ir.F32, 4, 4))) }, "embed takes i32"},
		"rope of odd heads": {func(s session) { s.Rope(input(s, 1, 2, 3), ir.Const(0), 1e4, false) }, "want an even number of elements"},
		"rope without base": {func(s session) { s.Rope(input(s, 1, 2, 4), ir.Const(0), 0, false) }, "a base above 0"},
		"sdpa of other heads": {func(s session) {
			k := s.Input("k", ir.F32, 1, 2, 128)
			s.SDPA(input(s, 1, 2, 64), k, k, ir.Const(1), 1)
		}, "the same head size in all three"},
		"sdpa past the cache": {func(s session) {
			k := s.Input("k", ir.F32, 4, 2, 64)
			s.SDPA(input(s, 1, 2, 64), k, k, s.Param("n", 1, 5), 1)
		}, "$n positions may be more than the 4 of the cache"},
		"kv_write past the cache": {func(s session) {
			cache := s.State("cache", ir.F32, 8, 2, 4)
			cache.Shape = record.Dims(4, 2, 4) // the rest of the memory belongs to another layer
			s.KVWrite(cache, input(s, 2, 2, 4), ir.Const(3))
		}, "5 positions may be more than the 4 of the cache"},

		"sdpa of wider keys": {func(s session) {
			k := s.Input("k", ir.F32, 1, 2, 64)
			s.SDPA(s.Input("q", ir.F16, 1, 2, 64), k, k, ir.Const(1), 1)
		}, "queries are f16, keys and values f32: want one type, or keys and values of f16 for queries of f32"},
		"sdpa of two types of keys": {func(s session) {
			s.SDPA(input(s, 1, 2, 64), s.Input("k", ir.F16, 1, 2, 64), s.Input("v", ir.F32, 1, 2, 64), ir.Const(1), 1)
		}, "takes operands of one type, not f16[1, 2, 64] and f32[1, 2, 64]"},
		"kv_write of one type": {func(s session) {
			k := input(s, 2, 2, 4)
			s.KVWriteRounded(s.State("keys", ir.F32, 8, 2, 4), s.State("values", ir.F32, 8, 2, 4), k, k, ir.Const(3))
		}, "keys f32[2, 2, 4] and values [2, 2, 4] into caches of f32: want f32 of one shape into f16 or bf16"},
		"kv_write of other values": {func(s session) {
			s.KVWriteRounded(s.State("keys", ir.F16, 8, 2, 4), s.State("values", ir.F16, 8, 2, 4), input(s, 2, 2, 4), s.Input("v", ir.F32, 1, 2, 4), ir.Const(3))
		}, "keys f32[2, 2, 4] and values [1, 2, 4] into caches of f16"},
		"kv_write past both caches": {func(s session) {
			k := input(s, 2, 2, 4)
			s.KVWriteRounded(s.State("keys", ir.F16, 4, 2, 4), s.State("values", ir.F16, 4, 2, 4), k, k, ir.Const(3))
		}, "5 positions may be more than the 4 of the cache"},
		"kv_write of values of another shape": {func(s session) {
			c := eightBits(s, 8, 2, 64)
			s.KVWriteQuantized(c, c, input(s, 2, 2, 64), s.Input("v", ir.F32, 1, 2, 64), ir.Const(3))
		}, "keys [2, 2, 64] and values [1, 2, 64]: want one shape"},
		"kv_write past a quantized cache": {func(s session) {
			c, k := eightBits(s, 4, 2, 64), input(s, 2, 2, 64)
			s.KVWriteQuantized(c, c, k, k, ir.Const(3))
		}, "5 positions may be more than the 4 of the cache"},
		"kv_write to other scales": {func(s session) {
			c, k := eightBits(s, 4, 2, 64), input(s, 1, 2, 64)
			c.Scales = s.State("other", ir.F16, 4, 2, 4)
			s.KVWriteQuantized(c, c, k, k, ir.Const(0))
		}, "codes [4, 2, 64] with scales [4, 2, 4]: want [positions, heads, dim] with [positions, heads, dim/32], and dim a multiple of 32"},
		"kv_write to codes of other bits": {func(s session) {
			k, c := input(s, 1, 2, 64), record.QuantizedCache{Codes: s.State("codes", ir.U8, 4, 2, 64), Scales: s.State("scales", ir.F16, 4, 2, 2)}
			s.KVWriteQuantized(c, c, k, k, ir.Const(0))
		}, "kv_write takes i8, not u8[4, 2, 64]"},
		"sdpa past a quantized cache": {func(s session) {
			c := eightBits(s, 4, 2, 64)
			s.SDPAQuantized(input(s, 1, 2, 64), c, c, s.Param("n", 1, 5), record.Attention{Scale: 1})
		}, "$n positions may be more than the 4 of the cache"},
		"sdpa of other quantized heads": {func(s session) {
			c := eightBits(s, 4, 2, 128)
			s.SDPAQuantized(input(s, 1, 2, 64), c, c, ir.Const(1), record.Attention{Scale: 1})
		}, "the same head size in all three"},

		"softcap of integers": {func(s session) { s.Softcap(s.Input("i", ir.U32, 4), 1) }, "takes f32, f16 or bf16, not u32"},
		"topk transposed":     {func(s session) { s.TopK(input(s, 2, 3).Transpose(0, 1), 1) }, "is not row-contiguous"},
		"weights of integers": {func(s session) { s.WeightedSum(input(s, 2, 3, 4), s.Input("i", ir.U32, 2, 3)) }, "takes f32, f16 or bf16, not u32"},
		"gather of integers": {func(s session) {
			s.GatherMatmul(s.Input("i", ir.U32, 1, 4), record.Dense(input(s, 2, 4, 4)), s.Input("ids", ir.U32, 1, 1))
		}, "takes f32, not u32"},
		"layer norm by a scalar": {func(s session) { s.LayerNorm(input(s, 2, 4), s.State("scalar", ir.F32), record.Tensor{}, 1) }, "without dimensions"},

		"encode of nothing":  {func(s session) { s.Encode(nil) }, "Encode of no graph"},
		"encode of nonsense": {func(s session) { s.Encode(&ir.Graph{Name: "g", Nodes: []ir.Node{&ir.Fill{Dst: ir.ViewOf(5, 0, 4)}}}) }, "memory 5 of 0"},
		"encode of other contents": {func(s session) {
			s.RandomWeight("w", 1, ir.F32, 4)
			o := record.New("o")
			o.Silu(o.RandomWeight("w", 2, ir.F32, 4), record.Into(o.Output("y", ir.F32, 4)))
			g, _ := o.Graph()
			s.Encode(g)
		}, "memory %w has other contents"},

		"name of a memory": {func(s session) { s.Input("a\nb", ir.F32, 4) }, "not printable"},
		"name of nothing":  {func(s session) { s.NewPool("", ir.Scratch); s.Input("", ir.F32, 4) }, "name is empty"},
		"no contents": {func(s session) {
			s.StateFrom("s", ir.Init{Kind: ir.InitBlob}, ir.F32, 4)
			s.StateFrom("s", ir.Init{Kind: ir.InitBlob}, ir.F32, 4)
		}, "without a blob"},
		"param without values":  {func(s session) { s.Param("p", 5, 4) }, "bound [5, 4] is empty"},
		"param of NaN":          {func(s session) { s.ParamF32("p", float32(math.NaN()), 4) }, "is empty"},
		"require nonsense":      {func(s session) { s.Require(s.Param("p", 1, 4), 0) }, "no value of the params satisfies"},
		"two kernels of a name": {func(s session) { f := foreign; s.Kernel(f); f.Function = "other"; s.Kernel(f) }, "there is a different kernel of the name @foreign"},
		"nameless kernel":       {func(s session) { s.Kernel(ir.Kernel{}) }, "name or function is empty"},

		"changed after its end": {func(s session) {
			x := s.State("s", ir.F32, 4)
			d := s.Dispatch(s.Function("vv_Addfloat32")).Buffer(0, x).Buffer(1, x).Buffer(2, x)
			d.Threads(record.Size(4), oneThread)
			d.Label("late")
		}, "changed after its end"},
		"bound after its end": {func(s session) {
			x := s.State("s", ir.F32, 4)
			d := s.Dispatch(s.Function("vv_Addfloat32")).Buffer(0, x).Buffer(1, x).Buffer(2, x)
			d.Threads(record.Size(4), oneThread)
			d.Uint32(2, 1)
		}, "changed after its end"},
		"grid below nothing": {func(s session) { s.Dispatch(s.Kernel(foreign)).Threads(record.Size(-1), oneThread) }, "dimension 0 of the grid is -1"},
		"grid over nothing":  {func(s session) { s.Dispatch(s.Kernel(foreign)).Threads([3]ir.Extent{}, oneThread) }, "divided by 0"},
		"grid of everything": {func(s session) { s.Dispatch(s.Kernel(foreign)).Threads(record.Size(1, 1<<40), oneThread) }, "dimension 1 of the grid"},
		"end of no group":    {func(s session) { s.EndGroup() }, "no group is open"},
	} {
		t.Run(name, func(t *testing.T) {
			for mode, with := range map[string][]record.Setting{"capture": nil, "live": {record.Live(device(t, testdevice.Options{}))}} {
				s := record.New("t", with...)
				c.do(s)
				require.ErrorContains(t, s.Err(), c.want, mode)
				_, err := s.Finish()
				require.ErrorContains(t, err, c.want, mode)
				s.Silu(s.Input("next", ir.F32, 4), record.Into(s.Output("out", ir.F32, 4)))
				if len(with) == 0 {
					_, err = s.Graph()
				} else {
					require.NoError(t, s.Close())
				}
				if len(with) == 0 {
					require.NoError(t, err, "the mistake is still there")
				}
			}
		})
	}
}

// Some mistakes show only at Finish.
func TestMistakesOfFinish(t *testing.T) {
	for name, c := range map[string]struct {
		do      func(s *record.Session)
		options []record.FinishOption
		want    string
	}{
		"open group":      {func(s *record.Session) { s.Group("g"); s.Commit("c"); s.EndGroup(); s.Group("h") }, nil, "1 groups are still open"},
		"optimized twice": {nil, []record.FinishOption{record.Optimize(optimize.New("zzz")), record.Optimize(optimize.New(""))}, "Optimize: given twice"},
		"passes unknown":  {nil, []record.FinishOption{record.Optimize(optimize.New("zzz"))}, `no pass "zzz"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := record.New("t")
			if c.do != nil {
				c.do(s)
			}
			_, err := s.Finish(c.options...)
			require.ErrorContains(t, err, c.want)
			_, err = s.Finish()
			require.NoError(t, err)
		})
	}
}

// Wrong settings make every Finish return the same error.
func TestEncodersThatCannotBe(t *testing.T) {
	d := device(t, testdevice.Options{})
	for name, c := range map[string]struct {
		name string
		with []record.Setting
		want string
	}{
		"nil device":          {"t", []record.Setting{record.Live(nil)}, "Live: the device is nil"},
		"nil device at last":  {"t", []record.Setting{record.Deferred(nil)}, "Deferred: the device is nil"},
		"live and deferred":   {"t", []record.Setting{record.Live(d), record.Deferred(d)}, "one of Live and Deferred"},
		"without a name":      {"", nil, "name is empty"},
		"with a strange name": {"a\n", []record.Setting{record.Live(d)}, "not printable"},
	} {
		t.Run(name, func(t *testing.T) {
			s := record.New(c.name, c.with...)
			for range 2 {
				_, err := s.Finish()
				require.ErrorContains(t, err, c.want)
			}
			_, err := s.Bytes(s.Input("x", ir.F32, 4))
			require.ErrorContains(t, err, c.want)
			require.NoError(t, s.Close())
		})
	}
}

// After Close every use is a mistake, and nothing has leaked.
func TestUseAfterClose(t *testing.T) {
	s := record.New("t", record.Live(device(t, testdevice.Options{})))
	x := s.State("x", ir.F32, 4)
	s.Add(x, x, record.Into(x))
	_, err := s.Finish()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s.Add(x, x, record.Into(x))
	for range 2 {
		_, err = s.Finish()
		require.ErrorContains(t, err, "it was closed")
	}
	_, err = s.Bytes(x)
	require.ErrorContains(t, err, "it was closed")
	require.NoError(t, s.Close())
}

// Bytes returns exactly the bytes of the tensor.
func TestBytesOfATensor(t *testing.T) {
	s := record.New("t", record.Live(device(t, testdevice.Options{})))
	x := s.Input("x", ir.F32, 4, 4)
	n := s.Param("n", 1, 3)
	part := x
	part.Shape = []ir.Affine{n, ir.Const(4)}
	for want, y := range map[int]record.Tensor{64: x, 16: x.Row(ir.Const(3)), 7: x.Slice(ir.Const(57), ir.Const(7)), 48: part} {
		b, err := s.Bytes(y)
		require.NoError(t, err)
		require.Len(t, b, want)
	}
	for _, y := range []record.Tensor{x.Row(ir.Const(4)), x.Row(ir.Const(-1)), x.Slice(ir.Const(60), ir.Const(5)), x.Slice(ir.Const(99), ir.Const(0)), x.Slice(ir.Const(4), ir.Const(-1))} {
		_, err := s.Bytes(y)
		require.Regexp(t, "reaches outside its memory of 64 bytes|Slice of .* of a tensor of 64", err)
	}
	require.NoError(t, s.Close())
}

// A function of the library becomes one kernel of the graph, whether an encoded graph or an
// operation brings it. Different kernels of the same name get different names.
func TestKernelsOfEncodedGraphs(t *testing.T) {
	o := record.New("o")
	f := foreign
	f.Function = "other"
	x := o.State("x", ir.F32, 4)
	o.Silu(x, record.Into(x))
	o.Dispatch(o.Kernel(f)).Buffer(0, x).Threads(record.Size(1), oneThread)
	g, err := o.Graph()
	require.NoError(t, err)

	s := record.New("s")
	s.Kernel(foreign)
	s.Encode(g)
	s.Silu(s.State("x", ir.F32, 4))
	s.Dispatch(s.Kernel(foreign)).Buffer(0, s.State("x", ir.F32, 4)).Threads(record.Size(1), oneThread)
	r, err := s.Graph()
	require.NoError(t, err)
	var names []string
	for _, k := range r.Kernels {
		names = append(names, k.Name+"="+k.Function)
	}
	require.Equal(t, []string{"foreign=foreign", "v_Silufloat32float32=v_Silufloat32float32", "foreign.2=other"}, names)
}

// Memories that the recorder declares itself get names that the caller has not used.
func TestNamesOfTheRecorder(t *testing.T) {
	s := record.New("t")
	one, zero, scratch := s.Input("one", ir.F32, 4), s.Input("zero", ir.F32, 4), s.Input("scratch", ir.F32, 4)
	s.Mul(s.RMSNorm(one, 1), scratch, record.Into(s.Output("y", ir.F32, 4)))
	s.LayerNorm(zero, record.Tensor{}, record.Tensor{}, 1e-5, record.Into(s.Output("z", ir.F32, 4)))
	_, err := s.Graph()
	require.NoError(t, err)
}

// A capture that the environment asks for does not disturb the engine's own capture.
func TestDumpBesideACapture(t *testing.T) {
	t.Setenv(record.DumpVariable, filepath.Join(t.TempDir(), "x.mlxg"))
	s := record.New("t", record.Live(device(t, testdevice.Options{})))
	x := s.State("x", ir.F32, 4)
	s.Silu(x, record.Into(x))
	require.False(t, s.Capturing())
	s.StartCapture()
	s.Sigmoid(x, record.Into(x))
	g, err := s.TakeCapture()
	require.NoError(t, err)
	require.Equal(t, 1, g.Stats().Dispatches)
	_, err = s.Finish()
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// Finish returns a capture that was begun and not taken.
func TestCaptureToTheEnd(t *testing.T) {
	s := record.New("t", record.Live(device(t, testdevice.Options{})))
	x := s.State("x", ir.F32, 4)
	s.Silu(x, record.Into(x))
	s.StartCapture()
	s.Sigmoid(x, record.Into(x))
	r, err := s.Finish()
	require.NoError(t, err)
	require.Equal(t, 1, r.Graph.Stats().Dispatches)
	s.Group("g")
	s.StartCapture()
	require.ErrorContains(t, s.Err(), "call EndGroup for each")
	require.NoError(t, s.Close())
}

// EncodeRecomputed places barriers even in a session with ManualBarriers.
func TestRecomputedBarriersAmongManualOnes(t *testing.T) {
	o := record.New("o")
	x := o.State("x", ir.F32, 4)
	o.Silu(x, record.Into(x))
	o.Silu(x, record.Into(x))
	g, err := o.Graph()
	require.NoError(t, err)
	s := record.New("s", record.ManualBarriers())
	s.EncodeRecomputed(g)
	y := s.State("y", ir.F32, 4)
	s.Silu(y, record.Into(y))
	s.Silu(y, record.Into(y))
	r, err := s.Finish()
	require.NoError(t, err)
	require.Equal(t, 1, r.Graph.Stats().Barriers)
	require.Len(t, r.Races(), 1)
}

// The stated effects of a kernel without a declaration are taken to be complete, so they
// must not leave out what the kernel's table of arguments says.
func TestEffectsAgainstTheTable(t *testing.T) {
	k := foreign
	k.Args = append([]ir.Arg(nil), foreign.Args...)
	k.Args[0].Access = ir.ReadArg
	for name, c := range map[string]struct {
		reads, writes bool
		want          string
	}{
		"nothing":     {want: "a %x[0:16] is read, but Reads leaves it out"},
		"reads alone": {reads: true, want: "b %y[0:16] is written, but Writes and Updates leave it out"},
		"writes only": {writes: true, want: "a %x[0:16] is read"},
		"both":        {reads: true, writes: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, late := range []bool{false, true} {
				s := record.New("t")
				x, y := s.Input("x", ir.F32, 4), s.State("y", ir.F32, 4)
				var reads, writes []record.Tensor
				if c.reads {
					reads = append(reads, x)
				}
				if c.writes {
					writes = append(writes, y)
				}
				d := s.Dispatch(s.Kernel(k)).Buffer(0, x).Buffer(1, y)
				if !late {
					d.Reads(reads...).Writes(writes...)
				}
				id := d.Threads(record.Size(1), oneThread)
				if late {
					s.Annotate(id, reads, writes)
				}
				_, err := s.Finish()
				if c.want == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.want)
				}
			}
		})
	}
}

// eightBits is a cache of 8 bits.
func eightBits(s *record.Session, positions, heads, dim int64) record.QuantizedCache {
	return record.QuantizedCache{Codes: s.State("codes", ir.I8, positions, heads, dim), Scales: s.State("scales", ir.F16, positions, heads, dim/32)}
}
