package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/tokenizer/chat"
)

// TestAsJinja compares with testdata/tokenizer/chat.json, which
// testdata/gen/chat.py writes with jinja2.
func TestAsJinja(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "tokenizer", "chat.json"))
	require.NoError(t, err)
	var o struct {
		BOS, EOS      string
		Templates     map[string]string
		Conversations map[string][]chat.Message
		Cases         []struct {
			Template, Conversation string
			AddGenerationPrompt    bool `json:"add_generation_prompt"`
			Text                   *string
			Error                  string
		}
	}
	require.NoError(t, json.Unmarshal(b, &o))
	require.GreaterOrEqual(t, len(o.Conversations), 12)
	models := 0
	for _, c := range o.Cases {
		name := fmt.Sprintf("%s, %s, prompt %v", c.Template, c.Conversation, c.AddGenerationPrompt)
		got, err := chat.Render(o.Templates[c.Template], o.Conversations[c.Conversation],
			chat.Options{BOS: o.BOS, EOS: o.EOS, AddGenerationPrompt: c.AddGenerationPrompt})
		if c.Text == nil {
			var e *chat.Error
			if assert.True(t, errors.As(err, &e), "%s: got %q", name, got) {
				assert.Equal(t, c.Error, e.Reason, name)
				assert.Positive(t, e.Line, name)
			}
			continue
		}
		if assert.NoError(t, err, name) {
			assert.Equal(t, *c.Text, got, name)
		}
		if c.Template == "model" {
			models++
		}
	}
	assert.GreaterOrEqual(t, models, 24)
}

func TestErrorsNameTheLine(t *testing.T) {
	user := []chat.Message{{Role: "user", Content: "x"}}
	cases := []struct{ template, want string }{
		{"", "chat: template: the model has no chat template"},
		{"a\nb\n{{ raise_exception('no ' + messages[0].role) }}", "chat: template line 3: no user"},
		{"{% for m in messages %}\n{% if true %}\n{{ raise_exception('at line 99') }}\n{% endif %}\n{% endfor %}", "chat: template line 3: at line 99"},
		{"a\n{% endfor %}", "chat: template line 2: "},
		{"a\n{% for m in %}\n{% endfor %}", "chat: template line 2: "},
		{"a\n{% for m messages %}\n{% endfor %}", "chat: template line 2: Expected keyword 'in'."},
		{"a\n\n{% if true %}\nb\n", "chat: template line 5: Unexpected EOF"},
		{"a\n{{ messages | nofilter }}", "chat: template line 2: "},
		{"a\n{{ nofunction() }}", "chat: template line 2: "},
		{"a\n{{ messages[0].content.nomethod() }}", "chat: template line 2: "},
		{"a\n{{ 'x }}", "chat: template line 2: "},
		{"a\n{{ 1 + }}", "chat: template line 2: "},
		{"a\n{% include '/etc/passwd' %}", "chat: template line 2: ControlStructure 'include' not found"},
		{"a\n{% import '/etc/passwd' as p %}", "chat: template line 2: ControlStructure 'import' not found"},
		{"{% extends '/etc/passwd' %}", "chat: template line 1: ControlStructure 'extends' not found"},
		{"\n{{ range(100001) }}", "chat: template line 2: range of more than 100000"},
		{"\n{% for i in range(1, 2, 0) %}{% endfor %}", "chat: template line 2: range wants a step that is not 0"},
		{"{% macro f() %}{{ f() }}{% endmacro %}\n\n{{ f() }}", `macro "f" calls itself more than 100 deep`},
		{"{% set s = 'x' * 1000000 %}\n{% for i in range(20) %}\n{{ s }}{% endfor %}", "chat: template line 3: the output is larger than 16 MiB"},
		{"\n{{ strftime_now('%Q') }}", `chat: template line 2: strftime_now: format "%Q": directive %Q is not supported`},
		{strings.Repeat("x", 256<<10+1), "it has 262145 bytes, at most 262144"},
		{"{{ " + strings.Repeat("(", 250_000) + " }}", "chat: template"},
		{"{{ " + strings.Repeat("not ", 60_000) + "}}", "chat: template"},
		{strings.Repeat("{%if 1%}", 30_000), "chat: template"},
	}
	for _, c := range cases {
		_, err := chat.Render(c.template, user, chat.Options{})
		var e *chat.Error
		require.True(t, errors.As(err, &e), "%.80q: %v", c.template, err)
		if !strings.HasPrefix(err.Error(), c.want) {
			assert.ErrorContains(t, err, c.want, "%.80q", c.template)
		}
		assert.Less(t, len(err.Error()), 400, "%.80q: the message repeats the template", c.template)
	}
}

func TestStrftime(t *testing.T) {
	o := chat.Options{Now: time.Date(2024, 2, 9, 7, 5, 3, 42_000_000, time.UTC)}
	cases := map[string]string{ // as Python 3.11 on Linux says
		"%d %b %Y": "09 Feb 2024", "%Y-%m-%d": "2024-02-09", "%B %-d, %Y": "February 9, 2024", "%A %a": "Friday Fri", "%H:%M:%S": "07:05:03",
		"%I:%M %p": "07:05 AM", "%j": "040", "%y%%": "24%", "%e|%-I|%-M": " 9|7|5", "%U %W %V %G %u %w": "05 06 06 2024 5 5", "%f": "042000", "%F %T %R %D": "2024-02-09 07:05:03 07:05 02/09/24",
		"%c": "Fri Feb  9 07:05:03 2024", "%x %X": "02/09/24 07:05:03", "%h%n%t": "Feb\n\t", "%s": "1707462303", "ünï": "ünï",
	}
	for format, want := range cases {
		got, err := chat.Render("{{ strftime_now('"+format+"') }}", nil, o)
		require.NoError(t, err, format)
		assert.Equal(t, want, got, format)
	}
	year, err := chat.Render("{{ strftime_now('%Y') }}", nil, chat.Options{})
	require.NoError(t, err)
	assert.Contains(t, []string{time.Now().Format("2006"), time.Now().Add(-time.Minute).Format("2006")}, year)
}

func TestToJSON(t *testing.T) {
	cases := map[string]string{ // as Python's json.dumps(ensure_ascii=False) says
		`{{ "<a> & 'é'" | tojson }}`:                      `"<a> & 'é'"`,
		`{{ [1, 2.5, true, none, "x"] | tojson }}`:        `[1, 2.5, true, null, "x"]`,
		`{{ {"k": [], "l": {}} | tojson }}`:               `{"k": [], "l": {}}`,
		`{{ [1, [2]] | tojson(indent=2) }}`:               "[\n  1,\n  [\n    2\n  ]\n]",
		`{{ messages[0].content | tojson }}`:              "\"a\\n\\\"b\\\\ \u2028 :,[]{}\"",
		`{{ messages[0] | tojson }}`:                      "{\"content\": \"a\\n\\\"b\\\\ \u2028 :,[]{}\", \"role\": \"user\"}",
		`{{ messages[0].content | tojson | length > 5 }}`: "True",
		`{{ "a\\u2028" | tojson(ensure_ascii=false) }}`:   `"a\\u2028"`,
	}
	for template, want := range cases {
		got, err := chat.Render(template, []chat.Message{{Role: "user", Content: "a\n\"b\\ \u2028 :,[]{}"}}, chat.Options{})
		require.NoError(t, err, template)
		assert.Equal(t, want, got, template)
	}
}

// TestManyAtOnce: Render shares nothing between calls, and leaves no goroutine.
func TestManyAtOnce(t *testing.T) {
	const template = "{% for i in range(1000) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}{{ messages[0].content }}"
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			got, err := chat.Render(template, []chat.Message{{Role: "user", Content: fmt.Sprint(n)}}, chat.Options{})
			assert.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("012%d", n), got)
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, runtime.NumGoroutine(), before+1)
}
