package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/mlxc/mlxc/tokenizer"
)

// token is the text of a token: as it stands, or as the content of an object.
type token string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *token) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return json.Unmarshal(data, (*string)(t))
	}
	var o struct {
		Content string `json:"content"`
	}
	err := json.Unmarshal(data, &o)
	*t = token(o.Content)
	return err
}

// template is a chat template, or several of which the one called default counts.
type template string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *template) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return json.Unmarshal(data, (*string)(t))
	}
	var all []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	err := json.Unmarshal(data, &all)
	for _, x := range all {
		if x.Name == "default" {
			*t = template(x.Template)
		}
	}
	return err
}

// readTokenizer reads tokenizer.json and what other files say of tokens.
func (m *Model) readTokenizer(s *settings) (*tokenizer.Spec, error) {
	var data, jinja []byte
	if err := m.read(tokenizerFile, true, &data); errors.Is(err, fs.ErrNotExist) {
		return nil, m.tokenizerOf()
	} else if err != nil {
		return nil, err
	}
	var config struct {
		BOS      token    `json:"bos_token"`
		EOS      token    `json:"eos_token"`
		AddBOS   *bool    `json:"add_bos_token"`
		Template template `json:"chat_template"`
	}
	if err := m.read("tokenizer_config.json", false, &config); err != nil {
		return nil, err
	}
	if err := m.read("chat_template.jinja", false, &jinja); err != nil {
		return nil, err
	}
	if len(jinja) > 0 {
		config.Template = template(jinja)
	}
	spec, err := tokenizer.FromJSON(data, string(config.BOS), string(config.EOS), string(config.Template))
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if _, ok := spec.Special[tokenizer.BOS]; ok && config.AddBOS != nil {
		spec.AddBOS = *config.AddBOS
	}
	// Several tokens may end an answer.
	var generation struct {
		EOS ids `json:"eos_token_id"`
	}
	if err := m.read("generation_config.json", false, &generation); err != nil {
		return nil, err
	}
	size := len(spec.Tokens) // of them the model has an embedding
	if v := m.Config.Vocab; v > 0 {
		size = int(min(v, int64(size)))
	}
	for _, r := range []tokenizer.Role{tokenizer.BOS, tokenizer.EOS} {
		if id, ok := spec.Special[r]; ok && int(id) >= size {
			return nil, fmt.Errorf("tokenizer_config.json: %s_token is token %d, config.json's vocab_size is %d", r, id, size)
		}
	}
	for _, id := range s.BOS {
		if id < 0 || int(id) >= size {
			m.remarks = append(m.remarks, fmt.Sprintf("without effect: config.json: bos_token_id is %d, the vocabulary has 0 to %d; tokenizer_config.json and tokenizer.json say what begins a text", id, size-1))
		}
	}
	roles := []tokenizer.Role{tokenizer.EOS, tokenizer.EOT, tokenizer.EOM}
	for i, id := range slices.Concat(s.EOS, generation.EOS) {
		if id < 0 || int(id) >= size {
			in := "config.json"
			if i >= len(s.EOS) {
				in = "generation_config.json"
			}
			return nil, fmt.Errorf("%s: eos_token_id is %d, the vocabulary has 0 to %d", in, id, size-1)
		}
		for _, r := range roles {
			have, ok := spec.Special[r]
			if !ok {
				spec.Special[r] = id
			}
			if !ok || have == id {
				break
			}
		}
	}
	return spec, spec.Check()
}
