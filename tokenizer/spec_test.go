package tokenizer_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/tokenizer"
)

func tiny() *tokenizer.Spec {
	return &tokenizer.Spec{
		Model: "gpt2", Pre: "smollm",
		Tokens:  []string{"<|endoftext|>", "a", "b", "ab", "<0x0A>"},
		Types:   []tokenizer.TokenType{tokenizer.Control, tokenizer.Normal, tokenizer.Normal, tokenizer.Normal, tokenizer.Byte},
		Merges:  []string{"a b"},
		Special: map[tokenizer.Role]int32{tokenizer.EOS: 0},
	}
}

const tinyJSON = `{"version":1,"model":"gpt2","pre":"smollm","tokens":["<|endoftext|>","a","b","ab","<0x0A>"],` +
	`"types":[[3,1],[1,3],[6,1]],"merges":["a b"],"special":{"eos":0},"add_bos":false,"add_eos":false,"chat_template":""}`

func TestCheck(t *testing.T) {
	require.NoError(t, tiny().Check())
	cases := []struct {
		spoil func(*tokenizer.Spec)
		want  string
	}{
		{func(s *tokenizer.Spec) { s.Model = "bert" }, `model "bert" is not supported; supported: "gpt2"`},
		{func(s *tokenizer.Spec) { s.Pre = "viking" }, `pre-tokenizer "viking" is not supported; supported: codeshell, command-r, dbrx, deepseek-r1-qwen`},
		{func(s *tokenizer.Spec) { s.Pre = "" }, `pre-tokenizer "" is not supported`},
		{func(s *tokenizer.Spec) { s.Tokens = nil }, "0 tokens, want 1 to"},
		{func(s *tokenizer.Spec) { s.Types = s.Types[1:] }, "4 token types for 5 tokens"},
		{func(s *tokenizer.Spec) { s.Types[1] = 7 }, `token 1 ("a") has type 7, want 0 to 6`},
		{func(s *tokenizer.Spec) { s.Types[1] = tokenizer.Byte }, `token 1 ("a") is of type byte, want a text like <0x41>`},
		{func(s *tokenizer.Spec) { s.Tokens[2] = "a" }, `token "a" has ids 1 and 2`},
		{func(s *tokenizer.Spec) { s.Tokens[2], s.Tokens[1] = "", "[EMPTY_2]" }, `token "[EMPTY_2]" has ids 1 and 2`},
		{func(s *tokenizer.Spec) { s.Tokens[2] = "\xc3" }, `token 2 ("\xc3") is not UTF-8`},
		{func(s *tokenizer.Spec) { s.Tokens[2] = strings.Repeat("x", 1<<16+1) }, "token 2 has 65537 bytes, at most 65536"},
		{func(s *tokenizer.Spec) { s.Merges = []string{"ab"} }, `merge 0 ("ab") is not two symbols`},
		{func(s *tokenizer.Spec) { s.Merges = []string{"a b", ""} }, `merge 1 ("") is not two symbols`},
		{func(s *tokenizer.Spec) { s.Merges = []string{"a "} }, `merge 0 ("a ") is not two symbols`},
		{func(s *tokenizer.Spec) { s.Merges = []string{" a"} }, `merge 0 (" a") is not two symbols`},
		{func(s *tokenizer.Spec) { s.Special[tokenizer.BOS] = 5 }, "bos is token 5, the vocabulary has 0 to 4"},
		{func(s *tokenizer.Spec) { s.Special[tokenizer.BOS] = -1 }, "bos is token -1"},
		{func(s *tokenizer.Spec) { s.Special["king"] = 1 }, `role "king" is unknown`},
		{func(s *tokenizer.Spec) { s.AddBOS = true }, "the bos token is to be added, but there is none"},
		{func(s *tokenizer.Spec) { s.ChatTemplate = strings.Repeat("x", 1<<20+1) }, "chat template of 1048577 bytes"},
	}
	for _, c := range cases {
		s := tiny()
		c.spoil(s)
		_, err := tokenizer.New(s)
		assert.ErrorContains(t, err, c.want)
		_, err = tokenizer.Marshal(s)
		assert.ErrorContains(t, err, c.want)
	}
}

func TestMarshal(t *testing.T) {
	b, err := tokenizer.Marshal(tiny())
	require.NoError(t, err)
	assert.Equal(t, tinyJSON, string(b))
	s, err := tokenizer.Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, tiny(), s)
}

func TestMarshalModel(t *testing.T) {
	tok, want := smollm2(t)
	b, err := tokenizer.Marshal(want)
	require.NoError(t, err)
	t.Logf("%d bytes", len(b))
	assert.Less(t, len(b), 1_300_000)
	got, err := tokenizer.Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	again, err := tokenizer.New(got)
	require.NoError(t, err)
	const text = "It's <|im_end|> 12 ça"
	assert.Equal(t, tok.Encode(text, true), again.Encode(text, true))
}

func TestUnmarshalErrors(t *testing.T) {
	replace := func(old, new string) string {
		require.Contains(t, tinyJSON, old)
		return strings.Replace(tinyJSON, old, new, 1)
	}
	cases := []struct{ in, want string }{
		{"", "JSON at byte 0: unexpected EOF"},
		{"null", `JSON at byte 4: want '{', have "<nil>"`},
		{"[]", `want '{', have "["`},
		{tinyJSON + "{}", "there is more text after the JSON object"},
		{replace(`"version":1`, `"version":2`), "version 2 is not supported; supported: 1"},
		{replace(`"version":1,`, ``), `field "version" is missing`},
		{replace(`"model"`, `"pre"`), `field "pre" comes twice`},
		{replace(`"model"`, `"modal"`), `field "modal" is unknown`},
		{replace(`"gpt2"`, `7`), `want a string, have "7"`},
		{replace(`"gpt2"`, `"bert"`), `model "bert" is not supported`},
		{replace(`["a b"]`, `[["a b"]]`), `want a string, have "["`},
		{replace(`[3,1]`, `[3,1,1]`), `want ']', have "1"`},
		{replace(`[3,1]`, `[9,1]`), "want a whole number of 0 to 6"},
		{replace(`[3,1]`, `[3,2]`), "6 token types for 5 tokens"},
		{replace(`[3,1]`, `[3,-1]`), "want a whole number"},
		{replace(`[3,1]`, `[3,1048576]`), "types for more than 1048576 tokens"},
		{replace(`"eos":0`, `"eos":5`), "eos is token 5, the vocabulary has 0 to 4"},
		{replace(`"eos":0`, `"eos":0.5`), "want a whole number"},
		{replace(`"eos":0`, `"eos":0,"eos":0`), `field "eos" comes twice`},
		{replace(`"eos":0`, `"king":0`), `role "king" is unknown`},
		{replace(`"add_bos":false`, `"add_bos":0`), `want a bool, have "0"`},
		{strings.Replace(tinyJSON, `"a"`, "\"\xc3\"", 1), "not UTF-8"},
		{strings.Repeat("[", 1<<20), "want '{'"},
		{`{"tokens":` + strings.Repeat("[", 1<<20), "want a string"},
	}
	for _, c := range cases {
		_, err := tokenizer.Unmarshal([]byte(c.in))
		assert.ErrorContains(t, err, c.want, "%.200s", c.in)
	}
	for n := range len(tinyJSON) {
		_, err := tokenizer.Unmarshal([]byte(tinyJSON[:n]))
		assert.Error(t, err, "cut to %d bytes", n)
	}
}

// TestUnmarshalIsBounded checks that a list that is too long is not read to its end.
func TestUnmarshalIsBounded(t *testing.T) {
	in := []byte(`{"tokens":[` + strings.Repeat(`"",`, 20_000_000) + `""]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tokenizer.Unmarshal(in)
	runtime.ReadMemStats(&after)
	assert.ErrorContains(t, err, "a list has more than 1048576 elements")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
	_, err = tokenizer.Unmarshal(make([]byte, 64<<20+1))
	assert.ErrorContains(t, err, "67108865 bytes of JSON, at most 67108864")
}

func FuzzUnmarshal(f *testing.F) {
	ruled, err := tokenizer.FromJSON([]byte(smallJSON), "<s>", "", "")
	require.NoError(f, err)
	stored, err := tokenizer.Marshal(ruled)
	require.NoError(f, err)
	f.Add(stored)
	f.Add([]byte(tinyJSON))
	f.Add([]byte(strconv.Quote(tinyJSON)))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := tokenizer.Unmarshal(in)
		if err != nil {
			return
		}
		b, err := tokenizer.Marshal(s)
		require.NoError(t, err)
		again, err := tokenizer.Unmarshal(b)
		require.NoError(t, err)
		b2, err := tokenizer.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(b), string(b2))
		_, err = tokenizer.New(s)
		require.NoError(t, err)
	})
}
