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

// newer are code points that Go's Unicode tables do not have, and others do: instead of those from first to last, which are of one
// class, Go's expressions are shown a code point of the same class and length. Go 1.26 has Unicode 15.0.
type newer []struct{ first, last, instead rune }

// newerInLlamaCpp are the ideographs of extension I (Unicode 15.1). TestAllCodePoints fails when this list must change.
var newerInLlamaCpp = newer{{0x2ebf0, 0x2ee5d, 0x20000}}

// newerInJSON are those of Unicode 16, which Hugging Face's tokenizers have. TestTokenizerJSONCodePoints fails when this list
// must change.
var newerInJSON = newer{
	{0x1c89, 0x1c89, 0xa640}, {0xa7cb, 0xa7cc, 0xa640}, {0xa7da, 0xa7da, 0xa640}, {0xa7dc, 0xa7dc, 0xa640},
	{0x10d50, 0x10d65, 0x10400}, {0x1c8a, 0x1c8a, 0xa641}, {0xa7cd, 0xa7cd, 0xa641}, {0xa7db, 0xa7db, 0xa641},
	{0x10d70, 0x10d85, 0x10428}, {0x10d4e, 0x10d4e, 0x16b40}, {0x10d6f, 0x10d6f, 0x16b40}, {0x16d40, 0x16d42, 0x16b40},
	{0x16d6b, 0x16d6c, 0x16b40}, {0x105c0, 0x105f3, 0x20000}, {0x10d4a, 0x10d4d, 0x20000}, {0x10d4f, 0x10d4f, 0x20000},
	{0x10ec2, 0x10ec4, 0x20000}, {0x11380, 0x11389, 0x20000}, {0x1138b, 0x1138b, 0x20000}, {0x1138e, 0x1138e, 0x20000},
	{0x11390, 0x113b5, 0x20000}, {0x113b7, 0x113b7, 0x20000}, {0x113d1, 0x113d1, 0x20000}, {0x113d3, 0x113d3, 0x20000},
	{0x11bc0, 0x11be0, 0x20000}, {0x13460, 0x143fa, 0x20000}, {0x16100, 0x1611d, 0x20000}, {0x16d43, 0x16d6a, 0x20000},
	{0x18cff, 0x18cff, 0x20000}, {0x1e5d0, 0x1e5ed, 0x20000}, {0x1e5f0, 0x1e5f0, 0x20000}, {0x2ebf0, 0x2ee5d, 0x20000},
	{0x897, 0x897, 0x816}, {0x10d69, 0x10d6d, 0x1d167}, {0x10efc, 0x10efc, 0x1d167}, {0x113b8, 0x113c0, 0x1d167},
	{0x113c2, 0x113c2, 0x1d167}, {0x113c5, 0x113c5, 0x1d167}, {0x113c7, 0x113ca, 0x1d167}, {0x113cc, 0x113d0, 0x1d167},
	{0x113d2, 0x113d2, 0x1d167}, {0x113e1, 0x113e2, 0x1d167}, {0x11f5a, 0x11f5a, 0x1d167}, {0x1611e, 0x1612f, 0x1d167},
	{0x1e5ee, 0x1e5ef, 0x1d167}, {0x10d40, 0x10d49, 0x1d7ce}, {0x116d0, 0x116e3, 0x1d7ce}, {0x11bf0, 0x11bf9, 0x1d7ce},
	{0x16130, 0x16139, 0x1d7ce}, {0x16d70, 0x16d79, 0x1d7ce}, {0x1ccf0, 0x1ccf9, 0x1d7ce}, {0x1e5f1, 0x1e5fa, 0x1d7ce},
}

// showable returns a character of r's class and length that Go's expressions know.
func (n newer) showable(r rune) rune {
	if r >= 0xd800 && r <= 0xdfff { // a surrogate, which is no letter
		return utf8.RuneError
	}
	if r < 0x800 {
		return r
	}
	for _, x := range n {
		if r >= x.first && r <= x.last {
			return x.instead
		}
	}
	return r
}
