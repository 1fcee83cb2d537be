package kernelcases

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/metallibs"
)

// Every kernel of MLX's library is of one family, and no family is empty.
func TestFamilies(t *testing.T) {
	count := make([]int, len(Families))
	errors := 0
	for _, k := range metallibs.Open(t, "0.32.4").Kernels {
		f, err := FamilyOf(k.Name)
		if err != nil {
			if errors++; errors < 40 {
				t.Error(err)
			}
			continue
		}
		count[f]++
	}
	for i, n := range count {
		assert.NotZero(t, n, "%v", Families[i])
	}
	t.Logf("%d families", len(Families))
}

var update = flag.Bool("update", false, "write the tables of docs/softmetal-coverage.md and docs/metal-source.md")

// The table of docs/softmetal-coverage.md is up to date with the cases.
func TestTable(t *testing.T) {
	cases, err := Load("../../../testdata/kernelcases")
	require.NoError(t, err)
	var kernels []string
	for _, k := range metallibs.Open(t, "0.32.4").Kernels {
		kernels = append(kernels, k.Name)
	}
	table, err := Table(kernels, cases)
	require.NoError(t, err)
	onPage(t, "softmetal-coverage.md", table)
}

// The page on Metal source has the table of ggml's operations.
func TestStepTable(t *testing.T) {
	cases, err := Load("../../../testdata/ggml")
	require.NoError(t, err)
	onPage(t, "metal-source.md", StepTable(cases))
}

// onPage compares a table with the one on a page, between two marks, or writes it there with -update.
func onPage(t *testing.T, page, table string) {
	const begin, end = "<!-- table -->\n", "<!-- end of the table -->\n"
	path := filepath.Join("..", "..", "..", "docs", page)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s lacks the mark %q", path, begin)
	written, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s lacks the mark %q", path, end)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+table+end+after), 0o644))
		return
	}
	assert.Equal(t, table, written, "the page is out of date: go test ./internal/testing/kernelcases -update")
}

// A rule gives the same values here as in NumPy: a few of each type.
func TestRule(t *testing.T) {
	c := &Case{}
	draw := func(typ string, low, high int64, scale float64) []byte {
		return c.before(&Arg{Type: typ, Count: 4, Rule: &Rule{Seed: 5, Low: low, High: high, Scale: scale}})
	}
	for _, x := range []struct {
		typ       string
		low, high int64
		scale     float64
		want      string
	}{
		{"f32", -100, 100, 0.125, "00004040000040400000d0400000c040"},
		{"f16", -100, 100, 0.14285714285714285, "db42db426e47db46"},
		{"bf16", -1000, 1000, 0.14285714285714285, "b3422ac26b41a6c2"},
		{"i8", -5, 5, 1.0, "01040004"},
		{"u64", 0, 0, 1.0, "f3ed282334e0953bdff251150dc3db1e517609179efc68829ae1df253a33c1fe"},
		{"i32", -70000, 70000, 1.0, "53eb00008851ffff3fcd000021a6ffff"},
		{"c64", -3, 3, 0.5, "000000bf0000c03f000000bf0000c0bf0000803f0000c0bf0000c03f00000000"},
		{"bool", 0, 1, 1.0, "01010100"},
	} {
		assert.Equal(t, x.want, hex.EncodeToString(draw(x.typ, x.low, x.high, x.scale)), "%s", x.typ)
	}
}

// compare distinguishes a wrong value from a right one, and from one within the tolerance.
func TestCompare(t *testing.T) {
	c := &Case{Name: "c", data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0x7f}} // 1, NaN, infinity
	a := &Arg{Name: "x", Type: "f16", Count: 3, Want: &Want{Stored: Stored{Size: 12}, ULP: 1}}
	for got, right := range map[string]bool{
		"003c007e007c": true, "013c017e007c": true, "023c007e007c": false, "003c003c007c": false, "003c007e00fc": false, "003c007eff7b": false, "007e007e007c": false,
	} {
		b, err := hex.DecodeString(got)
		require.NoError(t, err)
		_, err = c.compare(a, b)
		assert.Equal(t, right, err == nil, "%s: %v", got, err)
	}
	whole := &Arg{Name: "x", Type: "i32", Count: 1, Want: &Want{Stored: Stored{Size: 4}}}
	_, err := c.compare(whole, []byte{0, 0, 0x80, 0x3f})
	assert.NoError(t, err)
	_, err = c.compare(whole, []byte{1, 0, 0x80, 0x3f})
	assert.ErrorContains(t, err, "c: x[0] of 1 is 0100803f, not 0000803f")
	_, err = c.compare(&Arg{Name: "x", Type: "u8", Count: 1, Rule: &Rule{Seed: 1, High: 1}}, []byte{7})
	assert.ErrorContains(t, err, "was changed")
}

// A malformed file of cases is an error that names the case.
func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{`:              "unexpected end",
		`[{"Name":"c"}]`: "c: it wants nothing",
		`[{"Name":"c","Args":[{"Name":"x","Type":"f64","Count":1,"Free":true}]}]`:                                                                                               `x has 1 elements of type "f64"`,
		`[{"Name":"c","Args":[{"Name":"x","Type":"f32","Count":1}]}]`:                                                                                                           "x holds nothing",
		`[{"Name":"c","Args":[{"Name":"x","Bytes":"0g"}]}]`:                                                                                                                     "x: encoding/hex",
		`[{"Name":"c","Args":[{"Name":"x","Type":"f32","Count":1,"Want":{"At":1,"Size":4}}]}]`:                                                                                  "x: 4 bytes at 1 of 4",
		`[{"Name":"c","Args":[{"Name":"x","Type":"f32","Count":1,"Want":{"At":0,"Size":4,"Abs":1}}]}]`:                                                                          "a tolerance without a reason",
		`[{"Name":"c","Args":[{"Name":"x","Type":"u8","Count":4,"Want":{"At":0,"Size":4}}]},{"Name":"c","Args":[{"Name":"x","Type":"u8","Count":4,"Want":{"At":0,"Size":4}}]}]`: "two cases are called c",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte(text), 0o600))
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write(make([]byte, 4))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.bin.gz"), packed.Bytes(), 0o600))
		_, err = Load(dir)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "a.json")
	}
	_, err := Load(t.TempDir())
	assert.ErrorContains(t, err, "holds no cases")
}
