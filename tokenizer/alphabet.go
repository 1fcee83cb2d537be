package tokenizer

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// alphabet writes every byte as one printable character, so that a vocabulary
// of text can hold any bytes. Printable bytes of Latin-1 stand for themselves;
// the others are numbered upwards from U+0100: the space is Ġ (U+0120), the
// newline Ċ. (GPT-2, bytes_to_unicode.)
var alphabet = func() (a [256]rune) {
	next := rune(0x100)
	for b := range 256 {
		switch {
		case b >= 0x21 && b <= 0x7e, b >= 0xa1 && b <= 0xac, b >= 0xae:
			a[b] = rune(b)
		default:
			a[b] = next
			next++
		}
	}
	return a
}()

// unalphabet is the inverse of alphabet.
var unalphabet = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for b, r := range alphabet {
		m[r] = byte(b)
	}
	return m
}()

// fromAlphabet returns the bytes that a token's text stands for. A character that is
// not in the alphabet becomes a visible error text, worded like llama.cpp's.
func fromAlphabet(text string) string {
	var b strings.Builder
	for _, r := range text {
		if c, ok := unalphabet[r]; ok {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "[UNK_BYTE_0x%x%s]", string(r), text)
		}
	}
	return b.String()
}

// inAlphabet reports whether a token's text has characters of the alphabet alone.
func inAlphabet(text string) bool {
	for _, r := range text {
		if _, ok := unalphabet[r]; !ok {
			return false
		}
	}
	return true
}

// byteToken returns the byte of a token such as <0x41>.
func byteToken(text string) (byte, bool) {
	if len(text) != 6 || !strings.HasPrefix(text, "<0x") || text[5] != '>' {
		return 0, false
	}
	b, err := hex.DecodeString(text[3:5])
	if err != nil {
		return 0, false
	}
	return b[0], true
}
