package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The serialized form is one JSON object, without white space:
//
//	{"version":1,"model":"gpt2","pre":"smollm","tokens":["…",…],
//	 "types":[[1,49135],[3,17]],"merges":["Ġ t",…],"special":{"bos":1},
//	 "add_bos":false,"add_eos":false,"chat_template":"…"}
//
// types are run lengths, as pairs of a type and a count. An empty list means that all
// tokens are Normal. SentencePiece vocabularies have three fields more, "scores" (a number for each token, or none),
// "space_prefix" and "strip_behind". "nfc" is there if it is true, "whole" if it is not as the pre-tokenizer has it. Vocabularies
// with rules have them in the object "rules", and those of unigrams a number for each of the model's tokens in "log_probs".

// maxBlob bounds the input of Unmarshal, in bytes; SmolLM2's is 1.2 MB.
const maxBlob = 64 << 20

const version = 1

// blob fixes the order of the fields in the serialized form.
type blob struct {
	Version  int            `json:"version"`
	Model    string         `json:"model"`
	Pre      string         `json:"pre"`
	Tokens   []string       `json:"tokens"`
	Types    [][2]int       `json:"types"`
	Merges   []string       `json:"merges"`
	Special  map[Role]int32 `json:"special"`
	AddBOS   bool           `json:"add_bos"`
	AddEOS   bool           `json:"add_eos"`
	Template string         `json:"chat_template"`
	NFC      bool           `json:"nfc,omitempty"`
	Whole    *bool          `json:"whole,omitempty"`
	LogProbs []float64      `json:"log_probs,omitempty"`
	Rules    *blobRules     `json:"rules,omitempty"`
	*scored
}

// blobRules are [Rules].
type blobRules struct {
	Size      int         `json:"size"`
	Normalize [][3]string `json:"normalize"`
	Space     string      `json:"space"`
	Marks     bool        `json:"marks"`
	Words     bool        `json:"words"`
	Bytes     bool        `json:"bytes"`
	Fuse      bool        `json:"fuse"`
	Strip     string      `json:"strip"`
	Before    []int32     `json:"before"`
	Behind    []int32     `json:"behind"`
	Late      []int32     `json:"late"`
}

func stored(r *Rules) *blobRules {
	if r == nil {
		return nil
	}
	out := &blobRules{r.Size, [][3]string{}, r.Space, r.Marks, r.Words, r.Bytes, r.Fuse, r.Strip, some(r.Before), some(r.Behind), some(r.Late)}
	for _, a := range r.Normalize {
		out.Normalize = append(out.Normalize, [3]string{a.Kind, a.From, a.To})
	}
	return out
}

// some makes an empty list of none.
func some(list []int32) []int32 {
	if list == nil {
		return []int32{}
	}
	return list
}

// scored are the fields of SentencePiece vocabularies.
type scored struct {
	Scores []float32 `json:"scores"`
	Prefix bool      `json:"space_prefix"`
	Strip  bool      `json:"strip_behind"`
}

// Marshal serializes a Spec that passes its Check. Equal Specs give equal bytes.
func Marshal(s *Spec) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if !utf8.ValidString(s.ChatTemplate) {
		return nil, errors.New("tokenizer: the chat template is not UTF-8")
	}
	types := [][2]int{}
	for _, t := range s.Types {
		if n := len(types); n > 0 && types[n-1][0] == int(t) {
			types[n-1][1]++
		} else {
			types = append(types, [2]int{int(t), 1})
		}
	}
	merges, special := s.Merges, s.Special
	if merges == nil {
		merges = []string{}
	}
	if special == nil {
		special = map[Role]int32{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // half of the special tokens are full of < and >
	var more *scored
	if s.Model == sentencePiece {
		more = &scored{s.Scores, s.SpacePrefix, s.StripBehind}
		if more.Scores == nil {
			more.Scores = []float32{}
		}
	}
	err := enc.Encode(blob{version, s.Model, s.Pre, s.Tokens, types, merges, special, s.AddBOS, s.AddEOS, s.ChatTemplate, s.NFC, s.Whole, s.LogProbs, stored(s.Rules), more})
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Unmarshal reads what Marshal wrote, and nothing else: unknown, repeated and missing
// fields, wrong types, and anything that Check refuses are errors, which say at which
// byte. Lists that exceed their bounds are not read to the end.
func Unmarshal(data []byte) (*Spec, error) {
	if len(data) > maxBlob {
		return nil, fmt.Errorf("tokenizer: %d bytes of JSON, at most %d are supported", len(data), maxBlob)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("tokenizer: the JSON is not UTF-8")
	}
	r := &reader{dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	s := r.spec()
	if r.err == nil {
		if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
			r.fail("there is more text after the JSON object")
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

// reader reads one JSON token after the other, so that no list is built before its
// length is known to be allowed. After the first error every method does nothing.
type reader struct {
	dec *json.Decoder
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("tokenizer: JSON at byte %d: %s", r.dec.InputOffset(), fmt.Sprintf(format, args...))
	}
}

func (r *reader) token() json.Token {
	if r.err != nil {
		return nil
	}
	t, err := r.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		r.err = fmt.Errorf("tokenizer: JSON at byte %d: %w", r.dec.InputOffset(), err)
		return nil
	}
	return t
}

func (r *reader) delim(want rune) {
	if t := r.token(); r.err == nil && t != json.Delim(want) {
		r.fail("want %q, have %.40q", want, fmt.Sprint(t))
	}
}

func (r *reader) str(limit int) string {
	t := r.token()
	s, ok := t.(string)
	if r.err == nil && !ok {
		r.fail("want a string, have %.40q", fmt.Sprint(t))
	}
	if len(s) > limit {
		r.fail("string of %d bytes, at most %d are supported", len(s), limit)
		return ""
	}
	return s
}

func (r *reader) boolean() bool {
	t := r.token()
	b, ok := t.(bool)
	if r.err == nil && !ok {
		r.fail("want a bool, have %.40q", fmt.Sprint(t))
	}
	return b
}

// integer reads a whole number from 0 to limit.
func (r *reader) integer(limit int64) int64 {
	t := r.token()
	n, ok := t.(json.Number)
	v, err := n.Int64()
	if r.err == nil && (!ok || err != nil || v < 0 || v > limit) {
		r.fail("want a whole number of 0 to %d, have %.40q", limit, fmt.Sprint(t))
		return 0
	}
	return v
}

// float reads a finite float64.
func (r *reader) float() float64 {
	t := r.token()
	n, ok := t.(json.Number)
	v, err := n.Float64()
	if r.err == nil && (!ok || err != nil) {
		r.fail("want a number, have %.40q", fmt.Sprint(t))
	}
	return v
}

// ids reads a list of tokens; nil if it is empty.
func (r *reader) ids() (out []int32) {
	r.list(maxTokens, func() { out = append(out, int32(r.integer(maxTokens))) })
	return out
}

// rules reads [Rules].
func (r *reader) rules() *Rules {
	out := &Rules{}
	fields := map[string]func(){
		"size": func() { out.Size = int(r.integer(maxTokens)) },
		"normalize": func() {
			r.list(maxSteps, func() {
				var a []string
				r.list(3, func() { a = append(a, r.str(maxTokenLen)) })
				if len(a) != 3 {
					r.fail("a step of normalization has %d texts, want 3", len(a))
					return
				}
				out.Normalize = append(out.Normalize, Alter{a[0], a[1], a[2]})
			})
		},
		"space":  func() { out.Space = r.str(40) },
		"marks":  func() { out.Marks = r.boolean() },
		"words":  func() { out.Words = r.boolean() },
		"bytes":  func() { out.Bytes = r.boolean() },
		"fuse":   func() { out.Fuse = r.boolean() },
		"strip":  func() { out.Strip = r.str(40) },
		"before": func() { out.Before = r.ids() },
		"behind": func() { out.Behind = r.ids() },
		"late":   func() { out.Late = r.ids() },
	}
	r.fields(fields, "size normalize space marks words bytes fuse strip before behind late")
	return out
}

// fields reads an object, in which the wanted fields must be.
func (r *reader) fields(fields map[string]func(), wanted string) {
	seen := r.object(len(fields), func(k string) {
		if f, ok := fields[k]; ok {
			f()
		} else {
			r.fail("field %q is unknown", k)
		}
	})
	for _, k := range strings.Fields(wanted) {
		if !seen[k] {
			r.fail("field %q is missing", k)
		}
	}
}

// number reads a finite float32.
func (r *reader) number() float32 {
	t := r.token()
	n, ok := t.(json.Number)
	v, err := strconv.ParseFloat(n.String(), 32)
	if r.err == nil && (!ok || err != nil) {
		r.fail("want a number, have %.40q", fmt.Sprint(t))
	}
	return float32(v)
}

// list calls item for each element of an array of at most limit elements.
func (r *reader) list(limit int, item func()) {
	r.delim('[')
	for n := 0; r.err == nil && r.dec.More(); n++ {
		if n == limit {
			r.fail("a list has more than %d elements", limit)
			return
		}
		item()
	}
	r.delim(']')
}

// object calls field for each key, and refuses a repeated key.
func (r *reader) object(limit int, field func(key string)) map[string]bool {
	seen := map[string]bool{}
	r.delim('{')
	for r.err == nil && r.dec.More() {
		k := r.str(40)
		if seen[k] || len(seen) == limit {
			r.fail("field %q comes twice, or there are more than %d fields", k, limit)
			return seen
		}
		seen[k] = true
		field(k)
	}
	r.delim('}')
	return seen
}

func (r *reader) spec() *Spec {
	s := &Spec{Special: map[Role]int32{}}
	fields := map[string]func(){
		"version": func() {
			if v := r.integer(1 << 30); r.err == nil && v != version {
				r.fail("version %d is not supported; supported: %d", v, version)
			}
		},
		"model":         func() { s.Model = r.str(256) },
		"pre":           func() { s.Pre = r.str(256) },
		"tokens":        func() { r.list(maxTokens, func() { s.Tokens = append(s.Tokens, r.str(maxTokenLen)) }) },
		"types":         func() { s.Types = r.types() },
		"merges":        func() { r.list(maxMerges, func() { s.Merges = append(s.Merges, r.str(2*maxTokenLen+1)) }) },
		"special":       func() { r.object(len(roles), func(k string) { s.Special[Role(k)] = int32(r.integer(maxTokens)) }) },
		"add_bos":       func() { s.AddBOS = r.boolean() },
		"add_eos":       func() { s.AddEOS = r.boolean() },
		"chat_template": func() { s.ChatTemplate = r.str(maxTemplate) },
		"nfc":           func() { s.NFC = r.boolean() },
		"whole":         func() { b := r.boolean(); s.Whole = &b },
		"log_probs":     func() { r.list(maxTokens, func() { s.LogProbs = append(s.LogProbs, r.float()) }) },
		"rules":         func() { s.Rules = r.rules() },
		"scores":        func() { r.list(maxTokens, func() { s.Scores = append(s.Scores, r.number()) }) },
		"space_prefix":  func() { s.SpacePrefix = r.boolean() },
		"strip_behind":  func() { s.StripBehind = r.boolean() },
	}
	seen := r.object(len(fields), func(k string) {
		if f, ok := fields[k]; ok {
			f()
		} else {
			r.fail("field %q is unknown", k)
		}
	})
	fieldsOf := "version model pre tokens types merges special add_bos add_eos chat_template"
	if s.Model == sentencePiece {
		fieldsOf += " scores space_prefix strip_behind"
	}
	for _, k := range strings.Fields(fieldsOf) {
		if !seen[k] {
			r.fail("field %q is missing", k)
		}
	}
	return s
}

func (r *reader) types() []TokenType {
	var out []TokenType
	r.list(maxTokens, func() {
		r.delim('[')
		t := r.integer(int64(Byte))
		n := r.integer(maxTokens)
		r.delim(']')
		if len(out)+int(n) > maxTokens {
			r.fail("types for more than %d tokens", maxTokens)
			return
		}
		for range n {
			out = append(out, TokenType(t))
		}
	})
	return out
}
