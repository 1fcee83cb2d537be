package irtest

import (
	"fmt"
	"unicode"

	"pgregory.net/rapid"
)

// namer draws names that are unique among those it drew before.
type namer map[string]bool

var names = rapid.OneOf(
	rapid.SampledFrom([]string{
		"w", "x", "kv.0", "q-proj", "_", "Z9", "pos", "n", "out", // bare
		"end", "graph", "label", "reads", "true", "inf", "hex", // words of the text form
		" ", "two words", "0", "9lives", "-x", ".x", `qu"ote`, `back\slash`, "%", "@k", "$p", "#1", "//", "x]", "[0:4]", "a,b", "`", "naïve", "重み", "🧠", "\u00a1", "\ufffd",
	}),
	rapid.StringMatching(`[a-z_][a-z0-9_.-]{0,8}`),
	rapid.StringOfN(rapid.Rune().Filter(unicode.IsPrint), 1, 12, 255),
)

func (n namer) draw(t *rapid.T, what string) string {
	s := names.Draw(t, what)
	for i, base := 2, s; n[s]; i++ {
		s = fmt.Sprintf("%s_%d", base, i)
	}
	n[s] = true
	return s
}

var labels = rapid.OneOf(
	rapid.Just(""),
	rapid.SampledFrom([]string{
		"layer 0", "attn_norm", `"`, `\`, "\"quoted\"", "new\nline", "tab\there", "\r\n", "\x00", "\x7f", "// no comment", "}", "end",
		"\u2028", "\u202eright to left", "\ufeffbom", "é", "e\u0301", "層", "👩‍🚀", "\U0010ffff", "\ufffd",
	}),
	rapid.StringN(0, 20, 4096),
)
