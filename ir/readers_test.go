package ir_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// The two readers accept the same modules. Texts in which words, numbers and signs were exchanged
// either do not parse, or their modules can be written as containers and opened again, and likewise
// for damaged bytes of containers.
func TestReadersAgree(t *testing.T) {
	var texts [][]byte
	names, err := filepath.Glob("../testdata/review/files/*.mlxt")
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if len(text) < 20_000 {
			texts = append(texts, text)
		}
	}
	require.Greater(t, len(texts), 20)
	rng := rand.New(rand.NewPCG(11, uint64(sample.Run())))
	dir, ctx := t.TempDir(), context.Background()
	path := filepath.Join(dir, "g.mlxg")
	few := 800 // of each form; the seed is the run's
	if sample.Whole() {
		few = 4_000
	}
	taken := 0
	for range few {
		text := mutate(rng, texts)
		m, err := mlxt.Parse(ctx, "g.mlxt", text)
		if err != nil {
			continue
		}
		taken++
		require.NoError(t, mlxg.WriteFile(ctx, path, m, mlxg.WriteOptions{}), "%s", text)
		f, err := mlxg.Open(ctx, path, mlxg.OpenOptions{SkipExternal: true})
		require.NoError(t, err, "%s", text)
		require.Empty(t, irtest.Diff(m, f.Module), "%s", text)
		require.NoError(t, f.Close())
	}
	require.Greater(t, taken, few/100) // of the 64 seeds, the one that makes the fewest makes 2 %

	var containers [][]byte
	for _, text := range texts {
		m, err := mlxt.Parse(ctx, "g.mlxt", text)
		if err != nil {
			continue
		}
		for _, g := range m.Graphs {
			g.Ordering = ir.Ordering(rng.IntN(2)) // by barriers, or serial
		}
		var b bytes.Buffer
		require.NoError(t, mlxg.Write(ctx, &b, m, mlxg.WriteOptions{}))
		containers = append(containers, b.Bytes())
	}
	taken = 0
	for range few {
		data := damage(rng, containers[rng.IntN(len(containers))])
		require.NoError(t, os.WriteFile(path, data, 0o600))
		f, err := mlxg.Open(ctx, path, mlxg.OpenOptions{SkipExternal: true})
		if err != nil {
			continue
		}
		taken++
		text := mlxt.Format(f.Module)
		m, err := mlxt.Parse(ctx, "g.mlxt", []byte(text))
		require.NoError(t, err, "%s", text)
		require.Empty(t, irtest.Diff(f.Module, m), "%s", text)
		require.NoError(t, f.Close())
	}
	require.Greater(t, taken, 80)
}

// damage changes up to three bytes of the graphs or strings of a container and mends its
// checksums.
func damage(rng *rand.Rand, container []byte) []byte {
	le, table := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	data := bytes.Clone(container)
	n := int(le.Uint32(data[12:]))
	for range 1 + rng.IntN(3) {
		e := data[16+28*rng.IntN(2):] // META or STRS: contents are compared when one asks for it
		if at, length := int(le.Uint64(e[8:])), int(le.Uint64(e[16:])); length > 0 {
			if c := &data[at+rng.IntN(length)]; rng.IntN(2) == 0 {
				*c ^= 1 << rng.IntN(8)
			} else {
				*c = byte(rng.IntN(256))
			}
		}
	}
	for i := range n {
		e := data[16+28*i:]
		at, length := le.Uint64(e[8:]), le.Uint64(e[16:])
		le.PutUint32(e[24:], crc32.Checksum(data[at:at+length], table))
	}
	le.PutUint32(data[16+28*n:], crc32.Checksum(data[:16+28*n], table))
	return data
}

// mutate exchanges up to three words of a text for words of texts.
func mutate(rng *rand.Rand, texts [][]byte) []byte {
	text := bytes.Clone(texts[rng.IntN(len(texts))])
	for range 1 + rng.IntN(3) {
		a, b := word(rng, text)
		other := texts[rng.IntN(len(texts))]
		c, d := word(rng, other)
		with := other[c:d]
		if rng.IntN(3) == 0 {
			with = [][]byte{[]byte("0"), []byte("-1"), []byte("4294967296"), []byte("9223372036854775807"), []byte("1e999"), []byte(`""`), []byte(`"\xff"`), []byte("$p"), []byte("serial"), {}}[rng.IntN(10)]
		}
		text = append(append(bytes.Clone(text[:a]), with...), text[b:]...)
	}
	return text
}

// word returns where a word, a number or a sign of text lies.
func word(rng *rand.Rand, text []byte) (from, to int) {
	if len(text) == 0 {
		return 0, 0
	}
	letter := func(c byte) bool {
		return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	at := rng.IntN(len(text))
	from, to = at, at+1
	for from > 0 && letter(text[at]) && letter(text[from-1]) {
		from--
	}
	for to < len(text) && letter(text[at]) && letter(text[to]) {
		to++
	}
	return from, to
}
