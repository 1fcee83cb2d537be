package safetensors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// wrapper is a model of text and pictures: a language model of a type that can be recorded by itself, and what makes vectors of
// pictures for it. Of such a folder the language model is recorded.
type wrapper struct {
	text string // the model type of the language model
	// flat says that folders without text_config are published, which have its settings among those of the whole.
	flat bool
	// missing fills in what the settings of a language model may leave out.
	missing func(s *settings)
}

// wrappers are the values of model_type of such models.
var wrappers = map[string]wrapper{
	"gemma3": {text: "gemma3_text", missing: func(s *settings) {
		// They are mlx-lm's, and those of transformers but for the two widths, and tensors of other widths are refused. The two do
		// not agree on sliding_window either, which no tensor shows: so it has to be there. The number of positions is that of
		// transformers, as mlx-lm makes no use of its own.
		s.Vocab, s.Hidden, s.Layers, s.FFN = 262208, 1152, 26, 6912
		s.Heads, s.KVHeads, s.HeadDim, s.Context = 8, 4, 256, 131072
		s.Eps, s.Theta, s.QueryScalar = 1e-6, 1e6, 256
	}},
	"mistral3":   {text: "mistral"},
	"qwen2_vl":   {text: "qwen2", flat: true, missing: func(s *settings) { s.Theta = 1e6 }},
	"qwen2_5_vl": {text: "qwen2", flat: true, missing: func(s *settings) { s.Theta = 1e6 }},
	"qwen3_vl":   {text: "qwen3", missing: func(s *settings) { s.Theta = 500000 }},
	// With experts as MLX has them: transformers stores theirs transposed. It has no norm_topk_prob, and does what that asks for.
	"qwen3_vl_moe": {text: "qwen3_moe", missing: func(s *settings) { s.Theta, s.Normalized = 500000, true }},
	"pixtral":      {text: "mistral", missing: func(s *settings) { s.Heads = 32 }},
}

// ofPictures are the modules that read pictures, by any model's name for them.
var ofPictures = []string{"multi_modal_projector", "vision_tower", "visual"}

// readSettings reads config.json. Settings of a model of text and pictures become those of its language model.
func (m *Model) readSettings() (*settings, error) {
	var data []byte
	if err := m.read("config.json", true, &data); err != nil {
		return nil, err
	}
	read := func(data []byte, s *settings) error {
		if err := json.Unmarshal(data, s); err != nil {
			return fmt.Errorf("config.json: %w", err)
		}
		return nil
	}
	whole := &settings{}
	if err := read(data, whole); err != nil {
		return nil, err
	}
	w, ok := wrappers[whole.ModelType]
	if !ok {
		return whole, nil
	}
	s := &settings{}
	if w.missing != nil {
		w.missing(s)
	}
	if whole.hasText() {
		data = whole.Text
	} else if !w.flat {
		return nil, fmt.Errorf("config.json: text_config is missing, which a folder of the model_type %s has", whole.ModelType)
	}
	if err := read(data, s); err != nil {
		return nil, err
	}
	// Files call it by a name of its own or by that of the whole, or have none.
	if kind := s.ModelType; !slices.Contains([]string{"", w.text, whole.ModelType, whole.ModelType + "_text"}, kind) {
		return nil, fmt.Errorf("config.json: model_type %s with a language model of the type %.40q is not supported, only with %s is", whole.ModelType, kind, w.text)
	}
	m.whole, s.ModelType, s.Text = whole.ModelType, w.text, nil
	// What the whole says of tie_word_embeddings does not count, as in mlx-lm: without the language model's word it has a head if
	// there is one.
	s.Vocab = cmp.Or(whole.Vocab, s.Vocab)
	if whole.EOS != nil {
		s.EOS = whole.EOS
	}
	if whole.BOS != nil {
		s.BOS = whole.BOS
	}
	if whole.Quantization != nil {
		s.Quantization = whole.Quantization
	}
	if whole.Other != nil {
		s.Other = whole.Other
	}
	return s, nil
}

// ofText returns the name that a module or tensor of a model of text and pictures has in its language model alone; not so if it is
// left out.
func ofText(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "language_model."); ok {
		return rest, true
	}
	rest, within := strings.CutPrefix(name, "model.")
	if of, ok := strings.CutPrefix(rest, "language_model."); ok && within { // as newer versions of transformers write it
		return "model." + of, true
	}
	first, _, _ := strings.Cut(rest, ".")
	return name, !slices.Contains(ofPictures, first)
}

// takeText leaves the tensors of the language model, by the names that they have in a folder of that alone, and of what is listed as
// quantized by itself likewise.
func (m *Model) takeText() error {
	tensors, left := map[string]place{}, map[string]int{}
	m.called = map[string]string{}
	for _, old := range slices.Sorted(maps.Keys(m.tensors)) {
		name, ok := ofText(old)
		if !ok {
			first, _, _ := strings.Cut(strings.TrimPrefix(old, "model."), ".")
			left[first]++
			continue
		}
		if _, twice := tensors[name]; twice {
			return fmt.Errorf("tensor %s is there by two names, one of them %s", name, old)
		}
		t := m.tensors[old]
		t.Name = name
		tensors[name], m.called[name] = t, old
	}
	m.tensors = tensors
	apart := map[string]*quantization{}
	for _, old := range slices.Sorted(maps.Keys(m.apart)) {
		if name, ok := ofText(old); ok {
			apart[name] = m.apart[old]
		}
	}
	m.apart = apart
	var parts []string
	for _, first := range slices.Sorted(maps.Keys(left)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", first, left[first]))
	}
	remark := fmt.Sprintf("text alone: model_type %s is that of a model of text and pictures, and pictures are not read", m.whole)
	if parts != nil {
		remark += "; tensors that are left out: " + strings.Join(parts, ", ")
	}
	m.remarks = append(m.remarks, remark)
	return nil
}
