package record_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
)

// q8 returns a block of q8_0 with 32 weights code(i)/2.
func q8(code func(i int) int8) []byte {
	block := []byte{0x00, 0x38} // the f16 0.5, little-endian
	for i := range 32 {
		block = append(block, byte(code(i)))
	}
	return block
}

// This multiplies a row by a matrix in q8_0, whose bytes are those of a GGUF file.
func ExampleSession_MatmulGGML() {
	// The matrix has two rows of one block each: 0.5, 1, 1.5, …, 16, and −0.5 throughout.
	file := append(q8(func(i int) int8 { return int8(i + 1) }), q8(func(int) int8 { return -1 })...)

	d := cpu.New(1)
	defer d.Close()
	s := record.New("product", record.Live(d))
	defer s.Close()
	w := record.GGMLMatrix{Format: record.Q8_0, N: 2, K: 32}
	w.Blocks = s.Weight("w", ir.NewBlob(file), ir.U8, int64(len(file)))
	x, y := s.Input("x", ir.F32, 1, 32), s.Output("y", ir.F32, 1, 2)
	in, err := s.Bytes(x)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 32 {
		setFloats(in[4*i:], 1)
	}

	s.MatmulGGML(x, w, record.Into(y))

	if _, err := s.Finish(); err != nil {
		log.Fatal(err)
	}
	out, err := s.Bytes(y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(floats(out, 2))
	// Output:
	// [264 -16]
}

// There are two experts with one row each, and each of two rows of x goes to one of them.
func ExampleSession_GatherMatmulGGML() {
	file := append(q8(func(int) int8 { return 2 }), q8(func(int) int8 { return -2 })...)

	d := cpu.New(1)
	defer d.Close()
	s := record.New("experts", record.Live(d))
	defer s.Close()
	experts := record.GGMLMatrix{Format: record.Q8_0, N: 1, K: 32}
	experts.Blocks = s.Weight("experts", ir.NewBlob(file), ir.U8, 2, int64(len(file)/2))
	ids := s.Weight("ids", ir.NewBlob([]byte{1, 0, 0, 0, 0, 0, 0, 0}), ir.U32, 2, 1)
	x, y := s.Input("x", ir.F32, 2, 32), s.Output("y", ir.F32, 2, 1, 1)
	in, err := s.Bytes(x)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 32 {
		setFloats(in[4*i:], 1)
		setFloats(in[128+4*i:], 10)
	}

	s.GatherMatmulGGML(x, experts, ids, record.Into(y))

	if _, err := s.Finish(); err != nil {
		log.Fatal(err)
	}
	out, err := s.Bytes(y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(floats(out, 2))
	// Output:
	// [-32 320]
}

func TestGGMLFormats(t *testing.T) {
	require.Equal(t, "q6_K", record.Q6_K.String())
	require.Equal(t, "GGMLFormat(0)", record.GGMLFormat(0).String())
	require.EqualValues(t, []int64{36, 68, 210}, []int64{record.Q4_0.RowBytes(64), record.Q8_0.RowBytes(64), record.Q6_K.RowBytes(256)})
	require.Zero(t, record.Q4_0.RowBytes(48)+record.Q6_K.RowBytes(128)+record.Q8_0.RowBytes(0)+record.GGMLFormat(13).RowBytes(32))
	for f := record.Q4_0; f.String() != "GGMLFormat(13)"; f++ {
		named, ok := record.GGMLFormatNamed(strings.ToUpper(f.String()))
		require.True(t, ok)
		require.Equal(t, f, named)
	}
	_, ok := record.GGMLFormatNamed("Q8_1")
	require.False(t, ok)
}

// ggmlWeight returns weight k of a row of a matrix, by the definition of its format.
func ggmlWeight(f record.GGMLFormat, blocks []byte, row, k int) float64 {
	half := func(b []byte) float64 { return term.F16Value(binary.LittleEndian.Uint16(b)) }
	switch f {
	case record.Q4_0:
		b := blocks[row+k/32*18:]
		code := b[2+k%16] >> (k % 32 / 16 * 4) & 15
		return half(b) * (float64(code) - 8)
	case record.Q8_0:
		b := blocks[row+k/32*34:]
		return half(b) * float64(int8(b[2+k%32]))
	}
	b, j := blocks[row+k/256*210:], k%256
	low := b[j/128*64+j%64] >> (j % 128 / 64 * 4) & 15
	high := b[128+j/128*32+j%32] >> (j % 128 / 32 * 2) & 3
	return half(b[208:]) * float64(int8(b[192+j/16])) * (float64(low|high<<4) - 32)
}

// Live products equal those of the definition in float64: for every format, few and many
// rows, and experts that share a row of x or have their own.
func TestGGMLProducts(t *testing.T) {
	const n, experts, slots = 11, 3, 2
	d := cpu.New(2)
	defer d.Close()
	for _, f := range []record.GGMLFormat{record.Q4_0, record.Q8_0, record.Q6_K} {
		k := 96
		if f == record.Q6_K {
			k = 512
		}
		r := rand.New(rand.NewPCG(1, uint64(f)))
		size := int(f.RowBytes(int64(k)))
		file := make([]byte, experts*n*size)
		for i := range file {
			file[i] = byte(r.Uint32())
		}
		for i := 0; i < len(file); i += size / (k / map[bool]int{true: 256, false: 32}[f == record.Q6_K]) {
			at := i
			if f == record.Q6_K {
				at += 208
			}
			binary.LittleEndian.PutUint16(file[at:], 0x2000+uint16(r.IntN(0x800)))
		}
		for _, rows := range []int64{1, 2, 9} {
			s := record.New("t", record.Live(d))
			stack := record.GGMLMatrix{Format: f, N: n, K: int64(k), Blocks: s.Weight("w", ir.NewBlob(file), ir.U8, experts, n, int64(size))}
			one := stack // the second matrix of the stack
			one.Blocks = stack.Blocks.Slice(ir.Const(int64(n*size)), ir.Const(int64(n*size)))
			x, ids := s.Input("x", ir.F32, rows, int64(k)), s.Input("ids", ir.U32, rows, slots)
			own := s.Input("own", ir.F32, rows, slots, int64(k))
			y := s.Output("y", ir.F32, rows, n)
			shared, each := s.Output("shared", ir.F32, rows, slots, n), s.Output("each", ir.F32, rows, slots, n)
			fill := func(x record.Tensor) []float32 {
				b, err := s.Bytes(x)
				require.NoError(t, err)
				for i := 0; i < len(b); i += 4 {
					setFloats(b[i:], float32(r.NormFloat64()))
				}
				return floats(b, len(b)/4)
			}
			xs, owns := fill(x), fill(own)
			b, err := s.Bytes(ids)
			require.NoError(t, err)
			for i := range b {
				b[i] = 0
			}
			for i := 0; i < len(b); i += 4 {
				b[i] = byte(r.IntN(experts + 1)) // the ID `experts` is outside the stack
			}

			s.MatmulGGML(x, one, record.Into(y))
			s.GatherMatmulGGML(x, stack, ids, record.Into(shared))
			s.GatherMatmulGGML(own, stack, ids, record.Into(each))
			_, err = s.Finish()
			require.NoError(t, err)

			check := func(got float32, expert, column int, x []float32) {
				if expert >= experts {
					require.True(t, got != got)
					return
				}
				var want, scale float64
				for i, v := range x {
					p := float64(v) * ggmlWeight(f, file, (expert*n+column)*size, i)
					want, scale = want+p, scale+math.Abs(p)
				}
				require.InDelta(t, want, got, 1e-6*scale, "%s: %d rows, column %d of expert %d", f, rows, column, expert)
			}
			results := func(y record.Tensor, n int) []float32 {
				b, err := s.Bytes(y)
				require.NoError(t, err)
				return floats(b, n)
			}
			got := results(y, int(rows)*n)
			gotShared, gotEach := results(shared, int(rows)*slots*n), results(each, int(rows)*slots*n)
			for row := range int(rows) {
				for c := range n {
					check(got[row*n+c], 1, c, xs[row*k:][:k])
					for j := range slots {
						at := row*slots + j
						id := int(b[4*at])
						check(gotShared[at*n+c], id, c, xs[row*k:][:k])
						check(gotEach[at*n+c], id, c, owns[at*k:][:k])
					}
				}
			}
			require.NoError(t, s.Close())
		}
	}
}

// A matrix in blocks of any format is a [record.Matrix]: rows of an embedding are its weights, and products with few
// and with many rows, of all types, are those with them, rounded to the type. Goldens of the kernels say that the weights
// are right.
func TestGGMLMatrices(t *testing.T) {
	const n = 11
	d := cpu.New(1)
	defer d.Close()
	for f := record.Q4_0; f <= record.Q5_K; f++ {
		for _, of := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
			unit := map[ir.DType]float64{ir.F32: 0x1p-24, ir.F16: 0x1p-11, ir.BF16: 0x1p-8}[of]
			k := int64(512)
			size := f.RowBytes(k)
			r := rand.New(rand.NewPCG(2, uint64(f)))
			file := make([]byte, 1+n*size)
			least := 0x0c // numbers of f16 near 0.001, so that products fit f16
			if f == record.MXFP4 {
				least = 0x68
			}
			for i := range file {
				file[i] = byte(least + r.IntN(0x14))
			}
			s := record.New("t", record.Live(d))
			memory := s.Weight("w", ir.NewBlob(file), ir.U8, 1+n*size)
			at := int64(0)
			if f == record.MXFP4 {
				at = 1 // it has no f16
			}
			matrix := record.GGMLMatrix{Format: f, N: n, K: k, Blocks: memory.Slice(ir.Const(at), ir.Const(n*size))}
			w := record.Blocks(matrix)
			ids, rows := s.Input("ids", ir.I32, n), s.Output("rows", of, n, k)
			weights := s.Output("weights", ir.F32, n, k)
			few, many, picked := s.Output("few", of, 2, n), s.Output("many", of, n, n), s.Output("picked", of, n, 1, n)
			b, err := s.Bytes(ids)
			require.NoError(t, err)
			for i := range n {
				binary.LittleEndian.PutUint32(b[4*i:], uint32(n-1-i))
			}
			first := s.Weight("first", ir.NewBlob(make([]byte, 4*n)), ir.U32, n, 1)

			s.Embed(ids, w, record.Into(weights))
			s.EmbedGGML(ids, matrix, of, record.Into(rows))
			s.Matmul(rows.Rows(ir.Const(0), ir.Const(2)), w, record.Into(few))
			s.Matmul(rows, w, record.Into(many))
			s.GatherMatmul(rows, w, first, record.Into(picked))
			_, err = s.Finish()
			require.NoError(t, err)

			numbers := func(x record.Tensor) []float64 {
				b, err := s.Bytes(x)
				require.NoError(t, err)
				return widened(x.DType, b)
			}
			ws, xs := numbers(weights), numbers(rows)
			for i, v := range ws {
				require.InDelta(t, v, xs[i], unit*math.Abs(v)+0x1p-25, "%s in %s", f, of) // subnormal numbers of f16 are 2^-24 apart
			}
			fews, manys, pickeds := numbers(few), numbers(many), numbers(picked)
			for i := range n {
				for j := range n {
					var want, scale float64
					for c := range int(k) {
						p := xs[i*int(k)+c] * ws[(n-1-j)*int(k)+c]
						want, scale = want+p, scale+math.Abs(p)
					}
					require.NotZero(t, scale)
					bound := 4e-6*scale + unit*math.Abs(want)
					require.InDelta(t, want, manys[i*n+j], bound, "%s in %s: row %d, column %d of many", f, of, i, j)
					require.InDelta(t, want, pickeds[i*n+j], bound, "%s in %s: row %d, column %d of one that is picked", f, of, i, j)
					if i < 2 {
						require.InDelta(t, want, fews[i*n+j], bound, "%s in %s: row %d, column %d of few", f, of, i, j)
					}
				}
			}
			require.NoError(t, s.Close())
		}
	}
}

// The number of rows may be a param, also for the passes and the proof.
func TestGGMLRowsOfAParam(t *testing.T) {
	s := record.New("t")
	rows := s.Param("rows", 1, 8)
	w := record.GGMLMatrix{Format: record.Q4_0, N: 64, K: 64, Blocks: s.RandomWeight("w", 1, ir.U8, 64, 36)}
	experts := w
	experts.Blocks = s.RandomWeight("experts", 2, ir.U8, 4, 64, 36)
	x, ids := s.Input("x", ir.F32, 8, 64), s.Input("ids", ir.U32, 8, 2)
	y := s.Output("y", ir.F32, 8, 2, 64)
	x.Shape, ids.Shape, y.Shape = []ir.Affine{rows, ir.Const(64)}, []ir.Affine{rows, ir.Const(2)}, []ir.Affine{rows, ir.Const(2), ir.Const(64)}
	h := s.Silu(s.MatmulGGML(x, w))
	s.GatherMatmulGGML(s.Add(h, x), experts, ids, record.Into(y))
	o := optimize.New("")
	_, err := s.Finish(record.Optimize(o))
	require.NoError(t, err)
	require.Equal(t, prove.Proved, o.Result.Proof.Verdict)
}

func TestGGMLMistakes(t *testing.T) {
	u8 := func(s *record.Session, shape ...int64) record.Tensor { return s.RandomWeight("w", 1, ir.U8, shape...) }
	for _, c := range []struct {
		name string
		make func(s *record.Session)
		want string
	}{
		{"K is no whole number of blocks", func(s *record.Session) {
			s.MatmulGGML(s.Input("x", ir.F32, 1, 128), record.GGMLMatrix{Format: record.Q6_K, N: 2, K: 128, Blocks: u8(s, 2, 105)})
		}, "record t: quantized_matmul_ggml: there can be no matrix q6_K [2, 128]: want N of at least 1 and K a multiple of 256"},
		{"no format", func(s *record.Session) {
			s.MatmulGGML(s.Input("x", ir.F32, 1, 32), record.GGMLMatrix{N: 2, K: 32, Blocks: u8(s, 36)})
		}, "record t: quantized_matmul_ggml: there can be no matrix GGMLFormat(0) [2, 32]: the format is not known"},
		{"other blocks", func(s *record.Session) {
			s.MatmulGGML(s.Input("x", ir.F32, 1, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 2, 34)})
		}, "record t: quantized_matmul_ggml: the blocks of q4_0 [2, 64] are u8[2, 34]: want row-contiguous u8, 72 bytes a matrix (2 rows of 36)"},
		{"codes of another type", func(s *record.Session) {
			s.MatmulGGML(s.Input("x", ir.F32, 1, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: s.RandomWeight("w", 1, ir.U32, 2, 36)})
		}, "record t: quantized_matmul_ggml: the blocks of q4_0 [2, 64] are u32[2, 36]: want row-contiguous u8, 72 bytes a matrix (2 rows of 36)"},
		{"an odd offset", func(s *record.Session) {
			w := u8(s, 80).Slice(ir.Const(3), ir.Const(72))
			s.MatmulGGML(s.Input("x", ir.F32, 1, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: w})
		}, "record t: quantized_matmul_ggml: the blocks of q4_0 [2, 64][72] begin at byte 3 of their memory: want an even offset, because f16 numbers are read from them"},
		{"several matrices", func(s *record.Session) {
			s.MatmulGGML(s.Input("x", ir.F32, 1, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 3, 2, 36)})
		}, "record t: quantized_matmul_ggml: the blocks of q4_0 [2, 64] hold 3 matrices: want one"},
		{"other rows", func(s *record.Session) {
			s.MatmulGGML(s.Input("x", ir.F32, 1, 32), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 2, 36)})
		}, "record t: quantized_matmul_ggml: f32[1, 32] times q4_0 [2, 64]: want row-contiguous rows of 64 in f32, f16 or bf16"},
		{"rows of another type", func(s *record.Session) {
			s.MatmulGGML(s.Input("x", ir.U32, 1, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 2, 36)})
		}, "record t: quantized_matmul_ggml: u32[1, 64] times q4_0 [2, 64]: want row-contiguous rows of 64 in f32, f16 or bf16"},
		{"embeddings of another type", func(s *record.Session) {
			s.EmbedGGML(s.Input("ids", ir.I32, 1), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 2, 36)}, ir.U8)
		}, "record t: embed: rows in u8 of q4_0 [2, 64]: want f32, f16 or bf16"},
		{"ids of another type", func(s *record.Session) {
			s.GatherMatmulGGML(s.Input("x", ir.F32, 2, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 3, 2, 36)}, s.Input("ids", ir.I32, 2, 2))
		}, "record t: quantized_matmul_id_ggml: ids are i32[2, 2]: want row-contiguous u32 [T, k], k constant"},
		{"ids of other rows", func(s *record.Session) {
			s.GatherMatmulGGML(s.Input("x", ir.F32, 3, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 3, 2, 36)}, s.Input("ids", ir.U32, 2, 2))
		}, "record t: quantized_matmul_id_ggml: f32[3, 64] with ids [2, 2] times 3 matrices q4_0 [2, 64]: want row-contiguous [T, 64] or [T, k, 64] in f32, f16 or bf16"},
		{"ids of other slots", func(s *record.Session) {
			s.GatherMatmulGGML(s.Input("x", ir.F32, 2, 3, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 3, 2, 36)}, s.Input("ids", ir.U32, 2, 2))
		}, "record t: quantized_matmul_id_ggml: f32[2, 3, 64] with ids [2, 2] times 3 matrices q4_0 [2, 64]: want row-contiguous [T, 64] or [T, k, 64] in f32, f16 or bf16"},
		{"a result of another shape", func(s *record.Session) {
			s.MatmulGGML(s.Input("x", ir.F32, 1, 64), record.GGMLMatrix{Format: record.Q4_0, N: 2, K: 64, Blocks: u8(s, 2, 36)}, record.Into(s.Output("y", ir.F32, 2, 1)))
		}, "record t: quantized_matmul_ggml gives f32[1, 2], Into has f32[2, 1]"},
	} {
		s := record.New("t")
		c.make(s)
		_, err := s.Graph()
		requireMistake(t, err, c.want, c.name)
	}
}
