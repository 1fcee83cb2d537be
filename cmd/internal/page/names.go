package page

import (
	"strings"
	"unicode/utf8"

	"github.com/mlxc/mlxc/cmd/internal/cli"
)

// maxText bounds a text of a page in bytes. A name has at most 255, a label 4,096.
const maxText = 400

// texts are the texts of a page, each once. Everything else refers to them by number.
type texts struct {
	list []string
	at   map[string]int
}

// of returns the number of a text. Number 0 is the empty text.
func (t *texts) of(s string) int {
	if t.at == nil {
		t.at, t.list = map[string]int{"": 0}, []string{""}
	}
	if n, ok := t.at[s]; ok {
		return n
	}
	n := len(t.list)
	t.at[s] = n
	t.list = append(t.list, shown(s))
	return n
}

// shown returns a text as a page has it: cut, and without characters that cannot be seen or that
// change how others are seen.
func shown(s string) string {
	if len(s) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	return cli.Escape(strings.NewReplacer("\n", " ", "\t", " ").Replace(s))
}

// Shown returns a text of a graph as a page may have it.
func Shown(s string) string { return shown(s) }

// Families are the names of the kinds of work that a page has colours for, in their order.
func Families() (out []string) {
	for _, f := range families {
		out = append(out, f.name)
	}
	return out
}

// Family returns the index in [Families] of a command, by its operation and the name of its kernel.
func Family(op, kernel string) int { return family(op, kernel) }

// families are the kinds of work that a page has colours for. A command belongs to the first that
// one of whose words is in its operation or, if it names none, in the name of its kernel. So a
// fusion has the colour of what takes longest in it, usually.
var families = []struct {
	name  string
	words []string
}{
	{"product", []string{"matmul", "gemm", "gemv", "qmv", "qmm", "qvm", "conv", "mul_mm", "mul_mv", "linear", "dense"}},
	{"attention", []string{"sdpa", "attention", "attn", "flash"}},
	{"norm", []string{"norm", "rms"}},
	{"rotation", []string{"rope", "rotary"}},
	{"reduction", []string{"softmax", "argmax", "argmin", "argsort", "reduce", "sum", "mean", "max_parts", "logsumexp", "scan", "sort", "sample"}},
	{"data", []string{"copy", "fill", "carry", "kv_write", "write", "gather", "scatter", "take", "slice", "concat", "transpose", "get_rows", "set_rows", "embed", "arange", "pad"}},
	{"elementwise", []string{"elementwise", "add", "sub", "mul", "div", "silu", "gelu", "relu", "sigmoid", "tanh", "exp", "binary", "unary", "select", "where", "vv_", "sv_", "vs_", "v_"}},
	{"other", nil},
}

// family returns the index in families of a command.
func family(op, kernel string) int {
	for _, s := range []string{op, kernel} {
		if len(s) > maxText {
			s = s[:maxText]
		}
		s = strings.ToLower(s)
		for i, f := range families {
			for _, w := range f.words {
				if strings.Contains(s, w) {
					return i
				}
			}
		}
	}
	return len(families) - 1
}
