//go:build unix

package softmetal_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
)

// planted is a dispatch with a deliberate defect, and the findings that the checker must report.
type planted struct {
	name string
	want []wanted
	line int // of the kernel in its source
}

// wanted is an expected finding.
type wanted struct {
	line     int // 0: any
	kind     string
	argument string // what the name of the argument begins with
}

func (w wanted) String() string { return fmt.Sprintf("line %d: %s %s", w.line, w.kind, w.argument) }

var (
	runComment   = regexp.MustCompile(`^// run (\d+)/(\d+)((?: [a-z0-9]+[:=][-+:a-z0-9]+)*)`)
	kernelLine   = regexp.MustCompile(`\bkernel void (\w+)\(`)
	wantComment  = regexp.MustCompile(`// want: (.*?)(?: // right:|$)`)
	rightComment = regexp.MustCompile(`^(.*?)// right: ?(.*)$`)
	kinds        = []string{"out of bounds", "undefined read", "undeclared read", "undeclared write", "write to read-only", "race", "divergent barrier", "divergent matrix product", "divergent matrix access",
		"misaligned access", "undefined value", "inactive lane", "non-finite result", "not written", "limit"}
)

// plantedGraph is one graph with a dispatch of each defective kernel of a source, and of its repaired twin.
type plantedGraph struct {
	graph  *ir.Graph
	inputs map[ir.MemID][]byte
	cases  map[ir.ID]*planted
}

func (p *plantedGraph) memory(kind ir.MemKind, size int64, data []byte) ir.MemID {
	g := p.graph
	id := ir.MemID(len(g.Memories))
	g.Memories = append(g.Memories, ir.Memory{Name: fmt.Sprint("m", id), Kind: kind, Size: size, Alias: ir.NoMem})
	if data != nil {
		p.inputs[id] = data
	}
	return id
}

// dispatch adds a dispatch to the graph.
func (p *plantedGraph) dispatch(k ir.Kernel, d ir.Dispatch, c *planted) {
	g := p.graph
	k.Name = fmt.Sprintf("%s_%d", c.name, len(g.Kernels))
	g.Kernels = append(g.Kernels, k)
	d.Kernel, d.ID = ir.KernelID(len(g.Kernels)-1), ir.ID(len(g.Kernels)-1)
	d.Label = c.name
	g.Nodes = append(g.Nodes, &d, &ir.Barrier{})
	p.cases[d.ID] = c
}

// floats returns n bytes of small numbers of both signs, which are finite both as float and as half.
func floats(n int64) []byte {
	out := make([]byte, n)
	for i := int64(0); i+4 <= n; i += 4 {
		v := math.Float32bits(float32(i/4%64)/64 - 0.25)
		binary.LittleEndian.PutUint32(out[i:], v&0xfffff000|0x3c0) // the low 16 bits are a finite half too
	}
	return out
}

// source adds dispatches of the kernels of a source. Nothing must be found in those of a repaired one.
func (p *plantedGraph) source(t *testing.T, path, text string, repaired bool) {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	var run []string
	var c *planted
	var early []wanted // findings expected at lines before the kernel's
	index := 0
	end := func() {
		if c == nil {
			return
		}
		if index++; !sample.Takes(t.Name(), index, sample.Few) {
			c, run = nil, nil
			return
		}
		name, line := c.name, c.line
		if repaired {
			c.want, c.name = nil, name+"_right"
		}
		require.NotNil(t, run, "kernel %s has no comment `run`", name)
		d := ir.Dispatch{GridKind: ir.Threads}
		grid, _ := strconv.Atoi(run[1])
		group, _ := strconv.Atoi(run[2])
		d.Grid = [3]ir.Extent{ir.Ext(int64(grid)), ir.Ext(1), ir.Ext(1)}
		d.Threadgroup = [3]uint32{uint32(group), 1, 1}
		memories := map[int]ir.View{}
		effects := &ir.Effects{Complete: true}
		slot, tg := 0, 0
		for _, a := range strings.Fields(run[3]) {
			kind, value, _ := strings.Cut(a, ":")
			bind := func(kind ir.MemKind, size int64, data []byte) {
				memories[slot] = ir.ViewOf(p.memory(kind, size, data), 0, size)
				d.Bindings = append(d.Bindings, ir.BufferArg(uint8(slot), memories[slot]))
				slot++
			}
			if what, region, ok := strings.Cut(a, "="); ok {
				var arg int
				var off, n int64
				_, err := fmt.Sscanf(region, "%d:%d:%d", &arg, &off, &n)
				require.NoError(t, err, a)
				r := ir.Region{Mem: memories[arg].Mem, Off: ir.Const(off), Run: ir.Const(n)}
				if d.Effects = effects; what == "reads" {
					effects.Reads = append(effects.Reads, r)
				} else {
					effects.Writes = append(effects.Writes, ir.Write{Region: r, Must: true})
				}
				continue
			}
			n, err := strconv.ParseInt(strings.SplitN(value, "+", 2)[0], 10, 64)
			require.NoError(t, err, a)
			switch kind {
			case "in":
				bind(ir.Input, n, floats(n))
			case "ints": // 0, 1, 2, …
				data := make([]byte, n)
				for i := range n / 4 {
					binary.LittleEndian.PutUint32(data[4*i:], uint32(i))
				}
				bind(ir.Input, n, data)
			case "out":
				bind(ir.Output, n, nil)
			case "scratch":
				bind(ir.Scratch, n, nil)
			case "state": // it has a value, and keeps it
				bind(ir.Input, n, make([]byte, n))
			case "as": // the memory of an earlier argument
				v := memories[int(n)]
				if _, off, ok := strings.Cut(value, "+"); ok {
					k, err := strconv.ParseInt(off, 10, 64)
					require.NoError(t, err)
					v = ir.View{Mem: v.Mem, Off: ir.Const(k), Len: v.Len.AddConst(-k)}
				}
				d.Bindings = append(d.Bindings, ir.BufferArg(uint8(slot), v))
				slot++
			case "bytes":
				d.Bindings = append(d.Bindings, ir.BytesArg(uint8(slot), make([]byte, n)))
				slot++
			case "u64":
				d.Bindings = append(d.Bindings, ir.BytesArg(uint8(slot), binary.LittleEndian.AppendUint64(nil, uint64(n))))
				slot++
			case "tg":
				d.ThreadgroupMemory = append(d.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: uint8(tg), Bytes: uint32(n)})
				tg++
			default:
				t.Fatalf("%s: an argument is %q", name, a)
			}
		}
		c.line = line
		p.dispatch(ir.Kernel{Library: ir.Library{Kind: ir.SourceFile, Path: path}, Function: name}, d, c)
		c, run = nil, nil
	}
	for i, l := range strings.Split(text, "\n") {
		if m := runComment.FindStringSubmatch(l); m != nil {
			end()
			run = m
		}
		if m := kernelLine.FindStringSubmatch(l); m != nil {
			c, early = &planted{name: m[1], line: i + 1, want: early}, nil
		}
		if m := wantComment.FindStringSubmatch(l); m != nil && run != nil {
			for _, w := range strings.Split(m[1], ";") {
				to := &early
				if c != nil {
					to = &c.want
				}
				*to = append(*to, wantOf(t, i+1, strings.TrimSpace(w)))
			}
		}
	}
	end()
}

func wantOf(t *testing.T, line int, text string) wanted {
	for _, k := range kinds {
		if rest, ok := strings.CutPrefix(text, k); ok {
			return wanted{line, k, strings.TrimSpace(rest)}
		}
	}
	t.Fatalf("line %d: %q is no kind of finding", line, text)
	return wanted{}
}

// repaired returns the text with each line that has a `right:` comment replaced by what follows `right:`.
func repaired(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if m := rightComment.FindStringSubmatch(l); m != nil && strings.Contains(l, "// right:") && !strings.HasPrefix(l, "// stands") {
			lines[i] = m[2]
		}
	}
	return strings.Join(lines, "\n")
}

// observe runs the graph on a device with a checker, and returns what the checker observed.
func (p *plantedGraph) observe(t *testing.T, d *softmetal.Device) []softmetal.Observed {
	t.Helper()
	ctx := context.Background()
	r, err := backend.NewRig(ctx, d, p.graph)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for m, data := range p.inputs {
		require.NoError(t, r.Put(ctx, m, data))
	}
	_, err = r.Run(ctx)
	require.NoError(t, err)
	return d.Observed()
}

// compare fails the test for each unexpected and each missing finding. It returns how many defective dispatches had
// exactly the expected findings.
func (p *plantedGraph) compare(t *testing.T, observed []softmetal.Observed) (found int) {
	t.Helper()
	require.Len(t, observed, len(p.cases))
	for i := range observed {
		o := &observed[i]
		c := p.cases[o.Command]
		met := make([]bool, len(c.want))
		good := true
		for k := range o.Findings {
			f := &o.Findings[k]
			require.NotContains(t, f.String(), "%!")
			expected := false
			for n, w := range c.want {
				if w.kind == f.Kind.String() && strings.HasPrefix(f.Argument, w.argument) && (f.Line == 0 || w.line == 0 || f.Line == w.line) {
					met[n], expected = true, true
				}
			}
			if !expected {
				good = false
				t.Errorf("%s: not expected: %v (line %d, %q): %v", c.name, f.Kind, f.Line, f.Argument, f)
			}
		}
		for n, w := range c.want {
			if !met[n] {
				good = false
				t.Errorf("%s: not found: %v", c.name, w)
			}
		}
		if good && len(c.want) > 0 {
			found++
		}
	}
	return found
}

func newPlanted(name string) *plantedGraph {
	return &plantedGraph{graph: &ir.Graph{Name: name}, inputs: map[ir.MemID][]byte{}, cases: map[ir.ID]*planted{}}
}

// The checker finds each defect of testdata/defects.metal, at its line, and nothing in its repaired twin.
func TestPlantedDefects(t *testing.T) {
	sample.Long(t)
	text, err := os.ReadFile("testdata/defects.metal")
	require.NoError(t, err)
	// The keys of the cache depend on the path of the source, so the paths are relative to a temporary folder. The
	// compiler is found first, because that may depend on the working folder.
	compiler, err := clang.Find(t.Context())
	require.NoError(t, err)
	t.Setenv(clang.Env, compiler.Path)
	t.Chdir(t.TempDir())
	p := newPlanted("defects")
	p.source(t, "defects.metal", string(text), false)
	p.source(t, "right.metal", repaired(string(text)), true)
	defective := 0
	for _, c := range p.cases {
		if len(c.want) > 0 {
			defective++
		}
	}
	want := 10 // a run takes one in eight, with its twin
	if sample.Whole() {
		want = 100
	}
	require.GreaterOrEqual(t, defective, want)
	d, err := softmetal.New(context.Background(), softmetal.Options{Workers: 2, Check: true})
	require.NoError(t, err)
	defer d.Close()
	found := p.compare(t, p.observe(t, d))
	t.Logf("%d planted, %d found, %d dispatches", defective, found, len(p.cases))
}
