package safetensors

import (
	"encoding/json"
	"fmt"

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
	if err := m.read("tokenizer.json", true, &data); err != nil {
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
	roles := []tokenizer.Role{tokenizer.EOS, tokenizer.EOT, tokenizer.EOM}
	for _, id := range append(s.EOS, generation.EOS...) {
		if id < 0 || int(id) >= len(spec.Tokens) {
			return nil, fmt.Errorf("eos_token_id %d is outside the vocabulary of %d tokens", id, len(spec.Tokens))
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
