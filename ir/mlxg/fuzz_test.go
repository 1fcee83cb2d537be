package mlxg_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// FuzzFile opens whole files. Most changes fail at a checksum; FuzzSections gets further.
func FuzzFile(f *testing.F) {
	data := smallFile(f)
	f.Add(data, false)
	f.Add(data, true)
	f.Add(data[:200], false)
	f.Fuzz(func(t *testing.T, data []byte, verify bool) {
		m, err := openMeasured(t, data, verify, "fuzz")
		if err == nil {
			reopens(t, m)
		}
	})
}

// FuzzSections opens files with any sections and right checksums.
func FuzzSections(f *testing.F) {
	parts := mlxg.Split(smallFile(f))
	f.Add(parts[0].Data, parts[1].Data, parts[2].Data, parts[3].Data)
	f.Fuzz(func(t *testing.T, meta, strs, blobs, weights []byte) {
		m, err := openMeasured(t, mlxg.Join(
			mlxg.Part{Kind: "META", Data: meta},
			mlxg.Part{Kind: "STRS", Data: strs},
			mlxg.Part{Kind: "BLOB", Data: blobs},
			mlxg.Part{Kind: "WGHT", Data: weights},
		), false, "fuzz")
		if err == nil {
			reopens(t, m)
		}
	})
}

// reopens checks that a module that was accepted can be written and opened again.
func reopens(t *testing.T, m *ir.Module) {
	t.Helper()
	for _, d := range m.Data {
		if d.Blob.Path == "" && d.Blob.Verify() != nil {
			return // opening did not compare digests, but writing does
		}
	}
	for _, g := range m.Graphs {
		for i := range g.Memories {
			if b := g.Memories[i].Init.Blob; b != nil && b.Path == "" && b.Verify() != nil {
				return
			}
		}
	}
	var out bytes.Buffer
	if err := mlxg.Write(context.Background(), &out, m, mlxg.WriteOptions{}); err != nil {
		t.Fatalf("an opened module cannot be written: %v", err)
	}
	again, err := mlxg.OpenBytes(context.Background(), "again", out.Bytes(), mlxg.OpenOptions{Verify: true})
	if err != nil {
		t.Fatalf("what was written cannot be opened: %v", err)
	}
	if d := irtest.Diff(m, again); d != "" {
		t.Fatal(d)
	}
}
