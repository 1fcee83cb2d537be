package trace_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
)

// The writers in C and Python know the events of the reader's table.
func TestWritersHaveTheEvents(t *testing.T) {
	header, err := os.ReadFile("../../capture/mlxrec.h")
	require.NoError(t, err)
	python, err := os.ReadFile("../../python/mlxc/__init__.py")
	require.NoError(t, err)
	for line := range strings.Lines(trace.Schema()) {
		line = strings.TrimSuffix(line, "\n")
		_, event, _ := strings.Cut(line, " ")
		require.Contains(t, string(header), `"`+line+`\n"`)
		require.Contains(t, string(python), "\n"+event+"\n")
	}
	require.Equal(t, strings.Count(trace.Schema(), "\n"), strings.Count(string(header), `\n"`+"\n")+strings.Count(string(header), `\n";`+"\n"))
}

// log is a log in the making.
type log struct {
	bytes.Buffer
	*trace.Writer
	last uint64
}

func newLog() *log {
	l := &log{}
	l.Writer = trace.NewWriter(&l.Buffer)
	l.Event(trace.Program, "test", "test")
	return l
}

func (l *log) id() uint64 {
	l.last++
	return l.last
}

// kernel logs a kernel without code that can be described.
func (l *log) kernel(name string) uint64 {
	lib, k := l.id(), l.id()
	l.Event(trace.Library, lib, "metallib", name, []byte("no library"))
	l.Event(trace.Pipeline, k, lib, name)
	return k
}

func (l *log) buffer(size uint64, contents []byte) uint64 {
	b := l.id()
	l.Event(trace.Buffer, b, size)
	if contents != nil {
		l.Event(trace.Contents, b, uint64(0), contents)
	}
	return b
}

// encode logs a command buffer with one encoder, of which do logs the commands.
func (l *log) encode(concurrent uint64, do func(e uint64)) uint64 {
	c, e := l.id(), l.id()
	l.Event(trace.Commands, c, uint64(1))
	l.Event(trace.Encoder, e, c, "compute", concurrent)
	do(e)
	l.Event(trace.End, e)
	return c
}

func (l *log) run(concurrent uint64, do func(e uint64)) {
	c := l.encode(concurrent, do)
	l.Event(trace.Commit, c)
	l.Event(trace.Wait, c)
}

func (l *log) dispatch(e, kernel uint64, grid uint64, buffers ...uint64) {
	l.Event(trace.Use, e, kernel)
	for i, b := range buffers {
		l.Event(trace.Bind, e, uint64(i), b, uint64(0))
	}
	l.Event(trace.Dispatch, e, uint64(1), grid, uint64(1), uint64(1), uint64(32), uint64(1), uint64(1))
}

func word(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

func imported(t *testing.T, l *log, o trace.Options) *trace.Result {
	t.Helper()
	require.NoError(t, l.Err())
	f, err := trace.Read("test", l.Bytes())
	require.NoError(t, err)
	r, err := trace.Import(t.Context(), f, o)
	require.NoError(t, err)
	return r
}

func refused(t *testing.T, l *log) error {
	t.Helper()
	require.NoError(t, l.Err())
	f, err := trace.Read("test", l.Bytes())
	require.NoError(t, err)
	_, err = trace.Import(t.Context(), f, trace.Options{})
	require.Error(t, err)
	return err
}

// The padding of a struct, which holds what the stack held, is no number of a step. Who has no clang is told why it counts.
func TestPaddingWithoutClang(t *testing.T) {
	const text = `struct Args { uint n; uchar last; };
kernel void k(device uint *x [[buffer(0)]], constant Args &a [[buffer(1)]], uint i [[thread_position_in_grid]]) { x[i] = a.n + a.last; }
`
	l := newLog()
	lib, k := l.id(), l.id()
	l.Event(trace.Library, lib, "source", "k.metal", []byte("#include <metal_stdlib>\nusing namespace metal;\n"+text))
	l.Event(trace.Pipeline, k, lib, "k")
	x := l.buffer(64, nil)
	for _, garbage := range []uint32{7, 1, 9, 4, 4, 8, 2, 3} {
		l.run(0, func(e uint64) {
			l.Event(trace.Use, e, k)
			l.Event(trace.Bind, e, uint64(0), x, uint64(0))
			l.Event(trace.Bytes, e, uint64(1), append(word(5), word(garbage<<8|3)...))
			l.Event(trace.Dispatch, e, uint64(1), uint64(16), uint64(1), uint64(1), uint64(16), uint64(1), uint64(1))
		})
	}
	r := imported(t, l, trace.Options{})
	require.Len(t, r.Module.Graphs, 1)
	require.NotContains(t, mlxt.Format(r.Module), "$pos")

	t.Setenv("PATH", t.TempDir())
	t.Setenv(clang.Env, "")
	t.Chdir(t.TempDir()) // in the source tree a clang is found that was fetched there
	require.ErrorContains(t, refused(t, l), "bytes 4 to 8 at slot 1 is 1795 259 2307 1027 in the first runs of it (the params [pos] are [[0] [1] [2] [3]]): that is no sum of multiples of the params"+
		"; if it is padding, which a program that fills a struct leaves as it was, it does not count, but what k reads of the struct is not known here: no clang")
	require.ErrorContains(t, refused(t, l), "pip install ziglang")
}

// Numbers that differ from run to run become expressions in the param that counts the runs, in offsets, grids and bytes; a
// grid may be a quotient. A further run that does not agree is refused with the place.
func TestParams(t *testing.T) {
	steps := func(positions []uint32, spoil func(l *log, e uint64, pos uint32)) *log {
		l := newLog()
		k, x, y := l.kernel("k"), l.buffer(4096, make([]byte, 4096)), l.buffer(4096, nil)
		for _, pos := range positions {
			l.run(0, func(e uint64) {
				l.Event(trace.Use, e, k)
				l.Event(trace.Bind, e, uint64(0), x, uint64(64*pos))
				l.Event(trace.Bind, e, uint64(1), y, uint64(0))
				l.Event(trace.Bytes, e, uint64(2), bytes.Join([][]byte{word(7), word(pos), word(pos + 1)}, nil))
				if spoil != nil {
					spoil(l, e, pos)
				}
				l.Event(trace.Dispatch, e, uint64(0), uint64(pos+1+15)/16, uint64(2*pos+6), uint64(1), uint64(32), uint64(1), uint64(1))
			})
		}
		return l
	}
	r := imported(t, steps([]uint32{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, nil), trace.Options{})
	text := mlxt.Format(r.Module)
	require.Contains(t, text, "param $pos u32 in [0, 63]")
	require.Contains(t, text, "b0 = %buffer.3[64*$pos:4096]")
	require.Contains(t, text, "4: u32 $pos, 8: u32 $pos + 1")
	require.Contains(t, text, "grid threadgroups [ceildiv($pos + 1, 16), 2*$pos + 6, 1] of [32, 1, 1]")
	require.Equal(t, []string{
		"kernels of k, of which only what is bound is known (k: byte 0: is no Metal library: it does not begin with \"MTLB\"): k",
		"graph step: $pos was 5 to 17 in 13 runs, and may be 0 to 63",
	}[1], r.Remarks[0])

	err := refused(t, steps([]uint32{5, 6, 7, 8, 9, 10, 11, 12}, func(l *log, e uint64, pos uint32) {
		l.Event(trace.Bytes, e, uint64(3), word(pos*pos))
	}))
	require.ErrorContains(t, err, "graph step: dispatch of k (command 0), bytes 0 to 4 at slot 3 is 25 36 49 64 in the first runs of it (the params [pos] are [[5] [6] [7] [8]]): that is no sum of multiples of the params")

	require.ErrorContains(t, err, "if it is padding") // of code that cannot be read here
	require.ErrorContains(t, err, "what k reads of the struct is not known here: its code is of a compiled library")

	// Steps that are the same for a while, and then others of the same shape, are graphs of their own.
	n := 0
	r = imported(t, steps([]uint32{5, 5, 5, 5, 5, 5, 5}, func(l *log, e uint64, pos uint32) {
		l.Event(trace.Bytes, e, uint64(3), word([]uint32{256, 256, 256, 512, 512, 256, 512}[n]))
		n++
	}), trace.Options{})
	require.Len(t, r.Module.Graphs, 2)
	require.Equal(t, "step", r.Module.Graphs[0].Name)
	require.Equal(t, "step.2", r.Module.Graphs[1].Name)
	var ran []string
	for _, x := range r.Runs {
		ran = append(ran, x.Graph)
	}
	require.Equal(t, []string{"step", "step", "step", "step.2", "step.2", "step", "step.2"}, ran)
	require.Contains(t, strings.Join(r.Remarks, "\n"), "graph step: its numbers follow no param: 2 graphs, each of runs that are the same")
}

// Steps that say their params may have several.
func TestSeveralParams(t *testing.T) {
	l := newLog()
	k, x := l.kernel("k"), l.buffer(1<<20, nil)
	for _, v := range [][2]uint64{{0, 8}, {8, 8}, {16, 4}, {20, 1}} {
		l.Event(trace.Step, "prefill")
		l.Event(trace.Param, "pos", v[0])
		l.Event(trace.Param, "n", v[1])
		l.run(0, func(e uint64) {
			l.Event(trace.Use, e, k)
			l.Event(trace.Bind, e, uint64(0), x, 256*v[0])
			l.Event(trace.Bytes, e, uint64(1), word(uint32(v[0]+v[1])))
			l.Event(trace.Dispatch, e, uint64(1), 64*v[1], uint64(1), uint64(1), uint64(32), uint64(1), uint64(1))
		})
	}
	text := mlxt.Format(imported(t, l, trace.Options{}).Module)
	require.Contains(t, text, "param $pos u32 in [0, 20]")
	require.Contains(t, text, "param $n u32 in [1, 8]")
	require.Contains(t, text, "grid threads [64*$n, 1, 1]")
	require.Contains(t, text, "b0 = %buffer.3[256*$pos:1048576]")
	require.Contains(t, text, "u32 $pos + $n")
}

// Buffers become what the log shows that they are.
func TestRoles(t *testing.T) {
	l := newLog()
	k := l.kernel("k")
	weight, token := l.buffer(16, []byte("0123456789abcdef")), l.buffer(16, nil)
	staging, private := l.buffer(16, []byte("fedcba9876543210")), l.id()
	l.Event(trace.Buffer, private, uint64(32), uint64(2))
	// A blit before the first dispatch loads a weight.
	c, e := l.id(), l.id()
	l.Event(trace.Commands, c, uint64(1))
	l.Event(trace.Encoder, e, c, "blit")
	l.Event(trace.Copy, e, staging, uint64(0), private, uint64(8), uint64(16))
	l.Event(trace.Fill, e, private, uint64(0), uint64(4), uint64(0x41))
	l.Event(trace.End, e)
	l.Event(trace.Commit, c)
	l.Event(trace.Wait, c)
	cache, out := l.buffer(64, nil), l.buffer(16, nil)
	l.Event(trace.Name, out, "logits")
	for i := range uint64(2) {
		l.Event(trace.Contents, token, uint64(0), word(uint32(i)))
		l.run(1, func(e uint64) {
			l.Event(trace.Use, e, k)
			// What is read is named by hints, since the kernel's code says nothing.
			for slot, b := range []uint64{weight, token, private, cache, out} {
				l.Event(trace.Bind, e, uint64(slot), b, uint64(0))
				switch b {
				case out:
					l.Event(trace.Writes, e, uint64(slot), uint64(0), uint64(16), uint64(1))
				case cache:
					l.Event(trace.Reads, e, uint64(slot), uint64(0), uint64(64))
					l.Event(trace.Writes, e, uint64(slot), 16*i, uint64(16), uint64(1))
				default:
					l.Event(trace.Reads, e, uint64(slot), uint64(0), uint64(16))
				}
			}
			l.Event(trace.Dispatch, e, uint64(1), uint64(4), uint64(1), uint64(1), uint64(4), uint64(1), uint64(1))
			l.Event(trace.Barrier, e)
		})
	}
	g := imported(t, l, trace.Options{}).Module.Graphs[0]
	kinds := map[string]ir.MemKind{}
	for i := range g.Memories {
		kinds[g.Memories[i].Name] = g.Memories[i].Kind
	}
	name := func(id uint64) string { return fmt.Sprintf("buffer.%d", id) }
	// The kernel may write whatever is bound: only hints say that it does not. They are not asked yet for weights.
	require.Equal(t, ir.State, kinds[name(cache)])
	require.Equal(t, ir.Output, kinds["logits"])
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Name == name(private) {
			data, err := m.Init.Blob.Bytes()
			require.NoError(t, err)
			require.Equal(t, "AAAA\x00\x00\x00\x00fedcba9876543210\x00\x00\x00\x00\x00\x00\x00\x00", string(data))
		}
	}
	require.Contains(t, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}), "effects complete reads")
}

// The order of command buffers is that of their places in the queue, not that of their commits.
func TestEnqueue(t *testing.T) {
	l := newLog()
	first, second, x := l.kernel("first"), l.kernel("second"), l.buffer(16, nil)
	a := l.encode(0, func(e uint64) { l.dispatch(e, first, 1, x) })
	b := l.encode(0, func(e uint64) { l.dispatch(e, second, 2, x) })
	l.Event(trace.Enqueue, a)
	l.Event(trace.Enqueue, b)
	l.Event(trace.Commit, b)
	l.Event(trace.Commit, a)
	l.Event(trace.Wait, b)
	text := mlxt.Format(imported(t, l, trace.Options{}).Module)
	require.Less(t, strings.Index(text, "#0 @first"), strings.Index(text, "#1 @second"))
	require.Contains(t, text, "#0 @first")
}

// Encoders are ordered where Metal tracks their buffers or a fence says so, and not else.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		untracked, fence bool
		want             bool
	}{{false, false, true}, {true, false, false}, {true, true, true}} {
		l := newLog()
		k := l.kernel("k")
		x := l.id()
		tracked := uint64(0)
		if c.untracked {
			tracked = 1
		}
		l.Event(trace.Buffer, x, uint64(16), uint64(0), tracked)
		commands := l.id()
		l.Event(trace.Commands, commands, uint64(1))
		for i := range 2 {
			e := l.id()
			l.Event(trace.Encoder, e, commands, "compute", uint64(1))
			if i == 1 && c.fence {
				l.Event(trace.FenceWait, e, uint64(1))
			}
			l.dispatch(e, k, 1, x)
			if i == 0 && c.fence {
				l.Event(trace.FenceUpdate, e, uint64(1))
			}
			l.Event(trace.End, e)
		}
		l.Event(trace.Commit, commands)
		require.Equal(t, c.want, strings.Contains(mlxt.Format(imported(t, l, trace.Options{}).Module), "barrier"), "%+v", c)
	}
}

// A log that ends anywhere is read as far as it goes, or refused with a place; it never says what was not in it.
func TestCutAnywhere(t *testing.T) {
	l := newLog()
	k, x, y := l.kernel("k"), l.buffer(64, []byte("contents")), l.buffer(64, nil)
	for i := range uint64(3) {
		l.run(0, func(e uint64) { l.dispatch(e, k, 1+i, x, y) })
	}
	whole := l.Bytes()
	graphs := 0
	for n := range len(whole) + 1 {
		f, err := trace.Read("test", whole[:n])
		if err != nil {
			require.Less(t, n, 16)
			continue
		}
		r, err := trace.Import(t.Context(), f, trace.Options{})
		if err != nil {
			require.ErrorContains(t, err, "no dispatch was committed")
			continue
		}
		graphs++
		require.NotEmpty(t, mlxt.Format(r.Module))
	}
	require.Greater(t, graphs, 300)
}

// Mistakes of a writer are refused with the event and the place.
func TestRefused(t *testing.T) {
	for want, do := range map[string]func(l *log){
		"event bind: there is no buffer 99":               func(l *log) { l.run(0, func(e uint64) { l.Event(trace.Bind, e, uint64(0), uint64(99), uint64(0)) }) },
		"event bind: slot 31":                             func(l *log) { l.run(0, func(e uint64) { l.Event(trace.Bind, e, uint64(31), uint64(1), uint64(0)) }) },
		"event contents: bytes 8 to 24 of a buffer of 16": func(l *log) { l.Event(trace.Contents, l.buffer(16, nil), uint64(8), make([]byte, 16)) },
		"event buffer: 0 bytes":                           func(l *log) { l.buffer(0, nil) },
		"event buffer: bytes 8 to 24 are not in a buffer 1": func(l *log) {
			b := l.buffer(16, nil)
			l.Event(trace.Buffer, l.id(), uint64(16), uint64(0), uint64(0), "", b, uint64(8))
		},
		"event free: there is no buffer 1, or it was freed": func(l *log) { b := l.buffer(16, nil); l.Event(trace.Free, b); l.Event(trace.Free, b) },
		"event dispatch: no pipeline is set": func(l *log) {
			l.run(0, func(e uint64) {
				l.Event(trace.Dispatch, e, uint64(1), uint64(1), uint64(1), uint64(1), uint64(1), uint64(1), uint64(1))
			})
		},
		"event commit: there is no command buffer 7": func(l *log) { l.Event(trace.Commit, uint64(7)) },
		"event library: kind is \"pdf\"":             func(l *log) { l.Event(trace.Library, l.id(), "pdf", "x", []byte{}) },
		"event name: role is \"king\"":               func(l *log) { l.Event(trace.Name, l.buffer(16, nil), "x", "king") },
		"event pop: no group is open":                func(l *log) { l.run(0, func(e uint64) { l.Event(trace.Pop, e) }) },
		"event param: no step is open":               func(l *log) { l.Event(trace.Param, "pos", uint64(1)) },
		"event pipeline: there is no library 9":      func(l *log) { l.Event(trace.Pipeline, l.id(), uint64(9), "f") },
		"event copy: 32 bytes from 0 on of a buffer of 16": func(l *log) {
			b := l.buffer(16, nil)
			l.run(0, func(e uint64) { l.Event(trace.Copy, e, b, uint64(0), b, uint64(0), uint64(32)) })
		},
		"no dispatch was committed":                        func(*log) {},
		"event encoder: there is no open command buffer 5": func(l *log) { l.Event(trace.Encoder, uint64(6), uint64(5), "compute") },
		"event bytes: 5000 bytes, want 1 to 4096":          func(l *log) { l.run(0, func(e uint64) { l.Event(trace.Bytes, e, uint64(0), make([]byte, 5000)) }) },
		"event fill: 8 bytes from 12 on of a buffer of 16": func(l *log) {
			b := l.buffer(16, nil)
			l.run(0, func(e uint64) { l.Event(trace.Fill, e, b, uint64(12), uint64(8), uint64(0)) })
		},
		"event library: option \"-x\", want -DNAME=VALUE or fast": func(l *log) { l.Event(trace.Library, l.id(), "source", "x", []byte{}, "-x") },
	} {
		l := newLog()
		do(l)
		require.ErrorContains(t, refused(t, l), want)
	}
}

// Logs of other writers: fields in another order, more that do not matter, and events that nobody knows.
func TestSchemas(t *testing.T) {
	log := func(schema string, records ...[]byte) []byte {
		out := append([]byte(trace.Magic), 1, 0, 0, 0, 0, 0, 0, 0)
		add := func(code uint32, p []byte) {
			out = binary.LittleEndian.AppendUint32(out, uint32(len(p)))
			out = append(binary.LittleEndian.AppendUint32(out, code), p...)
			out = append(out, make([]byte, -len(p)&7)...)
		}
		add(0, []byte(schema))
		for _, r := range records {
			add(7, r)
		}
		return out
	}
	n := func(v ...uint64) (out []byte) {
		for _, x := range v {
			out = binary.LittleEndian.AppendUint64(out, x)
		}
		return out
	}
	for _, c := range []struct {
		schema string
		record []byte
		want   string
	}{
		{"7 buffer bytes:n x-color:n buffer:n\n", n(16, 3, 1), "no dispatch was committed"},
		{"7 x-weather rain:n\n", n(1), "no dispatch was committed"},
		{"7 buffer bytes:n buffer:n color:n\n", n(1, 1, 1), `the event buffer has the field "color"`},
		{"7 weather rain:n\n", n(1), `has the event "weather"`},
		{"7 buffer buffer:n\n", n(1), "the event buffer has no field bytes"},
		{"7 buffer buffer:n bytes:s\n", n(1), "is not of the type n"},
		{"7 buffer buffer:n bytes:n\n", n(1), "ends within its fields"},
		{"7 buffer buffer:n bytes:n\n", n(1, 2, 3), "has 8 bytes behind its fields"},
		{"7 buffer buffer:n bytes:n buffer:n\n", n(1, 2, 3), "is there twice"},
		{"6 buffer buffer:n bytes:n\n", n(1, 2), "event 7 is not described before it"},
		{"7 buffer buffer:n bytes:n\n7 free buffer:n\n", n(1, 2), "code 7 is described twice"},
		{"x buffer\n", nil, "want CODE NAME FIELD:TYPE"},
	} {
		f, err := trace.Read("test", log(c.schema, c.record))
		require.NoError(t, err)
		_, err = trace.Import(t.Context(), f, trace.Options{})
		require.ErrorContains(t, err, c.want)
	}
}

// FuzzImport: no log ends the program, takes memory beyond its own size, or makes a graph that is not valid.
func FuzzImport(f *testing.F) {
	l := newLog()
	k, x, y := l.kernel("k"), l.buffer(64, []byte("contents")), l.buffer(64, nil)
	for i := range uint64(3) {
		l.run(i%2, func(e uint64) {
			l.Event(trace.Bytes, e, uint64(2), word(uint32(i)))
			l.Event(trace.Threadgroup, e, uint64(0), uint64(16))
			l.Event(trace.Reads, e, uint64(0), 4*i, uint64(4))
			l.Event(trace.Writes, e, uint64(1), uint64(0), uint64(4), uint64(1))
			l.dispatch(e, k, 1+i, x, y)
			l.Event(trace.Copy, e, x, uint64(0), y, 4*i, uint64(4))
		})
	}
	f.Add(l.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := trace.Read("fuzz", data)
		if err != nil {
			return
		}
		r, err := trace.Import(t.Context(), log, trace.Options{})
		if err == nil {
			require.NoError(t, r.Module.Check())
		}
	})
}

// Kernels with MLX's names and arguments are taken from the builtin library: then their declarations say what memory is, and passes
// fuse them.
func TestBuiltin(t *testing.T) {
	code := metallibs.Small(t, "rmsfloat32", "vv_Multiplyfloat32")
	for _, builtin := range []bool{false, true} {
		l := newLog()
		lib := l.id()
		l.Event(trace.Library, lib, "metallib", "mlx.metallib", code)
		rms, mul := l.id(), l.id()
		l.Event(trace.Pipeline, rms, lib, "rmsfloat32", binary.LittleEndian.AppendUint64(append(word(20), word(53)...), 1))
		l.Event(trace.Pipeline, mul, lib, "vv_Multiplyfloat32")
		x, w, h, g, y := l.buffer(2304, nil), l.buffer(4, ir.ValueBytes(float32(1))), l.buffer(2304, nil), l.buffer(2304, nil), l.buffer(2304, nil)
		for i := range 2 {
			l.Event(trace.Contents, x, uint64(0), word(uint32(i)))
			l.Event(trace.Contents, g, uint64(0), word(uint32(i)))
			l.run(0, func(e uint64) {
				l.Event(trace.Use, e, rms)
				for slot, b := range []uint64{x, w, h} {
					l.Event(trace.Bind, e, uint64(slot), b, uint64(0))
				}
				l.Event(trace.Bytes, e, uint64(3), ir.ValueBytes(float32(1e-5)))
				l.Event(trace.Bytes, e, uint64(4), word(576))
				l.Event(trace.Bytes, e, uint64(5), word(0))
				l.Event(trace.Dispatch, e, uint64(1), uint64(160), uint64(1), uint64(1), uint64(160), uint64(1), uint64(1))
				l.Event(trace.Use, e, mul)
				for slot, b := range []uint64{h, g, y} {
					l.Event(trace.Bind, e, uint64(slot), b, uint64(0))
				}
				l.Event(trace.Bytes, e, uint64(3), word(576))
				l.Event(trace.Dispatch, e, uint64(1), uint64(576), uint64(1), uint64(1), uint64(576), uint64(1), uint64(1))
			})
		}
		r := imported(t, l, trace.Options{Builtin: builtin})
		require.Equal(t, builtin, len(r.Remarks) == 1 && strings.Contains(r.Remarks[0], "2 kernels are those of the builtin library"))
		graph := r.Module.Graphs[0]
		kinds := ""
		for i := range graph.Memories {
			kinds += graph.Memories[i].Kind.String() + " "
		}
		if !builtin {
			require.Equal(t, "input weight state input state ", kinds) // compiled code says of what it writes that it may read it
			require.Len(t, r.Files, 1)
			continue
		}
		require.Equal(t, "input weight scratch input output ", kinds)
		require.Empty(t, r.Files)
		result, err := optimize.Run(t.Context(), graph, optimize.Options{Pipeline: passes.DefaultPipeline()})
		require.NoError(t, err)
		require.NotNil(t, result.Optimized)
		require.Equal(t, 1, result.Optimized.Stats().Dispatches)
	}
}

// Logs whose records are damaged, left out, repeated or exchanged are refused, or become graphs that are valid.
func TestMutations(t *testing.T) {
	l := newLog()
	k, other := l.kernel("k"), l.kernel("other")
	x, y := l.buffer(4096, []byte("contents")), l.buffer(64, nil)
	part := l.id()
	l.Event(trace.Buffer, part, uint64(256), uint64(0), uint64(0), "", x, uint64(1024))
	for i := range uint64(4) {
		if i%2 == 1 {
			l.Event(trace.Step, "step")
			l.Event(trace.Param, "pos", i)
			l.Event(trace.Param, "n", i*i)
		}
		l.Event(trace.Contents, y, 4*i, word(uint32(i)))
		l.run(i/2, func(e uint64) {
			l.Event(trace.Push, e, "group")
			l.Event(trace.Bytes, e, uint64(2), bytes.Repeat(word(uint32(i)), 3))
			l.Event(trace.Threadgroup, e, uint64(0), uint64(16))
			l.Event(trace.Reads, e, uint64(0), 4*i, uint64(4))
			l.Event(trace.Writes, e, uint64(1), uint64(0), uint64(4), uint64(1))
			l.dispatch(e, k, 1+i, x, y)
			l.Event(trace.Bind, e, uint64(1), part, 4*i)
			l.dispatch(e, other, 3, y)
			l.Event(trace.Barrier, e)
			l.Event(trace.Pop, e)
			l.Event(trace.Fill, e, x, 4*i, uint64(4), uint64(7))
			l.Event(trace.Copy, e, x, uint64(0), y, 4*i, uint64(4))
		})
		l.Event(trace.Step, "")
	}
	require.NoError(t, l.Err())
	mutations(t, l.Bytes(), trace.Options{})
}

// The same with kernels whose effects are known, so that there are parts of buffers to follow.
func TestMutationsOfParts(t *testing.T) {
	l, mul, all, out := arena(t, 4096)
	at := func(n uint64) place { return place{all, n} }
	for i := range uint64(3) {
		l.Event(trace.Contents, all, uint64(0), floats(1, 2, 3, 4))
		l.products(mul, []product{
			{[3]place{at(0), at(1024), at(2048)}, 4},
			{[3]place{at(2048), at(2048), at(0)}, 4},
			{[3]place{at(0), at(2048), at(3072 + 16*i)}, 4},
			{[3]place{at(0), at(2048), at(2056)}, 2},
			{[3]place{at(2048), at(3072), {out, 0}}, 4},
		})
	}
	require.NoError(t, l.Err())
	mutations(t, l.Bytes(), trace.Options{Builtin: true, Values: true})
}

// mutations imports logs that are damaged ones of a log.
func mutations(t *testing.T, data []byte, o trace.Options) {
	t.Helper()
	// The records behind the schema.
	var records [][]byte
	for at := 16; at < len(data); {
		n := 8 + (int(binary.LittleEndian.Uint32(data[at:]))+7)&^7
		records = append(records, data[at:at+n])
		at += n
	}
	runs := 3000
	if os.Getenv("MLXC_LONG") != "" {
		runs = 200_000
	}
	random := rand.New(rand.NewPCG(uint64(sample.Run()), 1))
	valid := 0
	for i := range runs {
		out := append([]byte{}, data[:16]...)
		list := slices.Clone(records)
		for range 1 + random.IntN(4) {
			n := 1 + random.IntN(len(list)-1)
			switch random.IntN(6) {
			case 0:
				list = slices.Delete(list, n, n+1)
			case 1:
				list = slices.Insert(list, n, list[1+random.IntN(len(list)-1)])
			case 2:
				m := 1 + random.IntN(len(list)-1)
				list[n], list[m] = list[m], list[n]
			default:
				r := slices.Clone(list[n])
				if words := len(r)/8 - 1; words > 0 {
					at := 8 + 8*random.IntN(words)
					v := binary.LittleEndian.Uint64(r[at:])
					switch random.IntN(4) {
					case 0:
						v = random.Uint64() >> random.IntN(64)
					case 1:
						v++
					case 2:
						v = uint64(random.IntN(40))
					default:
						v ^= 1 << random.IntN(64)
					}
					binary.LittleEndian.PutUint64(r[at:], v)
				}
				list[n] = r
			}
		}
		out = append(out, slices.Concat(list...)...)
		f, err := trace.Read("test", out)
		require.NoError(t, err)
		r, err := trace.Import(t.Context(), f, o)
		if err != nil {
			continue
		}
		valid++
		if err := r.Module.Check(); err != nil {
			require.NoError(t, err, "mutation %d of seed %d", i, sample.Run())
		}
	}
	require.Greater(t, valid, runs/50)
	require.Less(t, valid, runs)
}

// A log of a million commands, and one that writes a buffer in a hundred thousand parts from its end on, take time in proportion; what
// is beyond any program is refused.
func TestLarge(t *testing.T) {
	sample.Long(t)
	l := newLog()
	k, x := l.kernel("k"), l.buffer(1<<24, nil)
	l.run(1, func(e uint64) {
		for i := range uint64(100_000) {
			l.Event(trace.Contents, x, 1<<24-64*(i+1), word(uint32(i)))
			l.Event(trace.Bytes, e, uint64(1), word(uint32(i)))
			l.dispatch(e, k, 1+i, x)
			l.Event(trace.Barrier, e)
		}
	})
	start := time.Now()
	r := imported(t, l, trace.Options{})
	t.Log(time.Since(start))
	require.Equal(t, 100_000, r.Module.Graphs[0].Stats().Dispatches)
}

// Each dispatch takes another part of one buffer: what that costs grows with their number, not its square.
func TestManyParts(t *testing.T) {
	sample.Long(t)
	const n = 20_000
	for name, at := range map[string]func(i uint64) uint64{"upwards": func(i uint64) uint64 { return i }, "downwards": func(i uint64) uint64 { return n - 1 - i }} {
		t.Run(name, func(t *testing.T) {
			l := newLog()
			k, x := l.kernel("k"), l.buffer(64*n, nil)
			for range 2 {
				l.run(0, func(e uint64) {
					l.Event(trace.Use, e, k)
					for i := range uint64(n) {
						l.Event(trace.Bind, e, uint64(0), x, 64*at(i))
						l.Event(trace.Dispatch, e, uint64(1), uint64(1), uint64(1), uint64(1), uint64(32), uint64(1), uint64(1))
					}
				})
			}
			r := imported(t, l, trace.Options{})
			require.Equal(t, n, r.Module.Graphs[0].Stats().Dispatches)
		})
	}
}

// Two steps of one shape and different names take turns and stay two graphs; libraries and pipelines that are made anew for each
// run are the same ones; what a log cannot say of the order is told.
func TestSameAgain(t *testing.T) {
	l := newLog()
	x := l.buffer(64, nil)
	for i := range uint64(6) {
		k := l.kernel("k")
		l.Event(trace.Step, []string{"a", "b"}[i%2])
		if i == 5 {
			c := l.encode(0, func(e uint64) { l.dispatch(e, k, 1, x) })
			l.Event(trace.Await, c, uint64(9), uint64(1))
			l.Event(trace.Commit, c)
			l.Event(trace.Contents, x, uint64(0), word(1))
			l.Event(trace.Signal, c, uint64(9), uint64(1))
			continue
		}
		l.run(0, func(e uint64) { l.dispatch(e, k, 1, x) })
	}
	r := imported(t, l, trace.Options{})
	require.Len(t, r.Module.Graphs, 2)
	require.Equal(t, "a", r.Module.Graphs[0].Name)
	require.Equal(t, "b", r.Module.Graphs[1].Name)
	require.Len(t, r.Files, 1)
	all := strings.Join(r.Remarks, "\n")
	require.Contains(t, all, "waits for an event that none before it signals")
	require.Contains(t, all, "writes buffers while a step is under way")

	f, err := trace.Read("test", l.Bytes())
	require.NoError(t, err)
	_, err = trace.Import(t.Context(), f, trace.Options{Max: map[string]uint32{"n": 3}})
	require.ErrorContains(t, err, `no step has the param "n"`)
}
