package recorded

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// Runnable replaces those kernels of a recording that no library has by one that a device can run: it reads and
// writes all bytes that the effects of the dispatch list, and what it writes depends on everything it has read. Its
// source lies in the user's cache, always at the same path, so that compilers' caches recognize it.
func Runnable(t T, g *ir.Graph) *ir.Graph {
	t.Helper()
	digest := ir.Digest(sha256.Sum256([]byte(foreign)))
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	file, _, _ := Foreign()
	path := filepath.Join(cache, "mlxc", "test", file)
	if text, err := os.ReadFile(path); err != nil || string(text) != foreign {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		f, err := os.CreateTemp(filepath.Dir(path), ".foreign")
		require.NoError(t, err)
		_, err = f.WriteString(foreign)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, os.Rename(f.Name(), path))
	}
	for i := range g.Kernels {
		k := &g.Kernels[i]
		if k.Library.Kind != ir.SourceFile {
			continue
		}
		k.Library.Path, k.Library.Digest, k.Function = path, digest, fmt.Sprintf("foreign_%d", len(k.Args))
		k.Args = append(k.Args, ir.Arg{Slot: tableSlot, Name: "table", Kind: ir.ConstantArg, Type: ir.U32})
	}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && g.Kernels[d.Kernel].Library.Kind == ir.SourceFile {
			d.Bindings = append(d.Bindings, ir.Binding{Slot: tableSlot, Kind: ir.BindBytes, Bytes: table(t, g, d)})
		}
	}
	require.NoError(t, g.Check())
	return g
}

// Foreign returns the source of the kernels that [Runnable] gives recordings, the name of its file, and their names.
func Foreign() (file, source string, functions []string) {
	digest := sha256.Sum256([]byte(foreign))
	return fmt.Sprintf("foreign-%x.metal", digest[:8]), foreign, []string{"foreign_2", "foreign_3", "foreign_4"}
}

// tableSlot is the slot of the table that tells a foreign kernel what to touch.
const tableSlot = 8

// table returns the table of a dispatch: its number; for each region the words write (0 or 1), argument, offset,
// count, stride and run, in words; and 2 at the end.
func table(t T, g *ir.Graph, d *ir.Dispatch) []byte {
	t.Helper()
	words := []uint32{uint32(d.ID)}
	region := func(r ir.Region, write bool) {
		root, base := g.Root(r.Mem)
		count, stride := int64(1), int64(0)
		if len(r.Dims) > 0 {
			require.Len(t, r.Dims, 1)
			count, stride = r.Dims[0].Count.Const, r.Dims[0].Stride
		}
		at := base + r.Off.Const
		b := slices.IndexFunc(d.Bindings, func(b ir.Binding) bool {
			a, _ := g.Kernels[d.Kernel].Arg(b.Slot)
			mem, off := g.Root(b.View.Mem)
			off += b.View.Off.Const
			return b.Kind == ir.BindView && mem == root && (a.Access != ir.ReadArg) == write && off <= at && at+(count-1)*stride+r.Run.Const <= off+b.View.Len.Const
		})
		require.GreaterOrEqual(t, b, 0, "dispatch %v binds nothing that has a region of its effects", d.ID)
		_, off := g.Root(d.Bindings[b].View.Mem)
		at -= off + d.Bindings[b].View.Off.Const
		w := uint32(0)
		if write {
			w = 1
		}
		words = append(words, w, uint32(d.Bindings[b].Slot), uint32(at/4), uint32(count), uint32(stride/4), uint32(r.Run.Const/4))
	}
	if d.Effects == nil { // unknown: what it binds
		for i := range d.Bindings {
			a, _ := g.Kernels[d.Kernel].Arg(d.Bindings[i].Slot)
			region(d.Bindings[i].View.Contiguous(), a.Access != ir.ReadArg)
		}
	} else {
		for _, r := range d.Effects.Reads {
			region(r, false)
		}
		for _, w := range d.Effects.Writes {
			region(w.Region, true)
		}
	}
	var out []byte
	for _, w := range append(words, 2) {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

const foreign = `#include <metal_stdlib>
using namespace metal;

// One thread does everything: what it writes depends on all it has read, and on nothing else.
static void touch(device float* const a[], constant uint* table) {
  uint h = 2166136261u ^ table[0];
  for (constant uint* r = table + 1; r[0] != 2; r += 6)
    for (uint i = 0; i < r[3]; i++)
      for (uint k = 0; k < r[5]; k++) {
        device float* at = a[r[1]] + r[2] + i * r[4] + k;
        if (r[0] == 0)
          h = (h ^ as_type<uint>(*at)) * 16777619u;
        else
          *at = float((h + (i * r[5] + k) * 2654435761u) >> 8) * 5.9604644775390625e-08f;
      }
}

kernel void foreign_2(const device float* a [[buffer(0)]], device float* b [[buffer(1)]],
                      constant uint* table [[buffer(8)]], uint t [[thread_position_in_grid]]) {
  device float* const all[] = {(device float*)a, b};
  if (t == 0)
    touch(all, table);
}

kernel void foreign_3(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]], device float* c [[buffer(2)]],
                      constant uint* table [[buffer(8)]], uint t [[thread_position_in_grid]]) {
  device float* const all[] = {(device float*)a, (device float*)b, c};
  if (t == 0)
    touch(all, table);
}

kernel void foreign_4(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]], const device float* c [[buffer(2)]], device float* d [[buffer(3)]],
                      constant uint* table [[buffer(8)]], uint t [[thread_position_in_grid]]) {
  device float* const all[] = {(device float*)a, (device float*)b, (device float*)c, d};
  if (t == 0)
    touch(all, table);
}
`
