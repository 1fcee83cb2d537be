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

// oracle is testdata/tokenizer/chat.json, which testdata/gen/chat.py writes with
// jinja2.
type oracle struct {
	BOS, EOS      string
	Templates     map[string]string
	Conversations map[string][]chat.Message
	Cases         []struct {
		Template, Conversation string
		AddGenerationPrompt    bool `json:"add_generation_prompt"`
		Text                   *string
		Error                  string
	}
	ConstructsMessages []chat.Message `json:"constructs_messages"`
	Constructs         []struct {
		Template string
		Text     *string
		Error    string
	}
	WhiteSpace []struct{ Template, Text string } `json:"white_space"`
}

func theOracle(t *testing.T) (o oracle) {
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "tokenizer", "chat.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &o))
	return o
}

func TestConversationsAsJinja(t *testing.T) {
	o := theOracle(t)
	require.GreaterOrEqual(t, len(o.Conversations), 12)
	models := 0
	for _, c := range o.Cases {
		name := fmt.Sprintf("%s, %s, prompt %v", c.Template, c.Conversation, c.AddGenerationPrompt)
		got, err := chat.Render(o.Templates[c.Template], o.Conversations[c.Conversation],
			chat.Options{BOS: o.BOS, EOS: o.EOS, AddGenerationPrompt: c.AddGenerationPrompt})
		if c.Template == "model" {
			models++
		}
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
	}
	assert.Equal(t, 2*len(o.Conversations), models)
}

// different is what gonja does otherwise than jinja2: the text it gives, or the
// error after "error: ". An entry that has become right fails the test.
var different = map[string]string{
	`{{ 'a'[-1] }}`:                     "",
	`{{ 'a' ~ 1 ~ 2.5 ~ true ~ none }}`: "a12.5True",
	`{{ 7 // 2 }} {{ 7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ -7 // 2 }} {{ -7 % 3 }}`: "3 1 3.5 8.0 -3 -1",
	`{{ true }} {{ false }} {{ none }} {{ 1.0 }} {{ 1e3 }} {{ 0.1 + 0.2 }}`:        "True False  1.0 1000.0 0.30000000000000004",
	`{{ True }} {{ False }} {{ None }}`:                                            "True False ",
	`{{ [1, 'a', none, true] }}`:                                                   "[1, 'a', , True]",
	`{{ (1, 2) }}`:                                                                 "[1, 2]",
	`{{ x | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none | default('d') }}`: "d  d d",
	`{{ messages[0].get('content') }} {{ messages[0].get('no') }} {{ messages[0].get('no', 'd') }}`:          "sys tem  d",
	`{% set a, b = 1, 2 %}{{ a }}{{ b }}`:                     "error: chat: template line 1: Expected '=' or end of tag for block-set.",
	`{{ messages[0].nothing is none }}`:                       "True",
	`{{ 2.567 | round(1) }} {{ 2.5 | round }} {{ -1 | abs }}`: "2.6 3.0 1",
	`{{ '%s-%d' | format('a', 1) }} {{ '%s-%d' % ('a', 1) }}`: "error: chat: template line 1: gonja gave up: runtime error: integer divide by zero",
	`{% for c in 'añb' %}{{ c }}.{% endfor %}`:                "a.\xc3.\xb1.b.",
	`{{ 'a' 'b' }}`: "error: chat: template line 1: '}}' expected here",
}

func TestConstructsAsJinja(t *testing.T) {
	o := theOracle(t)
	seen := 0
	for _, c := range o.Constructs {
		got, err := chat.Render(c.Template, o.ConstructsMessages, chat.Options{BOS: o.BOS, EOS: o.EOS, AddGenerationPrompt: true})
		if err != nil {
			got = "error: " + err.Error()
		}
		want := "error: chat: template line 1: " + c.Error
		if c.Text != nil {
			want = *c.Text
		}
		if ours, ok := different[c.Template]; ok {
			seen++
			assert.NotEqual(t, want, got, "%s is right now: take it off the list", c.Template)
			want = ours
		}
		assert.Equal(t, want, got, c.Template)
	}
	assert.Equal(t, len(different), seen, "the list has templates that are no longer tested")
}

func TestWhiteSpaceAsJinja(t *testing.T) {
	o := theOracle(t)
	require.Greater(t, len(o.WhiteSpace), 300)
	for _, c := range o.WhiteSpace {
		got, err := chat.Render(c.Template, nil, chat.Options{})
		if assert.NoError(t, err, "%q", c.Template) {
			assert.Equal(t, c.Text, got, "%q", c.Template)
		}
	}
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
		{"a\n\n{% if true %}\nb\n", "chat: template line 3: Unexpected EOF, expected tag elif or else or endif."},
		{"a\n{{ messages | nofilter }}", "chat: template line 2: "},
		{"a\n{{ nofunction() }}", "chat: template line 2: "},
		{"a\n{{ messages[0].content.nomethod() }}", "chat: template line 2: "},
		{"a\n{{ 'x }}", "chat: template line 2: "},
		{"a\n{{ 1 + }}", "chat: template line 2: "},
		{"a\n{% include '/etc/passwd' %}", "chat: template line 2: ControlStructure 'include' not found"},
		{"a\n{% import '/etc/passwd' as p %}", "chat: template line 2: ControlStructure 'import' not found"},
		{"{% extends '/etc/passwd' %}", "chat: template line 1: ControlStructure 'extends' not found"},
		{"\n{{ range(100001) }}", "chat: template line 2: invalid call to function 'range': range of more than 100000"},
		{"\n{% for i in range(1, 2, 0) %}{% endfor %}", "chat: template line 2: invalid call to function 'range': range wants a step that is not 0"},
		{"{% macro f() %}{{ f() }}{% endmacro %}\n\n{{ f() }}", `macro "f" calls itself more than 100 deep`},
		{"{% set s = 'x' * 1000000 %}\n{% for i in range(20) %}\n{{ s }}{% endfor %}", "chat: template line 2: the output is larger than 16 MiB"},
		{"\n{{ strftime_now('%Q') }}", `chat: template line 2: invalid call to function 'strftime_now': strftime_now: format "%Q": directive %Q is not supported`},
		{strings.Repeat("x", 256<<10+1), "it has 262145 bytes, at most 262144"},
		{"\n{{ " + strings.Repeat("(", 101) + " }}", "chat: template line 2: brackets are nested deeper than 100"},
		{"\n" + strings.Repeat("{%if 1%}", 101), "chat: template line 2: blocks are nested deeper than 100"},
		{"\n{{ " + strings.Repeat("x", 5000) + "() }}", "chat: template line 2: "},
		{"a\n{# never", "chat: template line 2: the comment \"{#\" that starts here has no closing"},
		{"a\n{% raw %}\n", "chat: template line 2: the \"{% raw %}\" that starts here has no"},
		{"a\n{% if x", "chat: template line 2: the tag \"{%\" that starts here has no closing"},
		{"{# a\nb #}\n{%- set x = 1 -%}\n\n{{\n'y'}}\n\n{{ raise_exception('seven') }}", "chat: template line 8: seven"},
		{"{% macro f() %}\n{{ raise_exception('two') }}\n{% endmacro %}\n{{ f() }}", "chat: template line 2: two"},
		{"\n\n{{ 1 % 0 }}", "chat: template line 3: gonja gave up: runtime error: integer divide by zero"},
	}
	for _, c := range cases {
		_, err := chat.Render(c.template, user, chat.Options{})
		var e *chat.Error
		require.True(t, errors.As(err, &e), "%.80q: %v", c.template, err)
		if !strings.HasPrefix(err.Error(), c.want) {
			assert.ErrorContains(t, err, c.want, "%.80q", c.template)
		}
		assert.Less(t, len(err.Error()), 600, "%.80q: the message repeats the template", c.template)
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
		`{{ messages[0] | tojson }}`:                      "{\"role\": \"user\", \"content\": \"a\\n\\\"b\\\\ \u2028 :,[]{}\"}",
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

// FuzzRender: whatever the template, there is a text or an *Error.
func FuzzRender(f *testing.F) {
	f.Add("{% for m in messages %}{{ m.role + ('a' if loop.first else 'b') }}{% endfor %}", "x")
	f.Add("{%- set x = messages[-1].content.split('a')[0] -%}\n{# c #}{% raw %}{{{% endraw %}{{ x | tojson }}", "a")
	f.Add("{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1) }}", "")
	f.Fuzz(func(t *testing.T, template, content string) {
		if len(template) > 300 {
			return // gonja's time grows steeply with the length of an expression
		}
		_, err := chat.Render(template, []chat.Message{{Role: "user", Content: content}}, chat.Options{})
		var e *chat.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
