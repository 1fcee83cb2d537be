package textgen

import (
	"errors"
	"strings"

	"github.com/mlxc/mlxc/tokenizer"
)

// ErrStop is what Options.Emit returns to end a generation that nothing is wrong with. Result.Stopped is "stop" then.
var ErrStop = errors.New("the generation is to end here")

// Text makes the text of an answer from its tokens, as they come. It gives out whole characters only, and nothing that
// may be the beginning of a stop string before it is known whether it is one. A text ends before the first stop string
// that is complete; of several that end at the same place, before the longest.
type Text struct {
	decoder *tokenizer.Decoder
	stops   []string
	held    string // may be the beginning of a stop string
	stopped bool
}

// NewText begins a text. Stop strings must not be empty.
func NewText(t *tokenizer.Tokenizer, stops []string) *Text {
	return &Text{decoder: t.NewDecoder(false), stops: stops}
}

// Next takes a token, and returns the text that is certain now. At a stop string it returns [ErrStop] with the text
// before it; there is nothing after that.
func (t *Text) Next(id int32) (string, error) { return t.add(t.decoder.Next(id)) }

// Flush ends the text, and returns what was held back. The bytes of a character that is not complete are one U+FFFD each.
func (t *Text) Flush() string {
	s, err := t.add(t.decoder.Flush())
	if err == nil {
		s += t.held
	}
	t.held = ""
	return s
}

func (t *Text) add(s string) (string, error) {
	if t.stopped {
		return "", ErrStop
	}
	s = t.held + string([]rune(s)) // bytes that are no characters become U+FFFD
	begin, end := -1, len(s)+1
	for _, stop := range t.stops {
		if i := strings.Index(s, stop); i >= 0 && (i+len(stop) < end || i+len(stop) == end && i < begin) {
			begin, end = i, i+len(stop)
		}
	}
	if begin >= 0 {
		t.held, t.stopped = "", true
		return s[:begin], ErrStop
	}
	n := len(s)
	for _, stop := range t.stops {
		for k := min(len(stop)-1, len(s)); k > len(s)-n; k-- {
			if strings.HasSuffix(s, stop[:k]) {
				n = len(s) - k
				break
			}
		}
	}
	t.held = s[n:]
	return s[:n], nil
}
