package tokenizer_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/tokenizer"
)

// oracle is testdata/tokenizer/smollm2.json, which testdata/gen/tokenizer.py
// writes with llama.cpp.
type oracle struct {
	Tokens  int        `json:"tokens"`
	EOG     []int32    `json:"eog"`
	Strings []sentence `json:"strings"`
	Runs    []struct {
		Text  string `json:"text"`
		Times int    `json:"times"`
		Count int    `json:"count"`
		CRC   string `json:"crc32"`
	} `json:"runs"`
	Pieces     map[string]string `json:"pieces"`
	Codepoints struct {
		Block int      `json:"block"`
		CRC   []string `json:"crc32"`
	} `json:"codepoints"`
	Models []struct {
		Name    string          `json:"name"`
		Spec    json.RawMessage `json:"spec"`
		EOG     []int32         `json:"eog"`
		Strings []sentence      `json:"strings"`
		Pieces  string          `json:"pieces"`
	} `json:"models"`
}

type sentence struct {
	Text    string  `json:"text"`
	Hex     string  `json:"hex"` // instead of text, for what is not UTF-8
	IDs     []int32 `json:"ids"`
	Special []int32 `json:"special"`     // nil: like IDs
	Decoded *string `json:"decoded_hex"` // nil: like the text
}

func (s sentence) input(t testing.TB) string {
	if s.Hex == "" {
		return s.Text
	}
	b, err := hex.DecodeString(s.Hex)
	require.NoError(t, err)
	return string(b)
}

// check compares one sentence with the oracle in all directions.
func (s sentence) check(t testing.TB, tok *tokenizer.Tokenizer) {
	in := s.input(t)
	assert.Equal(t, s.IDs, tok.Encode(in, false), "%q without specials", in)
	want := s.Special
	if want == nil {
		want = s.IDs
	}
	assert.Equal(t, want, tok.Encode(in, true), "%q with specials", in)
}

func repoFile(elem ...string) string {
	return filepath.Join(append([]string{"..", "testdata"}, elem...)...)
}

var readOracle = sync.OnceValues(func() (o oracle, err error) {
	b, err := os.ReadFile(repoFile("tokenizer", "smollm2.json"))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(b, &o)
})

func theOracle(t testing.TB) oracle {
	o, err := readOracle()
	require.NoError(t, err)
	return o
}

var readSpec = sync.OnceValues(func() (*tokenizer.Spec, error) {
	path := os.Getenv("MODEL")
	if path == "" {
		path = repoFile("model", "SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	f, err := ggufio.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return gguf.FromGGUF(f)
})

// smollm2 is the demo model's tokenizer.
func smollm2(t testing.TB) (*tokenizer.Tokenizer, *tokenizer.Spec) {
	s, err := readSpec()
	require.NoError(t, err, "these tests need the demo model: set MODEL, or put it at testdata/model")
	tok, err := tokenizer.New(s)
	require.NoError(t, err)
	return tok, s
}

func TestStringsAsLlamaCpp(t *testing.T) {
	tok, _ := smollm2(t)
	o := theOracle(t)
	require.GreaterOrEqual(t, len(o.Strings), 300)
	for _, s := range o.Strings {
		s.check(t, tok)
		in := s.input(t)
		want := in
		if s.Decoded != nil {
			b, err := hex.DecodeString(*s.Decoded)
			require.NoError(t, err)
			want = string(b)
		}
		assert.Equal(t, want, tok.Decode(s.IDs, false), "decoding %q", in)
	}
}

func crc(ids []int32) string {
	var b []byte
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)))
}

// TestLongRunsAsLlamaCpp checks runs of up to a million characters, which are one word
// (a, spaces) or very many. Quadratic work would take hours; the bound leaves room for
// a busy machine.
func TestLongRunsAsLlamaCpp(t *testing.T) {
	sample.Seldom(t)
	tok, _ := smollm2(t)
	for _, r := range sample.Of(t, t.Name(), theOracle(t).Runs, 3) {
		text := strings.Repeat(r.Text, r.Times)
		start := time.Now()
		ids := tok.Encode(text, true)
		took := time.Since(start)
		t.Logf("%q × %d: %d tokens in %v", r.Text, r.Times, len(ids), took.Round(time.Millisecond))
		assert.Len(t, ids, r.Count, "%q × %d", r.Text, r.Times)
		assert.Equal(t, r.CRC, crc(ids), "%q × %d", r.Text, r.Times)
		assert.Less(t, took, 2*time.Minute, "%q × %d", r.Text, r.Times)
	}
}

// TestLinearInManyRegions checks inputs whose cost could be quadratic outside of
// merging: many special tokens, many words, white space before each of them.
func TestLinearInManyRegions(t *testing.T) {
	tok, _ := smollm2(t)
	for _, unit := range []string{"<|im_end|>", "<|im_", " \n\t  x", "1 ", "'s", "\u00a0\u3000!", "\xff", "<jupyter_text>a<file_sep>"} {
		text := strings.Repeat(unit, 1<<18/len(unit))
		start := time.Now()
		tok.Encode(text, true)
		took := time.Since(start)
		t.Logf("256 KiB of %q: %v", unit, took.Round(time.Millisecond))
		assert.Less(t, took, 2*time.Minute, "%q", unit)
	}
}

// probes returns texts with a code point in the surroundings that
// testdata/gen/tokenizer.py uses.
func probes(r rune) string {
	c := utf8.AppendRune(nil, r)
	if r >= 0xd800 && r < 0xe000 { // Python's "surrogatepass"
		c = []byte{0xed, byte(0x80 | r>>6&0x3f), byte(0x80 | r&0x3f)}
	}
	s := string(c)
	return strings.Join([]string{s + "'s", " " + s, "  " + s, "a" + s + "a", s + " a", s + s + "a"}, "<|im_start|>")
}

// TestAllCodePoints compares the character class of every code point with llama.cpp's,
// and so Go's Unicode version with its. If it fails with a newer Go, the list `newer`
// in codepoint.go must change.
func TestAllCodePoints(t *testing.T) {
	sample.Seldom(t)
	tok, _ := smollm2(t)
	o := theOracle(t).Codepoints
	require.Len(t, o.CRC, 0x110000/o.Block)
	var ids []int32
	for i, want := range o.CRC {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		ids = ids[:0]
		for r := rune(i * o.Block); r < rune((i+1)*o.Block); r++ {
			ids = append(ids, tok.Encode(probes(r), true)...)
		}
		assert.Equal(t, want, crc(ids), "code points %U to %U", i*o.Block, (i+1)*o.Block-1)
	}
}

func sum(pieces func(yield func(string))) string {
	h := sha256.New()
	pieces(func(p string) {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(p))))
		h.Write([]byte(p))
	})
	return hex.EncodeToString(h.Sum(nil))
}

func TestPiecesAsLlamaCpp(t *testing.T) {
	tok, _ := smollm2(t)
	o := theOracle(t)
	require.Equal(t, o.Tokens, tok.Size())
	for name, special := range map[string]bool{"false": false, "true": true} {
		got := sum(func(yield func(string)) {
			for id := range int32(tok.Size()) {
				yield(tok.Piece(id, special))
			}
		})
		assert.Equal(t, o.Pieces[name], got, "special=%s", name)
	}
}

func TestEndOfGenerationAsLlamaCpp(t *testing.T) {
	tok, _ := smollm2(t)
	o := theOracle(t)
	assert.Equal(t, []int32{0, 2, 4}, o.EOG)
	assert.Equal(t, o.EOG, tok.EndOfGeneration())
	for id := range int32(20) {
		assert.Equal(t, id == 0 || id == 2 || id == 4, tok.IsEndOfGeneration(id), "%d", id)
	}
}

// TestSmallVocabulariesAsLlamaCpp checks odd vocabularies that no model has, with every
// text that the end-of-generation rule knows.
func TestSmallVocabulariesAsLlamaCpp(t *testing.T) {
	for _, m := range theOracle(t).Models {
		t.Run(m.Name, func(t *testing.T) {
			s, err := tokenizer.Unmarshal(m.Spec)
			require.NoError(t, err)
			tok, err := tokenizer.New(s)
			require.NoError(t, err)
			assert.Equal(t, m.EOG, tok.EndOfGeneration())
			for _, x := range m.Strings {
				x.check(t, tok)
			}
			got := sum(func(yield func(string)) {
				for id := range int32(tok.Size()) {
					yield(tok.Piece(id, false))
					yield(tok.Piece(id, true))
				}
			})
			assert.Equal(t, m.Pieces, got, "pieces")
		})
	}
}

func TestReferenceFacts(t *testing.T) {
	tok, _ := smollm2(t)
	assert.Equal(t, []int32{504, 3575, 282, 4649, 314}, tok.Encode("The capital of France is", false))
	assert.Equal(t, " Paris", tok.Decode([]int32{7042}, false))
	for role, want := range map[tokenizer.Role]int32{tokenizer.BOS: 1, tokenizer.EOS: 2, tokenizer.UNK: 0, tokenizer.PAD: 2} {
		id, ok := tok.ID(role)
		assert.True(t, ok, role)
		assert.Equal(t, want, id, role)
	}
	_, ok := tok.ID(tokenizer.EOT)
	assert.False(t, ok, "the file names no end of turn")
	assert.False(t, tok.AddBOS())
	assert.False(t, tok.AddEOS())
	assert.Equal(t, []byte{0x04, 0x06, 0x13, 0x14, 0x16, 0x1d, 0xc0, 0xc1, 0xf1, 0xf2, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff}, tok.MissingBytes())
	assert.Equal(t, "\ufffd\ufffd", tok.Decode([]int32{-1, 49152}, true), "ids outside the vocabulary are visible")
	assert.Equal(t, "ab", tok.Decode([]int32{81, 2, 82}, false))
	assert.Equal(t, "a<|im_end|>b", tok.Decode([]int32{81, 2, 82}, true))
	assert.Empty(t, tok.Encode("", true))
}

// anyText draws valid UTF-8 with much white space and many digits and special tokens.
func anyText(missing string) *rapid.Generator[string] {
	parts := rapid.OneOf(
		rapid.SampledFrom([]string{" ", "  ", "\n", "'s", "'LL", "<|im_end|>", "<|im_", "a", "the", "12", "\u00a0", "\u3000", "é", "e\u0301", "字", "🙂", "\u200d"}),
		rapid.StringN(1, 6, -1),
	)
	return rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(parts, 0, 20).Draw(t, "parts"), "")
		return strings.Map(func(r rune) rune {
			if strings.ContainsAny(string(r), missing) || !representable(r, missing) {
				return -1
			}
			return r
		}, s)
	})
}

// representable reports whether none of the rune's bytes is missing from the
// vocabulary.
func representable(r rune, missing string) bool {
	for _, b := range []byte(string(r)) {
		if strings.IndexByte(missing, b) >= 0 {
			return false
		}
	}
	return true
}

func TestRoundTrip(t *testing.T) {
	tok, _ := smollm2(t)
	gen := anyText(string(tok.MissingBytes()))
	rapid.Check(t, func(t *rapid.T) {
		s := gen.Draw(t, "s")
		ids := tok.Encode(s, false)
		if got := tok.Decode(ids, false); got != s {
			t.Fatalf("Decode(Encode(%q)) = %q", s, got)
		}
		if got := tok.Decode(tok.Encode(s, true), true); got != s {
			t.Fatalf("with specials: Decode(Encode(%q)) = %q", s, got)
		}
	})
}

// TestStreamIsDecode checks that, for any IDs, the parts joined are the whole, and that
// no part ends within a character that the next IDs complete.
func TestStreamIsDecode(t *testing.T) {
	tok, _ := smollm2(t)
	gen := anyText(string(tok.MissingBytes()))
	rapid.Check(t, func(t *rapid.T) {
		special := rapid.Bool().Draw(t, "special")
		d := tok.NewDecoder(special)
		s := gen.Draw(t, "s")
		all := ""
		for _, id := range tok.Encode(s, special) {
			part := d.Next(id)
			if !utf8.ValidString(part) {
				t.Fatalf("%q: part %q", s, part)
			}
			all += part
		}
		if rest := d.Flush(); rest != "" || all != s {
			t.Fatalf("%q: parts %q, rest %q", s, all, rest)
		}
		ids := rapid.SliceOfN(rapid.Int32Range(-1, int32(tok.Size())), 0, 30).Draw(t, "ids")
		all = ""
		for _, id := range ids {
			all += d.Next(id)
		}
		if all += d.Flush(); all != tok.Decode(ids, special) {
			t.Fatalf("%v: parts %q, whole %q", ids, all, tok.Decode(ids, special))
		}
	})
}

// TestStreamHoldsBack checks that the three tokens of an emoji come out as one.
func TestStreamHoldsBack(t *testing.T) {
	tok, _ := smollm2(t)
	ids := tok.Encode("a🫠b", false)
	require.Greater(t, len(ids), 3, "the test wants a character of several tokens")
	d := tok.NewDecoder(false)
	var parts []string
	for _, id := range ids {
		if p := d.Next(id); p != "" {
			parts = append(parts, p)
		}
	}
	assert.Equal(t, []string{"a", "🫠", "b"}, parts)
	assert.Empty(t, d.Flush())
	d.Next(ids[1])
	assert.Equal(t, "\xf0\x9f", d.Flush()[:2], "an end within a character is not lost")
}

// TestInvalidUTF8 checks that, above U+10FFFF, where llama.cpp aborts, each byte is
// replaced.
func TestInvalidUTF8(t *testing.T) {
	tok, _ := smollm2(t)
	bad := tok.Encode("\ufffd", false)
	require.Len(t, bad, 1)
	for _, in := range []string{"\xf4\x90\x80\x80", "\xf7\xbf\xbf\xbf"} {
		assert.Equal(t, []int32{bad[0], bad[0], bad[0], bad[0]}, tok.Encode(in, false), "%q", in)
	}
}

func FuzzEncode(f *testing.F) {
	tok, _ := smollm2(f)
	f.Add("Hello <|im_end|> 12", true)
	f.Add("\xf0\x9f 's", false)
	f.Fuzz(func(t *testing.T, s string, special bool) {
		ids := tok.Encode(s, special)
		for _, id := range ids {
			require.True(t, id >= 0 && int(id) < tok.Size())
		}
		got := tok.Decode(ids, special)
		if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !representable(r, string(tok.MissingBytes())) }) {
			require.Equal(t, s, got)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tok, _ := smollm2(b)
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. It's 12 o'clock; ça va? 字 ", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Encode(text, true)
	}
}
