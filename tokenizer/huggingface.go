package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// published are the expressions by which tokenizer.json files split text, and the pre-tokenizers that they are. Where their (?i:…)
// has a Unicode letter more than llama.cpp's expression, they are rows of their own.
var published = map[string]string{
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                                                                                                                                                                "json-llama3",
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                                                                                                                                                                     "json-qwen2",
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: "json-o200k",
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                                                                "json-tekken",
}

// huggingFace is what is read of a tokenizer.json.
type huggingFace struct {
	Added []struct {
		ID      int64  `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
		Late    bool   `json:"normalized"`
		LStrip  bool   `json:"lstrip"`
		RStrip  bool   `json:"rstrip"`
		Word    bool   `json:"single_word"`
	} `json:"added_tokens"`
	Normalizer *step `json:"normalizer"`
	Pre        *step `json:"pre_tokenizer"`
	Post       *step `json:"post_processor"`
	Decoder    *step `json:"decoder"`
	Model      struct {
		Type         string          `json:"type"`
		Vocab        json.RawMessage `json:"vocab"`
		Unknown      *string         `json:"unk_token"`
		UnknownID    *int64          `json:"unk_id"`
		Fuse         bool            `json:"fuse_unk"`
		Merges       []merged        `json:"merges"`
		Whole        bool            `json:"ignore_merges"`
		ByteFallback bool            `json:"byte_fallback"`
		Dropout      *float64        `json:"dropout"`
		Prefix       *string         `json:"continuing_subword_prefix"`
		Suffix       *string         `json:"end_of_word_suffix"`
	} `json:"model"`

	bytes bool // tokens such as <0x41> are decoded to bytes
}

// step is a normalizer, a pre-tokenizer or a post-processor; a sequence has several.
type step struct {
	Type        string `json:"type"`
	Pres        []step `json:"pretokenizers"`
	Normalizers []step `json:"normalizers"`
	Processors  []step `json:"processors"`
	Decoders    []step `json:"decoders"`

	Pattern struct {
		Regex  string
		String *string
	} `json:"pattern"`
	Content  string `json:"content"`
	Prepend  string `json:"prepend"`
	Left     bool   `json:"strip_left"`
	Right    bool   `json:"strip_right"`
	Start    int    `json:"start"`
	Stop     int    `json:"stop"`
	Mark     string `json:"replacement"`
	Scheme   string `json:"prepend_scheme"`
	Split    *bool  `json:"split"`
	Behavior string `json:"behavior"`
	Invert   bool   `json:"invert"`
	Digits   bool   `json:"individual_digits"`
	Space    *bool  `json:"add_prefix_space"`
	UseRegex *bool  `json:"use_regex"`

	Single []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
}

// parts are the steps of a sequence, or the step itself.
func (s *step) parts() []step {
	if s == nil {
		return nil
	}
	if s.Type != "Sequence" {
		return []step{*s}
	}
	return slices.Concat(s.Pres, s.Normalizers, s.Processors, s.Decoders)
}

// merged is a merge: "a b", or in newer files ["a", "b"].
type merged string

// UnmarshalJSON implements [json.Unmarshaler].
func (m *merged) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(m))
	}
	var pair []string
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a merge of %d symbols, want 2", len(pair))
	}
	*m = merged(pair[0] + " " + pair[1])
	if left, right, ok := cutMerge(string(*m)); !ok || left != pair[0] || right != pair[1] {
		return fmt.Errorf("a merge of %.40q and %.40q is not supported", pair[0], pair[1])
	}
	return nil
}

// FromJSON reads a tokenizer.json of Hugging Face's: byte-level BPE with a pre-tokenizer of the table, BPE of characters with
// bytes for the others, or unigrams. bos and eos are the tokens that begin and end a text, and chat the template, which such a
// file does not say; "" stands for none. What is not supported is named all at once.
func FromJSON(data []byte, bos, eos, chat string) (*Spec, error) {
	if len(data) > maxBlob {
		return nil, fmt.Errorf("tokenizer: %d bytes of JSON, at most %d are supported", len(data), maxBlob)
	}
	var h huggingFace
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	s := &Spec{Model: "gpt2", Special: map[Role]int32{}, ChatTemplate: chat}
	var missing []string
	fault := func(format string, args ...any) { missing = append(missing, fmt.Sprintf(format, args...)) }
	byteLevel := slices.ContainsFunc(h.Pre.parts(), func(p step) bool { return p.Type == "ByteLevel" })
	switch m := h.Model; {
	case m.Type == "Unigram":
		s.Model = unigrams
	case m.Type != "BPE" && m.Type != "":
		fault("model %q is not supported, BPE and Unigram are", m.Type)
	case byteLevel && m.ByteFallback:
		fault("byte-level BPE with bytes for unknown characters (byte_fallback) is not supported")
	case m.Dropout != nil || m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "":
		fault("dropout, prefixes and suffixes of symbols are not supported")
	case !byteLevel:
		s.Model = characters
	}
	if s.Model != "gpt2" {
		h.rules(s, fault)
	} else {
		h.byteLevel(s, fault)
	}
	if err := s.fill(&h); err != nil {
		fault("%v", err)
	}
	if len(missing) > 0 {
		return nil, errors.New("tokenizer: " + strings.Join(missing, "; "))
	}
	id := func(token string) (int32, bool) {
		i := slices.Index(s.Tokens, token)
		return int32(i), i >= 0
	}
	for _, x := range []struct {
		role  Role
		token string
	}{{BOS, bos}, {EOS, eos}} {
		if i, ok := id(x.token); ok && x.token != "" {
			s.Special[x.role] = i
		} else if x.token != "" {
			return nil, fmt.Errorf("tokenizer: the %s token %.40q is not in the vocabulary", x.role, x.token)
		}
	}
	for _, p := range h.Post.parts() {
		if p.Type != "TemplateProcessing" || len(p.Single) == 0 {
			continue
		}
		if first := p.Single[0].Special; first != nil {
			i, ok := id(first.ID)
			if !ok || bos != "" && first.ID != bos {
				return nil, fmt.Errorf("tokenizer: the post-processor puts %.40q before a text, which is not the BOS token %.40q", first.ID, bos)
			}
			s.Special[BOS], s.AddBOS = i, true
		}
		if last := p.Single[len(p.Single)-1].Special; last != nil && len(p.Single) > 1 {
			if last.ID != eos {
				return nil, fmt.Errorf("tokenizer: the post-processor puts %.40q behind a text, which is not the EOS token %.40q", last.ID, eos)
			}
			s.AddEOS = true
		}
	}
	return s, s.Check()
}

// byteLevel reads the steps of byte-level BPE.
func (h *huggingFace) byteLevel(s *Spec, fault func(format string, args ...any)) {
	for _, n := range h.Normalizer.parts() {
		if n.Type != "NFC" {
			fault("normalizer %q is not supported", n.Type)
		}
		s.NFC = true
	}
	var err error
	if s.Pre, err = h.preTokenizer(); err != nil {
		fault("%v", err)
	} else if preTokenizerOf(s.Pre).whole != h.Model.Whole {
		s.Whole = &h.Model.Whole
	}
}

// rules reads the steps of a vocabulary of characters.
func (h *huggingFace) rules(s *Spec, fault func(format string, args ...any)) {
	r := &Rules{Bytes: h.Model.ByteFallback, Fuse: h.Model.Fuse}
	s.Rules = r
	if h.Model.Whole {
		fault("ignore_merges is not supported with merges of characters")
	}
	spaces := false // no space is left behind normalization
	for _, n := range h.Normalizer.parts() {
		form := strings.ToLower(n.Type)
		switch _, known := forms[form]; {
		case known:
			r.Normalize = append(r.Normalize, Alter{Kind: form})
		case n.Type == "Prepend":
			r.Normalize = append(r.Normalize, Alter{alterPrepend, "", n.Prepend})
		case n.Type == "Replace" && n.Pattern.String != nil && *n.Pattern.String != "":
			r.Normalize = append(r.Normalize, Alter{alterReplace, *n.Pattern.String, n.Content})
			spaces = spaces || *n.Pattern.String == " " && !strings.Contains(n.Content, " ")
		case n.Type == "Replace" && n.Pattern.Regex == " {2,}":
			r.Normalize = append(r.Normalize, Alter{alterSpaces, "", n.Content})
		case n.Type == "Strip":
			if n.Left {
				r.Normalize = append(r.Normalize, Alter{Kind: alterLeft})
			}
			if n.Right {
				r.Normalize = append(r.Normalize, Alter{Kind: alterRight})
			}
		default:
			fault("normalizer %q is not supported", strings.TrimSpace(n.Type+" "+n.Pattern.Regex))
		}
	}
	for _, p := range h.Pre.parts() {
		switch {
		case p.Type == "Split" && p.Pattern.String != nil && *p.Pattern.String == " " && spaces:
			// There are no spaces to split at.
		case p.Type == "Metaspace" && p.Mark == spaceMark && !r.Marks:
			r.Marks, r.Words = true, p.Split == nil || *p.Split
			r.Space = p.Scheme
			if r.Space == "" && (p.Space == nil || *p.Space) {
				r.Space = "always"
			}
			if r.Space == "never" {
				r.Space = ""
			}
		default:
			fault("pre-tokenizer %q is not supported with this model", p.Type)
		}
	}
	h.decoder(r, fault)
}

// decoder reads how tokens become text.
func (h *huggingFace) decoder(r *Rules, fault func(format string, args ...any)) {
	marks, bytes := false, false // what has been read: ▁ becomes a space, <0x41> a byte
	parts := h.Decoder.parts()
	for i, d := range parts {
		switch {
		case d.Type == "Replace" && d.Pattern.String != nil && *d.Pattern.String == spaceMark && d.Content == " " && !marks:
			marks = true
		case d.Type == "Metaspace" && d.Mark == spaceMark && !marks:
			if marks = true; d.Scheme != "never" && (d.Scheme != "" || d.Space == nil || *d.Space) {
				r.Strip = stripMarks
			}
		case d.Type == "ByteFallback" && !bytes:
			bytes = true
		case d.Type == "Fuse":
		case d.Type == "Strip" && d.Content == " " && d.Start <= 1 && d.Stop == 0 && i == len(parts)-1 && i > 0 && parts[i-1].Type == "Fuse" && r.Strip == "":
			if d.Start == 1 {
				r.Strip = stripSpace
			}
		default:
			fault("decoder %q is not supported in this place", d.Type)
		}
	}
	if h.bytes = bytes; !marks {
		fault("a decoder that makes no spaces of %s is not supported", spaceMark)
	}
}

// preTokenizer returns the pre-tokenizer that the file's steps are.
func (h *huggingFace) preTokenizer() (string, error) {
	split, digits := "", false
	for _, p := range h.Pre.parts() {
		switch {
		case p.Type == "ByteLevel" && p.Space != nil && *p.Space:
			return "", errors.New("a prefix of a space (add_prefix_space) is not supported")
		case p.Type == "ByteLevel":
			if split == "" && (p.UseRegex == nil || *p.UseRegex) {
				split = "gpt-2"
			}
		case p.Type == "Digits" && p.Digits && split == "":
			digits = true
		case p.Type == "Split" && p.Behavior == "Isolated" && !p.Invert && split == "" && !digits:
			name, ok := published[p.Pattern.Regex]
			if !ok {
				return "", fmt.Errorf("the expression %.300q is not supported", p.Pattern.Regex)
			}
			split = name
		default:
			return "", fmt.Errorf("pre-tokenizer %q is not supported in this place", p.Type)
		}
	}
	switch {
	case digits && split == "gpt-2":
		return "smollm", nil
	case split == "" || digits:
		return "", errors.New("these pre-tokenizers are not supported")
	}
	return split, nil
}

// vocab returns the model's tokens with their IDs, and of unigrams the logarithms of their probabilities.
func (h *huggingFace) vocab() (ids map[string]int64, logs []float64, err error) {
	if h.Model.Type != "Unigram" {
		err = json.Unmarshal(h.Model.Vocab, &ids)
		return ids, nil, err
	}
	var list [][2]json.RawMessage
	if err := json.Unmarshal(h.Model.Vocab, &list); err != nil {
		return nil, nil, err
	}
	if len(list) > maxTokens {
		return nil, nil, fmt.Errorf("%d tokens, at most %d are supported", len(list), maxTokens)
	}
	ids = make(map[string]int64, len(list))
	for i, x := range list {
		var text string
		if err := json.Unmarshal(x[0], &text); err != nil {
			return nil, nil, fmt.Errorf("token %d: %w", i, err)
		}
		log, err := quickFloat(string(x[1]))
		if err != nil {
			return nil, nil, fmt.Errorf("token %d: %w", i, err)
		}
		if _, twice := ids[text]; twice {
			return nil, nil, fmt.Errorf("token %.40q is there twice", text)
		}
		ids[text] = int64(i)
		logs = append(logs, log)
	}
	return ids, logs, nil
}

// quickFloat reads a number as the parser of Hugging Face's tokenizers does (serde_json): its digits become a float64, which is
// multiplied or divided by a power of ten. The last bit may differ from that of the nearest float64, and where two ways to cut a
// word are almost equally probable, it decides.
func quickFloat(text string) (float64, error) {
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return 0, err
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(text, "-")), "e")
	exponent := 0
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil {
			return 0, err
		}
	}
	digits, full, behind := uint64(0), false, false
	for _, c := range mantissa {
		if c == '.' {
			behind = true
			continue
		}
		d := uint64(c - '0')
		if full = full || digits > (math.MaxUint64-d)/10; full { // further digits are left out
			if !behind {
				exponent++
			}
			continue
		}
		digits = digits*10 + d
		if behind {
			exponent--
		}
	}
	v := float64(digits)
	for ; exponent < -308 && v != 0; exponent += 308 {
		v /= 1e308
	}
	if exponent < 0 {
		v /= math.Pow10(min(308, -exponent))
	} else {
		v *= math.Pow10(exponent)
	}
	if strings.HasPrefix(text, "-") {
		v = -v
	}
	return v, nil
}

// fill sets tokens, types and merges, and what rules say of tokens.
func (s *Spec) fill(h *huggingFace) error {
	vocab, logs, err := h.vocab()
	if err != nil {
		return err
	}
	n := int64(0)
	for _, id := range vocab {
		n = max(n, id+1)
	}
	size := n // of the model
	for _, a := range h.Added {
		n = max(n, a.ID+1)
	}
	if n > maxTokens {
		return fmt.Errorf("%d tokens, at most %d are supported", n, maxTokens)
	}
	s.Tokens, s.Types = make([]string, n), make([]TokenType, n)
	for i := range s.Types {
		s.Types[i] = Unused
	}
	for text, id := range vocab {
		if id < 0 {
			return fmt.Errorf("token %.40q has the number %d", text, id)
		}
		s.Tokens[id], s.Types[id] = text, Normal
		if _, ok := byteToken(text); ok && h.bytes {
			s.Types[id] = Byte
		}
	}
	for _, a := range h.Added {
		if a.ID < 0 || a.Word || s.Rules == nil && (a.LStrip || a.RStrip) {
			return fmt.Errorf("added token %.40q has a number below 0, or takes what is beside it (lstrip, rstrip, single_word): not supported", a.Content)
		}
		if r := s.Rules; r != nil {
			if id, own := vocab[a.Content]; (a.ID < size || own) && (!own || id != a.ID) {
				return fmt.Errorf("added token %.40q has the number of another token of the model: not supported", a.Content)
			}
			for _, x := range []struct {
				is   bool
				list *[]int32
			}{{a.LStrip, &r.Before}, {a.RStrip, &r.Behind}, {a.Late, &r.Late}} {
				if x.is {
					*x.list = append(*x.list, int32(a.ID))
				}
			}
		}
		s.Tokens[a.ID], s.Types[a.ID] = a.Content, UserDefined
		if a.Special {
			s.Types[a.ID] = Control
		}
	}
	for _, m := range h.Model.Merges {
		s.Merges = append(s.Merges, string(m))
	}
	if s.Rules == nil {
		return nil
	}
	s.Rules.Size, s.LogProbs = int(size), logs
	switch m := &h.Model; {
	case m.UnknownID != nil:
		s.Special[UNK] = int32(*m.UnknownID)
	case m.Unknown != nil:
		id, ok := vocab[*m.Unknown]
		if !ok {
			return fmt.Errorf("the unknown token %.40q is not in the vocabulary", *m.Unknown)
		}
		s.Special[UNK] = int32(id)
	}
	return nil
}
