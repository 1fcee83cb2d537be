package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// form is one of Unicode's normalization forms (UAX 15). Text is brought to it as Hugging Face's tokenizers do it. What golang.org/x/text
// makes of whole texts differs: it puts a joiner behind 30 marks on one letter, takes characters above U+FFFF for others when it composes,
// and composes letters with marks behind a vowel sign that has no class, if further marks follow. Its data of single characters are right,
// and used here.
type form uint8

// Each form is also the bit of traits.flags that says that a character by itself changes in it.
const (
	nfc form = 1 << iota
	nfd
	nfkc
	nfkd
	// second is beside them in traits.flags: the character may become one with a character before it.
	second
)

var forms = map[string]form{"nfc": nfc, "nfd": nfd, "nfkc": nfkc, "nfkd": nfkd}

func (f form) composes() bool { return f&(nfc|nfkc) != 0 }

// changes returns the flags of characters that may not be as they are in a text of the form.
func (f form) changes() form {
	if f.composes() {
		return f | second
	}
	return f
}

// decomposition returns the form in which characters that change in f are taken apart first.
func (f form) decomposition() (form, norm.Form) {
	if f&(nfkc|nfkd) != 0 {
		return nfkd, norm.NFKD
	}
	return nfd, norm.NFD
}

// traits are what normalization knows of a character. Zero: it neither changes nor moves.
type traits struct {
	class uint8 // canonical combining class
	flags form
}

// Hangul syllables are made of two or three jamo by arithmetic: leading ones by vowels, these by trailing ones.
const (
	hangul    = 0xac00
	leading   = 0x1100
	vowels    = 0x1161
	trailing  = 0x11a7 // stands for no trailing one
	leadings  = 19
	vowelsOf  = 21
	trailings = 28
	syllables = leadings * vowelsOf * trailings
)

const (
	pageSize  = 128
	withPages = 0x30000 // no character from here on has a decomposition or a class
)

// characterData is what normalization knows of all characters.
type characterData struct {
	pages [withPages / pageSize]*[pageSize]traits
	pairs map[[2]rune]rune // what two characters become when they are composed
}

func (d *characterData) of(r rune) traits {
	if r >= withPages {
		return traits{}
	}
	return d.pages[r/pageSize][r%pageSize]
}

// afterUnicode9 has, as first and last of ranges, the characters with a decomposition or a class that are newer than Unicode 9, and are in
// golang.org/x/text's version 15. Hugging Face's tokenizers 0.23.3 have Unicode 9 for normalization, and so to them these are characters
// like any other. If the test of all code points fails with a newer golang.org/x/text, this list must grow.
var afterUnicode9 = [][2]rune{
	{0x07fd, 0x07fd}, {0x0898, 0x089f}, {0x08ca, 0x08d3}, {0x09fe, 0x09fe}, {0x0c3c, 0x0c3c}, {0x0d3b, 0x0d3c}, {0x0eba, 0x0eba},
	{0x1715, 0x1715}, {0x1abf, 0x1ace}, {0x1df6, 0x1dfa}, {0x32ff, 0x32ff}, {0xa7f2, 0xa7f4}, {0xa82c, 0xa82c}, {0xab69, 0xab69},
	{0x10781, 0x107ba}, {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85},
	{0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11938, 0x11938}, {0x1193d, 0x1193e},
	{0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42},
	{0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1}, {0x1e030, 0x1e06d}, {0x1e08f, 0x1e08f},
	{0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9},
}

func isAfterUnicode9(r rune) bool {
	return slices.ContainsFunc(afterUnicode9, func(x [2]rune) bool { return x[0] <= r && r <= x[1] })
}

// theCharacterData is read when the first text needs it.
var theCharacterData = sync.OnceValue(newCharacterData)

func newCharacterData() *characterData {
	d := &characterData{pairs: map[[2]rune]rune{}}
	none := &[pageSize]traits{}
	for i := range d.pages {
		d.pages[i] = none
	}
	at := func(r rune) *traits {
		page := &d.pages[r/pageSize]
		if *page == none {
			*page = &[pageSize]traits{}
		}
		return &(*page)[r%pageSize]
	}
	composites := map[string]rune{} // by decomposition
	var b [utf8.UTFMax]byte
	for r := rune(utf8.RuneSelf); r < withPages; r++ {
		s := b[:utf8.EncodeRune(b[:], r)]
		all := norm.NFKD.Properties(s)
		if all.CCC() == 0 && all.Decomposition() == nil || isAfterUnicode9(r) {
			continue
		}
		t := at(r)
		t.class = all.CCC()
		if all.Decomposition() == nil {
			continue
		}
		t.flags |= nfkd
		canonical := norm.NFD.Properties(s).Decomposition()
		if string(canonical) != string(all.Decomposition()) {
			t.flags |= nfkc
		}
		if canonical == nil {
			continue
		}
		t.flags |= nfd
		if norm.NFC.IsNormal(s) {
			composites[string(canonical)] = r
		} else {
			t.flags |= nfc | nfkc // Unicode excludes it from composition
		}
	}
	// A decomposition is whole, and the last of its characters is what was composed last.
	for text, r := range composites {
		last, size := utf8.DecodeLastRuneInString(text)
		rest := text[:len(text)-size]
		first, ok := composites[rest]
		if !ok {
			first, _ = utf8.DecodeRuneInString(rest)
		}
		d.pairs[[2]rune{first, last}] = r
		at(last).flags |= second
	}
	for r := rune(hangul); r < hangul+syllables; r++ {
		at(r).flags = nfd | nfkd
	}
	for r := rune(vowels); r < vowels+vowelsOf; r++ {
		at(r).flags |= second
	}
	for r := rune(trailing + 1); r < trailing+trailings; r++ {
		at(r).flags |= second
	}
	return d
}

// compose returns what two characters become together.
func (d *characterData) compose(a, b rune) (rune, bool) {
	if d.of(b).flags&second == 0 {
		return 0, false
	}
	if l, v := a-leading, b-vowels; l >= 0 && l < leadings && v >= 0 && v < vowelsOf {
		return hangul + (l*vowelsOf+v)*trailings, true
	}
	if s, t := a-hangul, b-trailing; s >= 0 && s < syllables && s%trailings == 0 && t > 0 && t < trailings {
		return a + t, true
	}
	r, ok := d.pairs[[2]rune{a, b}]
	return r, ok
}

// String returns s in the form: s itself where it is in it. Bytes that are not UTF-8 stay, and nothing is composed across them. It takes
// time in proportion to the length of s.
func (f form) String(s string) string {
	plain := byte(utf8.RuneSelf) // bytes below it are of characters that no form changes
	if f == nfc {
		plain = 0xcc // the first byte of U+0300
	}
	i := 0
	for i < len(s) && s[i] < plain {
		i++
	}
	if i == len(s) {
		return s
	}
	n := normalizer{form: f, plain: plain, characterData: theCharacterData()}
	n.takesApart, n.data = f.decomposition()
	var out strings.Builder
	done := 0 // how much of s is in out
	for begin, end := n.normal(s, 0); end < len(s); begin, end = n.normal(s, end) {
		end = n.boundary(s, end)
		if piece := n.normalize(s[begin:end]); string(piece) != s[begin:end] {
			out.WriteString(s[done:begin])
			out.Write(piece)
			done = end
		}
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

type normalizer struct {
	form
	plain      byte
	takesApart form      // flag of characters that are taken apart
	data       norm.Form // that has their decompositions
	*characterData
	chars []classed
	moved []classed
	bytes []byte
}

// classed is a character, and above its 24 bits its class.
type classed uint32

func (c classed) rune() rune { return rune(c & 0xffffff) }
func (c classed) class() int { return int(c >> 24) }

// normal returns where, from i on, the first character stands that may not be as it is in the form; and where the last character
// before it begins that none behind it has to do with those before.
func (n *normalizer) normal(s string, i int) (begin, end int) {
	begin = i
	changes, class := n.changes(), uint8(0)
	for i < len(s) {
		if s[i] < n.plain {
			for i++; i < len(s) && s[i] < n.plain; i++ {
			}
			r, size := utf8.DecodeLastRuneInString(s[:i])
			if begin = i - size; r == utf8.RuneError {
				begin = i // nothing joins a byte that is not UTF-8
			}
			class = 0
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		t := n.of(r)
		if t.flags&changes != 0 || t.class != 0 && t.class < class {
			return begin, i
		}
		if class = t.class; class == 0 {
			if begin = i; size == 1 {
				begin = i + 1
			}
		}
		i += size
	}
	return i, i
}

// boundary returns where, from i on, the first character begins that has nothing to do with those before it.
func (n *normalizer) boundary(s string, i int) int {
	changes := n.changes()
	for at, r := range s[i:] {
		if t := n.of(r); t.class == 0 && t.flags&changes == 0 {
			return i + at
		}
	}
	return len(s)
}

// normalize brings a text that is UTF-8 to the form. The result is valid until the next call.
func (n *normalizer) normalize(s string) []byte {
	n.chars = n.chars[:0]
	for i, r := range s {
		switch t := n.of(r); {
		case t.flags&n.takesApart == 0:
			n.chars = append(n.chars, classed(t.class)<<24|classed(r))
		case r >= hangul && r < hangul+syllables:
			r -= hangul
			n.chars = append(n.chars, classed(leading+r/trailings/vowelsOf), classed(vowels+r/trailings%vowelsOf))
			if t := r % trailings; t > 0 {
				n.chars = append(n.chars, classed(trailing+t))
			}
		default:
			for _, r := range string(n.data.PropertiesString(s[i:]).Decomposition()) {
				n.chars = append(n.chars, classed(n.of(r).class)<<24|classed(r))
			}
		}
	}
	n.order()
	if n.composes() {
		n.recompose()
	}
	n.bytes = n.bytes[:0]
	for _, c := range n.chars {
		n.bytes = utf8.AppendRune(n.bytes, c.rune())
	}
	return n.bytes
}

// order sorts each run of characters that have a class by it. Those of one class stay in order.
func (n *normalizer) order() {
	for i := 0; i < len(n.chars); i++ {
		if n.chars[i].class() == 0 {
			continue
		}
		begin := i
		for i < len(n.chars) && n.chars[i].class() != 0 {
			i++
		}
		n.sort(n.chars[begin:i])
	}
}

// sort takes time in proportion to the number of marks: a text may be nothing else.
func (n *normalizer) sort(marks []classed) {
	const few = 16
	if len(marks) <= few {
		for i := 1; i < len(marks); i++ {
			for j := i; j > 0 && marks[j-1].class() > marks[j].class(); j-- {
				marks[j-1], marks[j] = marks[j], marks[j-1]
			}
		}
		return
	}
	var place [257]int // of each class the place of its next mark
	for _, c := range marks {
		place[c.class()+1]++
	}
	for class := range 256 {
		place[class+1] += place[class]
	}
	n.moved = append(n.moved[:0], marks...)
	for _, c := range n.moved {
		marks[place[c.class()]] = c
		place[c.class()]++
	}
}

// recompose makes one of a character of class 0 and each one behind it with which it has a composite, unless there is one of the same or
// a higher class between, or one of class 0.
func (n *normalizer) recompose() {
	out, starter := n.chars[:0], -1
	for _, c := range n.chars {
		last := len(out) - 1
		if starter >= 0 && (starter == last || out[last].class() < c.class()) {
			if r, ok := n.compose(out[starter].rune(), c.rune()); ok {
				out[starter] = classed(r)
				continue
			}
		}
		out = append(out, c)
		if c.class() == 0 {
			starter = len(out) - 1
		}
	}
	n.chars = out
}
