package mlxg_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

var update = flag.Bool("update", false, "write what docs/file-format.md prints of testdata/mlxg/minimal.mlxg anew")

const (
	pagePath    = "../../docs/file-format.md"
	dumpMark    = "```hexdump\n"
	valuesMark  = "bin in hexadecimal:\n\n```\n"
	minimalPath = "../../testdata/mlxg/minimal.mlxg"
)

// minimalModule builds the module that testdata/gen/mlxg_minimal.py writes.
func minimalModule(t *testing.T) *ir.Module {
	t.Helper()
	b := ir.NewBuilder("main")
	memory := func(name string, kind ir.MemKind, in ir.Init) ir.MemID {
		return b.Memory(ir.Memory{Name: name, Kind: kind, Size: 16, DType: ir.F32, Shape: []int64{4}, Init: in})
	}
	x := memory("x", ir.Input, ir.Init{})
	w := memory("w", ir.Weight, ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(ir.ValueBytes([]float32{0.5, -1, 2, 1024}))})
	y := memory("y", ir.Output, ir.Init{})
	k := b.Kernel(ir.Kernel{Name: "add", Function: "vv_Addfloat32", Args: []ir.Arg{
		{Slot: 0, Name: "a", Type: ir.F32},
		{Slot: 1, Name: "b", Type: ir.F32},
		{Slot: 2, Name: "c", Access: ir.WriteArg, Type: ir.F32},
	}})
	b.Dispatch(ir.Dispatch{
		Kernel:   k,
		Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(x, 0, 16)), ir.BufferArg(1, ir.ViewOf(w, 0, 16)), ir.BufferArg(2, ir.ViewOf(y, 0, 16))},
		GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(4), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{4, 1, 1},
		Effects: &ir.Effects{
			Complete: true,
			Reads:    []ir.Region{ir.ViewOf(x, 0, 16).Contiguous(), ir.ViewOf(w, 0, 16).Contiguous()},
			Writes:   []ir.Write{{Region: ir.ViewOf(y, 0, 16).Contiguous(), Must: true}},
		},
		Op: "add", Label: "y = x + w",
	})
	g, err := b.Graph()
	require.NoError(t, err)
	return &ir.Module{Graphs: []*ir.Graph{g}}
}

// A file that a Python program wrote, following docs/file-format.md alone, opens as the
// module that it describes.
func TestFileOfAnotherWriter(t *testing.T) {
	f, err := mlxg.Open(context.Background(), minimalPath, mlxg.OpenOptions{Verify: true})
	require.NoError(t, err)
	defer f.Close()
	assert.Empty(t, irtest.Diff(minimalModule(t), f.Module))
}

// The dump in docs/file-format.md shows every byte and every value of that file.
func TestPageShowsTheFile(t *testing.T) {
	file, err := os.ReadFile(minimalPath)
	require.NoError(t, err)
	page, err := os.ReadFile(pagePath)
	require.NoError(t, err)
	if *update {
		text := string(page)
		text = replaceBlock(t, text, dumpMark, hexdump(file))
		text = replaceBlock(t, text, valuesMark, sectionValues(t, file))
		require.NoError(t, os.WriteFile(pagePath, []byte(text), 0o644))
		return
	}
	assert.Equal(t, file, undump(t, block(t, string(page), dumpMark)))
	assert.Equal(t, sectionValues(t, file), block(t, string(page), valuesMark))
}

func block(t *testing.T, page, begin string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, begin)
	require.True(t, ok, "the page has no %q", begin)
	text, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	return text
}

func replaceBlock(t *testing.T, page, begin, text string) string {
	t.Helper()
	return strings.Replace(page, begin+block(t, page, begin), begin+text, 1)
}

// hexdump prints data as `hexdump -C` does.
func hexdump(data []byte) string {
	var b strings.Builder
	skipping := false
	for i := 0; i < len(data); i += 16 {
		line := data[i:min(i+16, len(data))]
		if i > 0 && i+16 < len(data) && bytes.Equal(line, data[i-16:i]) {
			if !skipping {
				b.WriteString("*\n")
			}
			skipping = true
			continue
		}
		skipping = false
		text := bytes.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '.'
			}
			return r
		}, latin1(line))
		x := fmt.Sprintf("% x", line)
		if len(line) > 8 {
			x = x[:23] + " " + x[23:]
		}
		fmt.Fprintf(&b, "%08x  %-48s  |%s|\n", i, x, text)
	}
	fmt.Fprintf(&b, "%08x\n", len(data))
	return b.String()
}

// latin1 returns each byte as the character with that code.
func latin1(data []byte) []byte {
	var out []byte
	for _, c := range data {
		out = append(out, string(rune(c))...)
	}
	return out
}

// undump is the inverse of hexdump.
func undump(t *testing.T, text string) []byte {
	t.Helper()
	var out []byte
	repeat := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "*" {
			repeat = true
			continue
		}
		var at int
		_, err := fmt.Sscanf(line, "%08x", &at)
		require.NoError(t, err, line)
		for repeat && len(out) < at {
			out = append(out, out[len(out)-16:]...)
		}
		repeat = false
		require.Equal(t, len(out), at)
		if len(line) > 8 {
			data, err := hex.DecodeString(strings.ReplaceAll(line[8:60], " ", ""))
			require.NoError(t, err, line)
			out = append(out, data...)
		}
	}
	return out
}

// sectionValues prints the msgpack values of a file as docs/file-format.md does.
func sectionValues(t *testing.T, file []byte) string {
	t.Helper()
	var b strings.Builder
	for _, p := range mlxg.Split(file)[:3] {
		var v any
		require.NoError(t, msgpack.Unmarshal(p.Data, &v))
		b.WriteString(p.Kind + " " + format(v, "") + "\n")
	}
	return b.String()
}

func format(v any, indent string) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", v)
	case []byte:
		return fmt.Sprintf("h'%x'", v)
	case []any:
		var short, long []string
		for _, x := range v {
			short = append(short, format(x, ""))
			long = append(long, indent+"  "+format(x, indent+"  "))
		}
		line := "[" + strings.Join(short, ", ") + "]"
		if len(line)+len(indent) <= 110 && !strings.Contains(line, "\n") {
			return line
		}
		return "[\n" + strings.Join(long, ",\n") + "\n" + indent + "]"
	default:
		return fmt.Sprint(v)
	}
}
