package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// decodeText returns the code points of text as llama.cpp reads them, which is more
// lenient than UTF-8: surrogates are kept, and overlong forms give the value that they
// spell. A byte that begins no form becomes U+FFFD, and reading goes on with the next
// byte. The bytes of a form above U+10FFFF, on which llama.cpp aborts, become U+FFFD
// too.
func decodeText(text string) []rune {
	out := make([]rune, 0, len(text))
	for i := 0; i < len(text); {
		r, n := decodeOne(text[i:])
		out = append(out, r)
		i += n
	}
	return out
}

// decodeOne reads one code point, and returns how many bytes it took.
func decodeOne(s string) (rune, int) {
	b := s[0]
	n := 1
	var r rune
	switch {
	case b < 0x80:
		return rune(b), 1
	case b >= 0xc0 && b < 0xe0:
		r, n = rune(b&0x1f), 2
	case b >= 0xe0 && b < 0xf0:
		r, n = rune(b&0x0f), 3
	case b >= 0xf0 && b < 0xf8:
		r, n = rune(b&0x07), 4
	default:
		return utf8.RuneError, 1
	}
	if len(s) < n {
		return utf8.RuneError, 1
	}
	for i := 1; i < n; i++ {
		if s[i]&0xc0 != 0x80 {
			return utf8.RuneError, 1
		}
		r = r<<6 | rune(s[i]&0x3f)
	}
	if r > unicode.MaxRune {
		return utf8.RuneError, 1
	}
	return r, n
}

// appendCodePoint appends r as UTF-8, surrogates included.
func appendCodePoint(b []byte, r rune) []byte {
	if r >= 0xd800 && r <= 0xdfff {
		return append(b, byte(0xe0|r>>12), byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
	}
	return utf8.AppendRune(b, r)
}

// newer lists letters that Go's Unicode tables do not have and llama.cpp's do: Go 1.26 has Unicode 15.0, and llama.cpp also
// has the ideographs of extension I (Unicode 15.1). TestAllCodePoints fails when this list must change.
var newer = []struct{ first, last rune }{{0x2ebf0, 0x2ee5d}}
