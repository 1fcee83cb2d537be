package textgen

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/tokenizer"
)

// bytesTokenizer has a token for each byte, and some for several.
func bytesTokenizer(t *testing.T, words ...string) *tokenizer.Tokenizer {
	s := &tokenizer.Spec{Model: "llama", Tokens: []string{"<unk>"}, Types: []tokenizer.TokenType{tokenizer.Unknown}}
	for b := range 256 {
		s.Tokens = append(s.Tokens, "<0x"+strings.ToUpper(string("0123456789abcdef"[b>>4])+string("0123456789abcdef"[b&15]))+">")
		s.Types = append(s.Types, tokenizer.Byte)
	}
	for _, w := range words {
		s.Tokens, s.Types = append(s.Tokens, w), append(s.Types, tokenizer.Normal)
	}
	tok, err := tokenizer.New(s)
	require.NoError(t, err)
	return tok
}

// TestTextEndsBeforeStop: however a text is cut into tokens, it ends before the stop string that is complete first, never
// shows a part of one or of a character, and holds nothing back for longer than it must.
func TestTextEndsBeforeStop(t *testing.T) {
	tok := bytesTokenizer(t, "a", "ab", "ba", "abab", "é", "aé", "▁b")
	rapid.Check(t, func(t *rapid.T) {
		stops := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("abé ")), 1, 4, -1), 0, 3).Draw(t, "stops")
		ids := rapid.SliceOfN(rapid.OneOf(rapid.Int32Range(257, 263), rapid.SampledFrom([]int32{1 + 'a', 1 + 'b', 1 + 0xc3, 1 + 0xa9, 1 + 0xf0, 1 + ' '})), 0, 20).Draw(t, "ids")
		whole := string([]rune(tok.Decode(ids, false)))
		// The oracle reads byte by byte.
		want, stopped := whole, false
	search:
		for end := range len(whole) + 1 {
			for begin := range end {
				for _, s := range stops {
					if whole[begin:end] == s {
						want, stopped = whole[:begin], true
						break search
					}
				}
			}
		}
		text := NewText(tok, stops)
		got, ended := "", false
		for i, id := range ids {
			s, err := text.Next(id)
			require.True(t, utf8.ValidString(s), "%q", s)
			got += s
			if ended = err != nil; ended {
				require.ErrorIs(t, err, ErrStop)
				break
			}
			// What is held is the beginning of a stop string, or of a character.
			so := tok.Decode(ids[:i+1], false)
			held := string([]rune(so))[min(len(got), len(string([]rune(so)))):]
			for held != "" && !begins(held, stops) {
				r, n := utf8.DecodeLastRuneInString(held)
				require.Equal(t, utf8.RuneError, r, "%q is held back of %q", held, so)
				held = held[:len(held)-n]
			}
		}
		if !ended {
			got += text.Flush()
		}
		require.Equal(t, stopped, ended)
		require.Equal(t, want, got)
		require.Empty(t, text.Flush())
	})
}

func begins(s string, stops []string) bool {
	for _, stop := range stops {
		if strings.HasPrefix(stop, s) {
			return true
		}
	}
	return false
}

// A character that is never completed is not shown in part.
func TestTextHasWholeCharacters(t *testing.T) {
	text := NewText(bytesTokenizer(t), nil)
	all := ""
	for _, b := range []byte("\xf0\x9f\x99\x82a\xff\xf0\x9f") {
		s, err := text.Next(int32(b) + 1)
		require.NoError(t, err)
		all += s + "|"
	}
	require.Equal(t, "|||🙂|a|\ufffd|||", all)
	require.Equal(t, "\ufffd\ufffd", text.Flush())
}
