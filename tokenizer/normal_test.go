package tokenizer

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// normalOracle is testdata/tokenizer/normal.json, which testdata/gen/normal.py writes with the package tokenizers.
type normalOracle struct {
	Block      rune
	Codepoints []string // of each block, the CRC-32 of all forms of its code points' probes
	Marks      string   // one of each class
	Moves      string   // all that have a class
	Classes    string   // the CRC-32 of each of moves before and behind marks
	Firsts     string   // what composites begin with
	Seconds    string   // and end with
	Pairs      []string // of each of firsts, the CRC-32 of it before each of seconds
	Hangul     string   // the CRC-32 of jamo and syllables, and their neighbours, together
	Texts      []string
	Each       string // of each text and form four digits of the CRC-32
}

func readNormalOracle(t testing.TB) (o normalOracle) {
	path := os.Getenv("NORMAL_FUZZ") // other texts than those that are stored
	if path == "" {
		path = filepath.Join("..", "testdata", "tokenizer", "normal.json")
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &o))
	return o
}

var inOrder = []form{nfc, nfd, nfkc, nfkd}

// formsSum collects the CRC-32 of all forms of texts.
type formsSum uint32

func (s *formsSum) add(texts ...string) {
	for _, text := range texts {
		for _, f := range inOrder {
			*s = formsSum(crc32.Update(uint32(*s), crc32.IEEETable, []byte(f.String(text)+"\n")))
		}
	}
}

func (s formsSum) String() string { return fmt.Sprintf("%08x", uint32(s)) }

// TestNormalCodePoints: every code point, alone and beside marks of the lowest and the highest class, becomes in every form what it
// becomes in Hugging Face's tokenizers. If this fails with a newer golang.org/x/text, afterUnicode9 must grow.
func TestNormalCodePoints(t *testing.T) {
	sample.Long(t)
	o := readNormalOracle(t)
	require.Len(t, o.Codepoints, 0x110000/int(o.Block))
	for i, want := range o.Codepoints {
		begin := rune(i) * o.Block
		if begin >= withPages && !sample.Takes(t.Name(), i, 16) {
			continue
		}
		var sum formsSum
		for r := begin; r < begin+o.Block; r++ {
			if r < 0xd800 || r >= 0xe000 {
				c := string(r)
				sum.add(c, "e\u0345"+c+"\u0334e"+c+"\u0301\u0323"+c)
			}
		}
		assert.Equal(t, want, sum.String(), "code points from %U on", begin)
	}
}

// TestNormalPairs: marks are of the class, and pairs have the composite, that they have in Hugging Face's tokenizers.
func TestNormalPairs(t *testing.T) {
	o := readNormalOracle(t)
	var classes, hangul formsSum
	for _, r := range o.Moves {
		classes.add(string(r)+o.Marks, o.Marks+string(r))
	}
	assert.Equal(t, o.Classes, classes.String(), "classes")
	for i, first := range []rune(o.Firsts) {
		var sum formsSum
		for _, second := range o.Seconds {
			sum.add(string([]rune{first, second}))
		}
		assert.Equal(t, o.Pairs[i], sum.String(), "pairs of %U", first)
	}
	for l := rune(0x10ff); l < 0x1114; l++ {
		for v := rune(0x1160); v < 0x1177; v++ {
			hangul.add(string([]rune{l, v}))
			for t := rune(0x11a6); t < 0x11c4; t++ {
				hangul.add(string([]rune{l, v, t}))
			}
		}
	}
	for s := rune(0xac00); s < 0xd7b0; s++ {
		hangul.add(string([]rune{s, 0x11a7, s, 0x11a8, s, 0x11c2, 0x11a8}))
	}
	assert.Equal(t, o.Hangul, hangul.String(), "Hangul")
}

// TestNormalTexts: random texts of characters that change, move or join, some with up to 70 marks in a row, become what they become
// in Hugging Face's tokenizers.
func TestNormalTexts(t *testing.T) {
	o := readNormalOracle(t)
	require.GreaterOrEqual(t, len(o.Texts), 1000)
	require.Len(t, o.Each, 16*len(o.Texts))
	wrong := 0
	for i, text := range o.Texts {
		for j, f := range inOrder {
			got := f.String(text)
			at := 16*i + 4*j
			if !assert.Equal(t, o.Each[at:at+4], fmt.Sprintf("%04x", crc32.ChecksumIEEE([]byte(got))&0xffff), "form %d of %+q: %+q", j, text, got) {
				if wrong++; wrong == 8 {
					t.FailNow()
				}
			}
		}
		normalLaws(t, text)
	}
}

// TestNormalExamples has what golang.org/x/text does otherwise, and bytes that are not UTF-8.
func TestNormalExamples(t *testing.T) {
	for _, c := range []struct {
		form     form
		in, want string
	}{
		{nfc, "\U00011099\U000110ba", "\U0001109a"},
		{nfc, "\U0001d157\U0001d165", "\U0001d157\U0001d165"},
		{nfc, "\U00010041\u0301", "\U00010041\u0301"},
		{nfc, "a\u09d7\u0f80\u0304", "a\u09d7\u0f80\u0304"},
		{nfc, "e" + strings.Repeat("\u0316", 40) + "\u0301", "é" + strings.Repeat("\u0316", 40)},
		{nfd, "e" + strings.Repeat("\u0301", 40) + "\u0316", "e\u0316" + strings.Repeat("\u0301", 40)},
		{nfc, "\xc3\u0301e\u0301\xf0\u0340", "\xc3\u0301é\xf0\u0300"},
		{nfkc, "\xef\xbd\xef\xbd\x81\xed\xa0\x80", "\xef\xbda\xed\xa0\x80"},
		{nfkc, "㋿", "㋿"}, // Unicode 12 takes it apart
	} {
		assert.Equal(t, c.want, c.form.String(c.in), "form %d of %+q", c.form, c.in)
		normalLaws(t, c.in)
	}
}

// normalLaws checks what holds of any text.
func normalLaws(t testing.TB, s string) {
	same := func(a, b, law string) {
		if a != b {
			t.Errorf("%s of %+q: %+q and %+q", law, s, a, b)
		}
	}
	for _, f := range inOrder {
		out := f.String(s)
		again := f.String(out)
		same(out, again, "twice")
		if unsafe.StringData(out) != unsafe.StringData(again) {
			t.Errorf("%+q is in its form, and was copied", out)
		}
		same(f.String("e"+s+"\xff\u0301"+s), f.String("e"+s)+"\xff"+f.String("\u0301"+s), "across a byte that is not UTF-8")
	}
	same(nfc.String(nfd.String(s)), nfc.String(s), "NFC behind NFD")
	same(nfd.String(nfc.String(s)), nfd.String(s), "NFD behind NFC")
	same(nfkc.String(nfkd.String(s)), nfkc.String(s), "NFKC behind NFKD")
	same(nfkd.String(nfkc.String(s)), nfkd.String(s), "NFKD behind NFKC")
	same(nfkc.String(nfd.String(s)), nfkc.String(s), "NFKC behind NFD")

	// The other implementation shall agree where it has neither its limit for marks in a row, nor newer data, nor characters that it
	// mistakes, nor composes across vowel signs of class 0.
	if !utf8.ValidString(s) {
		return
	}
	row := 0
	for _, r := range nfkd.String(s) {
		t := theCharacterData().of(r)
		if row++; t == (traits{}) {
			row = 0
		}
		if row >= 30 || r > 0xffff || t == (traits{0, second}) && (r < vowels || r >= trailing+trailings) {
			return
		}
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r > 0xffff || isAfterUnicode9(r) }) {
		return
	}
	for i, f := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
		same(f.String(s), inOrder[i].String(s), "golang.org/x/text")
	}
}

func FuzzNormal(f *testing.F) {
	for _, s := range readNormalOracle(f).Texts[:100] {
		f.Add(s)
	}
	f.Add("e\xcc\u0301\xf0\x91\x82\xf0\u0340")
	f.Fuzz(func(t *testing.T, s string) { normalLaws(t, s) })
}

// TestNormalLength: ten times as long a text of nothing but marks, or of what becomes longer, takes some ten times as long, not a hundred.
func TestNormalLength(t *testing.T) {
	sample.Long(t)
	// took returns the least time of up to ten runs, of which it makes no more once one is below enough: other programs run on this machine.
	took := func(text string, enough time.Duration) time.Duration {
		least := time.Duration(math.MaxInt64)
		for i := 0; i < 10 && (i < 2 || least >= enough); i++ {
			start := time.Now()
			for _, f := range []form{nfc, nfkd} {
				f.String(text)
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	for _, unit := range []string{"\u0301\u0323", "\u0345\u0334\u0301", "\u0301", "\u0344", "e\u0323\u0301", "\u1100\u1161\u11a8", "\u11a8", "각", "ﷺ", "\U0001d15e", "é\xff\u0301"} {
		before := took(strings.Repeat(unit, 10_000/len(unit)), math.MaxInt64)
		for _, n := range []int{100_000, 1_000_000} {
			limit := 40*before + 20*time.Millisecond // ten times as long a text may take forty times as long, where a quadratic form takes a hundred
			now := took(strings.Repeat(unit, n/len(unit)), limit)
			t.Logf("%d bytes of %+q: %v", n, unit, now)
			require.Less(t, now, limit, "%d bytes of %+q", n, unit)
			before = now
		}
	}
}

// BenchmarkNormal compares with golang.org/x/text what texts as people write them take.
func BenchmarkNormal(b *testing.B) {
	for name, unit := range map[string]string{
		"english":    "The quick brown fox jumps over the lazy dog. It's 12 o'clock;\n",
		"mixed":      "The quick brown fox; ça va? 字 and 🙂, größer als это, 한국어.\n",
		"chinese":    "敏捷的棕色狐狸跳过懒狗。\n",
		"decomposed": "c\u0327a va? gro\u0308\u00dfer, e\u0323\u0302 \u1112\u1161\u11ab\n",
	} {
		text := strings.Repeat(unit, 1_000_000/len(unit))
		for i, f := range []interface{ String(string) string }{nfc, norm.NFC, nfkc, norm.NFKC} {
			b.Run(name+"/"+[]string{"nfc", "nfc-x-text", "nfkc", "nfkc-x-text"}[i], func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					f.String(text)
				}
			})
		}
	}
}

func BenchmarkNormalData(b *testing.B) {
	for b.Loop() {
		newCharacterData()
	}
}
