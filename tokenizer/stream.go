package tokenizer

import "unicode/utf8"

// Decoder decodes IDs as they come, and never returns a part of a character. The texts
// that it returns, joined, are what Decode returns for all IDs at once, but that a space at their beginning stays: they
// continue a text.
type Decoder struct {
	t       *Tokenizer
	special bool
	held    string // the beginning of a character, at most 3 bytes
}

// NewDecoder starts a stream; special is as for Decode.
func (t *Tokenizer) NewDecoder(special bool) *Decoder {
	return &Decoder{t: t, special: special}
}

// Next takes one ID, and returns the text that is complete now. Bytes that can never
// become a character are passed on as they are.
func (d *Decoder) Next(id int32) string {
	s := d.held + d.t.Piece(id, d.special)
	n := len(s) - incomplete(s)
	d.held = s[n:]
	return s[:n]
}

// Flush ends the stream: it returns the bytes still held, which are not a whole
// character, and leaves the Decoder ready for another stream.
func (d *Decoder) Flush() string {
	s := d.held
	d.held = ""
	return s
}

// incomplete returns how many bytes at the end of s are the beginning of a character
// that may still be completed.
func incomplete(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		tail := s[len(s)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRuneInString(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
