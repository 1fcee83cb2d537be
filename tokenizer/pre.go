package tokenizer

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// preTokenizer is a way to cut text into words, and what else goes with its names in GGUF files.
type preTokenizer struct {
	names []string // tokenizer.ggml.pre
	// stages are expressions. The first cuts the text, each other one cuts the pieces of the one before; a piece is what an
	// expression matches, or what stands between two matches. The last pieces are the words.
	stages []string
	whole  bool // a word that is a token as it stands is that token, whatever the merges say
	addBOS bool // prompts begin with BOS where the file does not say
	json   bool // of tokenizer.json files, by a name of ours
}

// The expressions of models' tokenizer.json, but for their ends, `\s+(?!\S)|\s+`, for which [endOfSpace] stands, and for
// (?i:…), which is spelled out, because here as in llama.cpp it holds for ASCII alone.
const (
	endOfSpace   = `(\s+)`
	contractions = `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`
	gpt2Words    = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|` + endOfSpace
	llama3Words  = `(?:` + contractions + `)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|` + endOfSpace
	qwen2Words   = `(?:` + contractions + `)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|` + endOfSpace
	// Letters but a to z, and then letters but A to Z: a word begins with capitals, and then is small.
	upper, lower = `[^\P{L}a-z]`, `[^\P{L}A-Z]`
	tekkenWords  = `[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower + `*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|` + endOfSpace
	gpt4oWords   = `[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+(?:` + contractions + `)?|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower + `*(?:` + contractions + `)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|` + endOfSpace
)

// preTokenizers is the table of them, with the names that llama.cpp knows.
var preTokenizers = []preTokenizer{
	{names: []string{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}, stages: []string{`\p{N}`, gpt2Words}},
	{names: []string{"gpt-2", "phi-2", "mpt", "olmo", "exaone4", "mellum", "granite-docling"}, stages: []string{gpt2Words}},
	{names: []string{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"}, stages: []string{llama3Words}, whole: true, addBOS: true},
	{names: []string{"dbrx", "smaug-bpe"}, stages: []string{llama3Words}},
	{names: []string{"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan"}, stages: []string{qwen2Words}},
	{names: []string{"tekken"}, stages: []string{tekkenWords}, whole: true, addBOS: true},
	{names: []string{"gpt-4o", "llama4", "kanana2"}, stages: []string{gpt4oWords}},

	// These are what the expressions of tokenizer.json files say, where llama.cpp deviates from them.
	{names: []string{"json-llama3"}, stages: []string{strings.Replace(llama3Words, contractions, folded, 1)}, json: true},
	{names: []string{"json-qwen2"}, stages: []string{strings.Replace(qwen2Words, contractions, folded, 1)}, json: true},
	{names: []string{"json-o200k"}, stages: []string{small + `(?:` + folded + `)?|` + capitals + `(?:` + folded + `)?|\p{N}{1,3}` + signs}, json: true},
	{names: []string{"json-tekken"}, stages: []string{small + `|` + capitals + `|\p{N}` + signs}, json: true},
}

// Expressions of tokenizer.json files. In Unicode ſ is an s of another case.
const (
	folded   = `'[sSſ]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`
	small    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	capitals = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	signs    = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|` + endOfSpace
)

// PreTokenizers returns the names of the pre-tokenizers that GGUF files may name, in alphabetical order.
func PreTokenizers() []string {
	var names []string
	for _, p := range preTokenizers {
		if !p.json {
			names = append(names, p.names...)
		}
	}
	slices.Sort(names)
	return names
}

// AddsBOS reports whether prompts of a model with this pre-tokenizer begin with the BOS token if its file does not say.
func AddsBOS(pre string) bool {
	p := preTokenizerOf(pre)
	return p != nil && p.addBOS
}

func preTokenizerOf(name string) *preTokenizer {
	i := slices.IndexFunc(preTokenizers, func(p preTokenizer) bool { return slices.Contains(p.names, name) })
	if i < 0 {
		return nil
	}
	return &preTokenizers[i]
}

// whiteSpace are the code points of Unicode's White_Space, which \s means here; in Go's expressions it means fewer.
const whiteSpace = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`

// compile returns the stages as programs of Go's regular expressions, whose time is linear in what they look at.
func (p *preTokenizer) compile() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, s := range p.stages {
		s = strings.ReplaceAll(s, `[^\s`, `[^`+whiteSpace)
		out = append(out, regexp.MustCompile(strings.ReplaceAll(s, `\s`, `[`+whiteSpace+`]`)))
	}
	return out
}

// split cuts a text into words, and calls word with each, in order. shown has the same length and boundaries of
// characters, and is what expressions see ([spelled]).
func split(stages []*regexp.Regexp, text, shown []byte, word func([]byte)) {
	if len(stages) == 0 {
		if len(text) > 0 {
			word(text)
		}
		return
	}
	done := 0
	part := func(end int) {
		if end > done {
			split(stages[1:], text[done:end], shown[done:end], word)
			done = end
		}
	}
	for done < len(text) {
		m := stages[0].FindSubmatchIndex(shown[done:])
		if m == nil {
			break
		}
		begin, end := done+m[0], done+m[1]
		if len(m) > 2 && m[2] >= 0 && end < len(text) {
			// \s+(?!\S): of several, the last belongs to what follows.
			if _, n := utf8.DecodeLastRune(shown[begin:end]); begin < end-n {
				end -= n
			}
		}
		part(begin)
		part(end)
	}
	part(len(text))
}

// spelled returns the code points that [decodeText] reads of a text, as UTF-8, in two forms. The first is what is encoded.
// The second is what Go's regular expressions are shown: where these do not know a character, or class it otherwise than
// llama.cpp does, another one of the right class and the same length stands in its place.
func spelled(text string, newer newer) (spelling, shown []byte) {
	spelling = make([]byte, 0, len(text))
	same := true
	runes := decodeText(text)
	for _, r := range runes {
		spelling = appendCodePoint(spelling, r)
		same = same && newer.showable(r) == r
	}
	if same {
		return spelling, spelling
	}
	shown = make([]byte, 0, len(spelling))
	for _, r := range runes {
		shown = utf8.AppendRune(shown, newer.showable(r))
	}
	return spelling, shown
}
