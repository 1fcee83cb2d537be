package mlxreplay

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What goes on in a conversation has no channels, which gpt-oss's template refuses.
func TestRemembered(t *testing.T) {
	for answer, want := range map[string]string{
		"Paris.":               "Paris.",
		"<think>Hm.</think> 4": "<think>Hm.</think> 4",
		"<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Paris.": "Paris.",
		"<|channel|>analysis<|message|>Not yet":                                                         "",
	} {
		assert.Equal(t, want, remembered(answer))
	}
}
