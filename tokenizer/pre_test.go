package tokenizer_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/tokenizer"
)

// preOracle is testdata/tokenizer/pretokenizers.json, which testdata/gen/pretokenizers.py writes with llama.cpp.
type preOracle struct {
	Spec   json.RawMessage `json:"spec"`
	Texts  []string        `json:"texts"`
	Block  rune            `json:"block"`
	Blocks []rune          `json:"blocks"`
	Groups []struct {
		Names      []string `json:"names"`
		Texts      string   `json:"texts"` // CRC-32 of the IDs of all of Texts
		Each       []string `json:"each"`  // of each text, of the strings of smollm2.json and of bytes that are no UTF-8, cut to four digits
		Codepoints []string `json:"codepoints"`
		AddBOS     bool     `json:"add_bos"`
	} `json:"groups"`
}

// preProbes shows the class of a code point.
func preProbes(r rune) string {
	c := utf8.AppendRune(nil, r)
	if r >= 0xd800 && r < 0xe000 {
		c = []byte{0xed, byte(0x80 | r>>6&0x3f), byte(0x80 | r&0x3f)}
	}
	s := string(c)
	return s + "'s   " + s + " a" + s + "a A" + s + "A 1" + s + "1 !" + s + "\n " + s + s + s + s + " \n" + s + "\n"
}

// TestPreTokenizers: each pre-tokenizer gives llama.cpp's tokens of a vocabulary in which merges show where words end.
func TestPreTokenizers(t *testing.T) {
	b, err := os.ReadFile(repoFile("tokenizer", "pretokenizers.json"))
	require.NoError(t, err)
	var o preOracle
	require.NoError(t, json.Unmarshal(b, &o))
	spec, err := tokenizer.Unmarshal(o.Spec)
	require.NoError(t, err)
	inputs := slices.Clone(o.Texts)
	for _, s := range theOracle(t).Strings {
		inputs = append(inputs, s.input(t))
	}
	var names []string
	for _, g := range o.Groups {
		names = append(names, g.Names...)
		for i, name := range g.Names {
			assert.Equal(t, g.AddBOS, tokenizer.AddsBOS(name), "%s adds BOS", name)
			s := *spec
			s.Pre = name
			tok, err := tokenizer.New(&s)
			require.NoError(t, err)
			var ids []int32
			for _, text := range o.Texts {
				ids = append(ids, tok.Encode(text, true)...)
			}
			assert.Equal(t, g.Texts, crc(ids), "%s", name)
			if i > 0 {
				continue // names of a group are one row of the table
			}
			require.Len(t, g.Each, len(inputs))
			for k, text := range inputs {
				require.Equal(t, g.Each[k], crc(tok.Encode(text, true))[:4], "%s: %q", name, text)
			}
			if testing.Short() {
				continue
			}
			for k, want := range g.Codepoints {
				if !sample.Takes(t.Name()+name, k, 8) {
					continue
				}
				ids = ids[:0]
				for r := o.Blocks[k]; r < o.Blocks[k]+o.Block; r++ {
					ids = append(ids, tok.Encode(preProbes(r), true)...)
				}
				assert.Equal(t, want, crc(ids), "%s: code points from %U on", name, o.Blocks[k])
			}
		}
	}
	slices.Sort(names)
	assert.Equal(t, tokenizer.PreTokenizers(), names)
}
