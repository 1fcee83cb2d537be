package tokenizer_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/tokenizer"
)

// jsonOracle is testdata/tokenizer/huggingface.json, which testdata/gen/huggingface.py writes with the package tokenizers.
type jsonOracle struct {
	Texts  []string
	Block  rune
	Blocks []rune
	Kinds  []struct {
		Name       string
		JSON       json.RawMessage
		Each       string   // of each text: four digits of the CRC-32 of its IDs without and with specials; ---- where there is no answer
		Codepoints []string // of byte-level BPE: of each block of code points, the CRC-32 of their probes' IDs
		Decoded    string   // the same of what its IDs with specials give, without and with these
	}
}

func readJSONOracle(t testing.TB) (o jsonOracle) {
	path := os.Getenv("TOKENIZER_FUZZ") // other strings than those that are stored
	if path == "" {
		path = repoFile("tokenizer", "huggingface.json")
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &o))
	require.Len(t, o.Kinds, 16)
	return o
}

// jsonProbes shows the class of a code point.
func jsonProbes(r rune) string {
	s := string(r)
	return s + "'s\r  " + s + "\ra" + s + "a\rA" + s + "A\r1" + s + "1\r!" + s + "\n\r" + s + s + s + s
}

// TestTokenizerJSONCodePoints: code points are of the classes that they have in Hugging Face's tokenizers.
func TestTokenizerJSONCodePoints(t *testing.T) {
	sample.Long(t)
	o := readJSONOracle(t)
	kinds := 0
	for _, k := range o.Kinds {
		if k.Codepoints == nil {
			continue
		}
		kinds++
		spec, err := tokenizer.FromJSON(k.JSON, "", "", "")
		require.NoError(t, err)
		tok, err := tokenizer.New(spec)
		require.NoError(t, err)
		for i, want := range k.Codepoints {
			if !sample.Takes(t.Name()+k.Name, i, 16) {
				continue
			}
			var ids []int32
			for r := o.Blocks[i]; r < o.Blocks[i]+o.Block; r++ {
				if r < 0xd800 || r >= 0xe000 {
					ids = append(ids, tok.Encode(jsonProbes(r), true)...)
				}
			}
			assert.Equal(t, want, crc(ids), "%s: code points from %U on", k.Name, o.Blocks[i])
		}
	}
	require.Equal(t, 6, kinds)
}

// TestTokenizerJSON: IDs and texts of all kinds of tokenizer.json files are those of Hugging Face's tokenizers, also behind
// Marshal.
func TestTokenizerJSON(t *testing.T) {
	o := readJSONOracle(t)
	inputs := slices.Clone(o.Texts)
	for _, s := range theOracle(t).Strings {
		inputs = append(inputs, s.input(t))
	}
	require.Greater(t, len(inputs), 1000)
	for _, k := range o.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			spec, err := tokenizer.FromJSON(k.JSON, "", "", "")
			require.NoError(t, err)
			stored, err := tokenizer.Marshal(spec)
			require.NoError(t, err)
			again, err := tokenizer.Unmarshal(stored)
			require.NoError(t, err)
			assert.Equal(t, spec, again)
			tok, err := tokenizer.New(again)
			require.NoError(t, err)
			require.Len(t, k.Each, 4*len(inputs))
			wrong := 0
			for i, text := range inputs {
				want, shown := k.Each[4*i:4*i+4], k.Decoded[4*i:4*i+4]
				if want == "----" {
					continue
				}
				plain, special := tok.Encode(text, false), tok.Encode(text, true)
				ok := assert.Equal(t, want, crc(slices.Concat(plain, []int32{-1}, special))[:4], "%q: %v, %v", text, plain, special)
				ok = ok && assert.Equal(t, shown, sumOf(tok.Decode(special, false) + "\x00" + tok.Decode(special, true))[:4], "decoding %q: %v", text, special)
				if !ok {
					if wrong++; wrong == 8 {
						t.FailNow()
					}
				}
			}
		})
	}
}

const smallJSON = `{"added_tokens":[{"id":4,"content":"<s>","special":true,"normalized":false}],"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},` +
	`"pre_tokenizer":null,"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}]},` +
	`"model":{"type":"BPE","unk_token":"?","fuse_unk":true,"byte_fallback":true,"vocab":{"?":0,"a":1,"b":2,"ab":3},"merges":[["a","b"]]}}`

// What a tokenizer.json has that is not supported is named.
func TestTokenizerJSONRefuses(t *testing.T) {
	replaced := func(pairs ...string) []byte {
		s := smallJSON
		for i := 0; i < len(pairs); i += 2 {
			require.Contains(t, s, pairs[i])
			s = strings.ReplaceAll(s, pairs[i], pairs[i+1])
		}
		return []byte(s)
	}
	spec, err := tokenizer.FromJSON(replaced(), "<s>", "", "")
	require.NoError(t, err)
	tok, err := tokenizer.New(spec)
	require.NoError(t, err)
	require.Equal(t, []int32{4, 3, 0, 1}, tok.Encode("<s>ab !a", true))
	const unigram = `"type":"Unigram","unk_id":0,"vocab":[["?",0],["a",-1.5],["b",-2],["ab",-3]],"merges":[]`
	const bpe = `"type":"BPE","unk_token":"?","fuse_unk":true,"byte_fallback":true,"vocab":{"?":0,"a":1,"b":2,"ab":3},"merges":[["a","b"]]`
	_, err = tokenizer.FromJSON(replaced(bpe, unigram), "", "", "")
	require.NoError(t, err)
	for _, c := range []struct {
		json []byte
		want string
	}{
		{replaced(`"BPE"`, `"WordPiece"`), `model "WordPiece" is not supported, BPE and Unigram are`},
		{replaced(`"type":"Replace","pattern":{"String":" "}`, `"type":"Precompiled","precompiled_charsmap":"AAAA"`), `normalizer "Precompiled" is not supported`},
		{replaced(`{"String":" "}`, `{"Regex":"\\s+"}`), `normalizer "Replace \\s+" is not supported`},
		{replaced(`"pre_tokenizer":null`, `"pre_tokenizer":{"type":"Whitespace"}`), `pre-tokenizer "Whitespace" is not supported with this model`},
		{replaced(`{"type":"Fuse"}`, `{"type":"WordPiece"}`), `decoder "WordPiece" is not supported in this place`},
		{replaced(`{"type":"Replace","pattern":{"String":"▁"},"content":" "},`, ``), `a decoder that makes no spaces of ▁ is not supported`},
		{replaced(`"type":"BPE"`, `"ignore_merges":true`), "ignore_merges is not supported with merges of characters"},
		{replaced(`"type":"BPE"`, `"dropout":0.1`), "dropout, prefixes and suffixes of symbols are not supported"},
		{replaced(`"normalized":false`, `"single_word":true`), `added token "<s>" has a number below 0, or takes what is beside it`},
		{replaced(`"id":4`, `"id":3`), `added token "<s>" has the number of another token of the model`},
		{replaced(`"unk_token":"?"`, `"unk_token":"!"`), `the unknown token "!" is not in the vocabulary`},
		{replaced(`"ab":3`, `"ba":3`), `merge 0 ("a b") is not of tokens to a token`},
		{replaced(`[["a","b"]]`, `[["a","b","c"]]`), "a merge of 3 symbols"},
		{replaced(`[["a","b"]]`, `[["a b","b"]]`), `a merge of "a b" and "b" is not supported`},
		{replaced(`"content":"▁"`, `"content":"123456789012345678"`), "is not supported"},
		{replaced(bpe, unigram, `"unk_id":0,`, ""), "a unigram vocabulary has an unknown token"},
		{replaced(bpe, unigram, `["b",-2]`, `["a",-2]`), `token "a" is there twice`},
		{replaced(bpe, unigram, `["b",-2]`, `["b","x"]`), "token 2: "},
		{replaced(bpe, unigram, `["b",-2]`, `["b",1e400]`), "token 2: "},
	} {
		_, err := tokenizer.FromJSON(c.json, "", "", "")
		assert.ErrorContains(t, err, c.want, "%s", c.json)
	}

	// What only a damaged recording has.
	for want, spoil := range map[string]func(*tokenizer.Spec){
		"has fields of another one, or lacks its own":      func(s *tokenizer.Spec) { s.Rules = nil },
		"rules take the place of a pre-tokenizer":          func(s *tokenizer.Spec) { s.Pre = "smollm" },
		"the model has 6 tokens, the vocabulary 5":         func(s *tokenizer.Spec) { s.Rules.Size = 6 },
		`rules "x" and "" for spaces are unknown`:          func(s *tokenizer.Spec) { s.Rules.Space = "x" },
		"rules have a space before a text and none within": func(s *tokenizer.Spec) { s.Rules.Space = "first" },
		"17 steps of normalization":                        func(s *tokenizer.Spec) { s.Rules.Normalize = make([]tokenizer.Alter, 17) },
		`normalization "x" is unknown`:                     func(s *tokenizer.Spec) { s.Rules.Normalize[0].Kind = "x" },
		"rules name token 5, the vocabulary has 0 to 4":    func(s *tokenizer.Spec) { s.Rules.Late = []int32{5} },
		`normalization of "a" to "aaaaaaaaa" is not`: func(s *tokenizer.Spec) {
			s.Rules.Normalize = slices.Repeat([]tokenizer.Alter{{Kind: "replace", From: "a", To: "aaaaaaaaa"}}, 2)
		},
		"2 token types for 5 tokens":                          func(s *tokenizer.Spec) { s.Types = s.Types[:2] },
		"4 logarithms of probabilities for 3 tokens":          func(s *tokenizer.Spec) { toUnigram(s); s.Rules.Size = 3 },
		"the logarithm of token 2's probability is NaN":       func(s *tokenizer.Spec) { toUnigram(s); s.LogProbs[2] = math.NaN() },
		"a unigram vocabulary has an unknown token and no me": func(s *tokenizer.Spec) { toUnigram(s); s.Merges = []string{"a b"} },
	} {
		s, err := tokenizer.FromJSON(replaced(), "", "", "")
		require.NoError(t, err)
		spoil(s)
		assert.ErrorContains(t, s.Check(), want)
	}
}

func toUnigram(s *tokenizer.Spec) {
	s.Model, s.Merges, s.LogProbs = "unigram", nil, []float64{-1, -2, -3, -4}
}

// BenchmarkLength reports how much more a byte of 1 MB takes than one of 10 kB, for each kind of tokenizer, of text as people
// write it and of one that has no places to cut.
func BenchmarkLength(b *testing.B) {
	texts := map[string]string{
		"text": "The test at 12 o'clock was <b>as</b> it is: a stab, said Ted!\n\nIf (abs < 1) {\n\tbats();\n}\n  字 and 🙂, ça va? Astat tsab.\n",
		"run":  " ",
	}
	kinds := map[string]*tokenizer.Tokenizer{}
	for _, k := range readJSONOracle(b).Kinds {
		spec, err := tokenizer.FromJSON(k.JSON, "", "", "")
		require.NoError(b, err)
		kinds[k.Name], err = tokenizer.New(spec)
		require.NoError(b, err)
	}
	spm, err := tokenizer.New(readSPM(b).spec(4))
	require.NoError(b, err)
	kinds["SentencePiece"] = spm
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		for what, unit := range texts {
			b.Run(name+"/"+what, func(b *testing.B) {
				short := strings.Repeat(unit, 10_000/len(unit))
				long := strings.Repeat(unit, 1_000_000/len(unit))
				took := func(text string, times int) time.Duration { // of a byte, the least of several
					least := time.Duration(math.MaxInt64)
					for range 5 {
						start := time.Now()
						for range times {
							kinds[name].Encode(text, true)
						}
						least = min(least, time.Since(start)/time.Duration(times))
					}
					return least
				}
				for b.Loop() {
					of10kB, of1MB := float64(took(short, 20))/float64(len(short)), float64(took(long, 1))/float64(len(long))
					b.ReportMetric(of1MB/of10kB, "ratio")
					b.ReportMetric(of1MB, "ns/byte")
				}
			})
		}
	}
}

// BenchmarkNormalized reports what encoding takes a byte where text is normalized first.
func BenchmarkNormalized(b *testing.B) {
	texts := map[string]string{
		"ascii": "The quick brown fox jumps over the lazy dog. It's 12 o'clock;\n",
		"mixed": "The quick brown fox; ça va? 字 and 🙂, größer als это, 한국어.\n",
		"marks": "c\u0327a va? gro\u0308\u00dfer, e\u0323\u0302 \u1112\u1161\u11ab\n",
	}
	for _, k := range readJSONOracle(b).Kinds {
		if !strings.Contains(string(k.JSON), `"NF`) {
			continue
		}
		spec, err := tokenizer.FromJSON(k.JSON, "", "", "")
		require.NoError(b, err)
		tok, err := tokenizer.New(spec)
		require.NoError(b, err)
		for _, what := range slices.Sorted(maps.Keys(texts)) {
			text := strings.Repeat(texts[what], 1_000_000/len(texts[what]))
			b.Run(k.Name+"/"+what, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					tok.Encode(text, false)
				}
			})
		}
	}
}
