package tokenizer_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/tokenizer"
)

// spmOracle is testdata/tokenizer/sentencepiece.json, which testdata/gen/sentencepiece.py writes with llama.cpp.
type spmOracle struct {
	Texts  []string `json:"texts"`
	Models []struct {
		Prefix  bool      `json:"prefix"`
		Strip   bool      `json:"strip"`
		Tokens  []string  `json:"tokens"`
		Scores  []float32 `json:"scores"`
		Types   []int     `json:"types"`
		AddBOS  bool      `json:"add_bos"`
		EOG     []int32   `json:"eog"`
		Each    []string  `json:"each"`    // of each text: four digits of the CRC-32 of its IDs without and with specials
		Pieces  []string  `json:"pieces"`  // the same of the bytes of each token, without and with specials, behind another
		Decoded []string  `json:"decoded"` // of what decoding a text's IDs gives
	} `json:"models"`
}

func readSPM(t testing.TB) (o spmOracle) {
	path := os.Getenv("SENTENCEPIECE_FUZZ") // other strings than those that are stored
	if path == "" {
		path = repoFile("tokenizer", "sentencepiece.json")
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &o))
	return o
}

func (o spmOracle) spec(i int) *tokenizer.Spec {
	m := o.Models[i]
	s := &tokenizer.Spec{
		Model: "llama", Tokens: m.Tokens, Scores: m.Scores, SpacePrefix: m.Prefix, StripBehind: m.Strip, AddBOS: m.AddBOS,
		Special: map[tokenizer.Role]int32{tokenizer.UNK: 0, tokenizer.BOS: 1, tokenizer.EOS: 2},
	}
	for _, k := range m.Types {
		s.Types = append(s.Types, tokenizer.TokenType(k))
	}
	return s
}

func sumOf(s string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(s)))[:4] }

// TestSentencePiece: IDs, pieces and texts of five vocabularies are llama.cpp's, also behind Marshal.
func TestSentencePiece(t *testing.T) {
	o := readSPM(t)
	inputs := slices.Clone(o.Texts)
	for _, s := range theOracle(t).Strings {
		inputs = append(inputs, s.input(t))
	}
	for i, m := range o.Models {
		stored, err := tokenizer.Marshal(o.spec(i))
		require.NoError(t, err)
		spec, err := tokenizer.Unmarshal(stored)
		require.NoError(t, err)
		assert.Equal(t, o.spec(i), spec)
		tok, err := tokenizer.New(spec)
		require.NoError(t, err)
		assert.True(t, m.AddBOS)
		assert.Equal(t, m.EOG, tok.EndOfGeneration())
		assert.Empty(t, tok.MissingBytes())
		require.Len(t, m.Each, len(inputs))
		for k, text := range inputs {
			plain, special := tok.Encode(text, false), tok.Encode(text, true)
			require.Equal(t, m.Each[k], crc(slices.Concat(plain, []int32{-1}, special))[:4], "model %d: %q: %v", i, text, plain)
			require.Equal(t, m.Decoded[k], sumOf(tok.Decode(plain, false)), "model %d: %q", i, text)
		}
		for id := range int32(tok.Size()) {
			require.Equal(t, m.Pieces[2*id], sumOf(tok.Decode([]int32{2, id}, false)), "model %d, token %d", i, id)
			require.Equal(t, m.Pieces[2*id+1], sumOf(tok.Decode([]int32{2, id}, true)), "model %d, token %d", i, id)
		}
	}
}

// A long text takes time by its length: it is one word.
func TestSentencePieceIsLinear(t *testing.T) {
	o := readSPM(t)
	tok, err := tokenizer.New(o.spec(0))
	require.NoError(t, err)
	const n = 300_000
	for _, text := range []string{"a", " ", "the ab", "🙂", "\xff"} {
		ids := tok.Encode(strings.Repeat(text, n/len(text)), false)
		require.NotEmpty(t, ids)
	}
}

// What a SentencePiece vocabulary may not be.
func TestSentencePieceCheck(t *testing.T) {
	o := readSPM(t)
	for _, c := range []struct {
		change func(*tokenizer.Spec)
		want   string
	}{
		{func(s *tokenizer.Spec) { s.Pre = "smollm" }, "no pre-tokenizer and no merges"},
		{func(s *tokenizer.Spec) { s.Merges = []string{"a b"} }, "no pre-tokenizer and no merges"},
		{func(s *tokenizer.Spec) { s.Scores = s.Scores[1:] }, "scores for"},
		{func(s *tokenizer.Spec) { s.Scores[7] /= 0 * s.Scores[7] }, "the score of token 7 is"},
		{func(s *tokenizer.Spec) { s.Model, s.Pre = "gpt2", "smollm" }, "of SentencePiece vocabularies alone"},
	} {
		s := o.spec(0)
		s.Scores = slices.Clone(s.Scores)
		c.change(s)
		assert.ErrorContains(t, s.Check(), c.want)
	}
}
