package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
		got, err := chat.Render(t.Context(), o.Templates[c.Template], o.Conversations[c.Conversation],
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

func TestConstructsAsJinja(t *testing.T) {
	o := theOracle(t)
	require.Greater(t, len(o.Constructs), 140)
	for _, c := range o.Constructs {
		got, err := chat.Render(t.Context(), c.Template, o.ConstructsMessages, chat.Options{BOS: o.BOS, EOS: o.EOS, AddGenerationPrompt: true})
		if err != nil {
			got = "error: " + err.Error()
		}
		want := "error: chat: template line 1: " + c.Error
		if c.Text != nil {
			want = *c.Text
		}
		assert.Equal(t, want, got, c.Template)
	}
}

func TestWhiteSpaceAsJinja(t *testing.T) {
	o := theOracle(t)
	require.Greater(t, len(o.WhiteSpace), 300)
	for _, c := range o.WhiteSpace {
		got, err := chat.Render(t.Context(), c.Template, nil, chat.Options{})
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
		{"a\n{% for m messages %}\n{% endfor %}", "chat: template line 2: expected \"in\", got \"messages\""},
		{"a\n\n{% if true %}\nb\n", "chat: template line 3: the block \"if\" that starts here has no \"endif\""},
		{"a\n{{ messages | nofilter }}", "chat: template line 2: "},
		{"a\n{{ nofunction() }}", "chat: template line 2: "},
		{"a\n{{ messages[0].content.nomethod() }}", "chat: template line 2: "},
		{"a\n{{ 'x }}", "chat: template line 2: "},
		{"a\n{{ 1 + }}", "chat: template line 2: "},
		{"a\n{% include '/etc/passwd' %}", "chat: template line 2: the tag \"include\" is not supported"},
		{"a\n{% import '/etc/passwd' as p %}", "chat: template line 2: the tag \"import\" is not supported"},
		{"{% extends '/etc/passwd' %}", "chat: template line 1: the tag \"extends\" is not supported"},
		{"\n{{ range(100001) }}", "chat: template line 2: range of more than 100000"},
		{"\n{% for i in range(1, 2, 0) %}{% endfor %}", "chat: template line 2: range() arg 3 must not be zero"},
		{"{% macro f() %}{{ f() }}{% endmacro %}\n\n{{ f() }}", `macro "f" calls itself more than 100 deep`},
		{"{% set s = 'x' * 1000000 %}\n{% for i in range(20) %}\n{{ s }}{% endfor %}", "chat: template line 3: the output is larger than 16 MiB"},
		{"\n{{ strftime_now('%Q') }}", `chat: template line 2: strftime_now: the directive "%Q" is not supported`},
		{strings.Repeat("x", 256<<10+1), "it has 262145 bytes, at most 262144"},
		{"\n{{ " + strings.Repeat("(", 101) + " }}", "chat: template line 2: brackets are nested deeper than 100"},
		{"\n" + strings.Repeat("{%if 1%}", 101), "chat: template line 2: blocks are nested deeper than 100"},
		{"\n{{ " + strings.Repeat("x", 5000) + "() }}", "chat: template line 2: "},
		{"a\n{# never", "chat: template line 2: the comment \"{#\" that starts here has no closing"},
		{"a\n{% raw %}\n", "chat: template line 2: the \"{% raw %}\" that starts here has no"},
		{"a\n{% if x", "chat: template line 2: the tag that starts here has no closing"},
		{"{# a\nb #}\n{%- set x = 1 -%}\n\n{{\n'y'}}\n\n{{ raise_exception('seven') }}", "chat: template line 8: seven"},
		{"{% macro f() %}\n{{ raise_exception('two') }}\n{% endmacro %}\n{{ f() }}", "chat: template line 2: two"},
		{"\n\n{{ 1 % 0 }}", "chat: template line 3: integer division or modulo by zero"},
	}
	for _, c := range cases {
		_, err := chat.Render(t.Context(), c.template, user, chat.Options{})
		var e *chat.Error
		require.True(t, errors.As(err, &e), "%.80q: %v", c.template, err)
		if !strings.HasPrefix(err.Error(), c.want) {
			assert.ErrorContains(t, err, c.want, "%.80q", c.template)
		}
		assert.Less(t, len(err.Error()), 600, "%.80q: the message repeats the template", c.template)
	}
}

// TestWhatIsLackingIsRefused checks that what Jinja has and this package lacks is an error that names it and its line.
func TestWhatIsLackingIsRefused(t *testing.T) {
	const lacking = "casefold center count encode expandtabs format format_map index isalnum isalpha isascii isdecimal isdigit " +
		"isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans partition rfind rindex rjust " +
		"rpartition swapcase translate zfill"
	cases := map[string]string{
		"{% with a = 1 %}{{ a }}{% endwith %}":                         `the tag "with" is not supported`,
		"{% filter upper %}abc{% endfilter %}":                         `the tag "filter" is not supported`,
		"{% call f() %}in{% endcall %}":                                "a call block is not supported",
		"{% for i in [1] recursive %}{% endfor %}":                     "recursive loops are not supported",
		"{% set x | upper %}a{% endset %}":                             "filters of a set block are not supported",
		"{% macro f() %}{{ varargs }}{% endmacro %}{{ f() }}":          `the name "varargs" is not supported`,
		"{% macro f() %}{{ kwargs }}{% endmacro %}{{ f() }}":           `the name "kwargs" is not supported`,
		"{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}":         `the name "caller" is not supported`,
		"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}":                  `macro "f" with 2 arguments is not supported`,
		"{% macro f(a) %}{% endmacro %}{{ f(b=2) }}":                   `macro "f": the argument "b" is not supported`,
		"{% for i in [1] %}{{ loop.cycle(1) }}{% endfor %}":            "loop.cycle is not supported",
		"{% for i in [1] %}{{ loop.changed(1) }}{% endfor %}":          "loop.changed is not supported",
		"{% for i in [1] %}{{ loop.depth }}{% endfor %}":               "loop.depth is not supported",
		"{% set x = messages|map('length') %}{{ x|list }}{{ x|list }}": "a second time",
		"{{ cycler(1) }}":                           `the name "cycler" is not supported`,
		"{{ joiner() }}":                            `the name "joiner" is not supported`,
		"{{ dict([[1, 2]]) }}":                      "dict with arguments that have no names is not supported",
		"{{ dict(*[]) }}":                           "an argument with * is not supported",
		"{{ dict(**{}) }}":                          "arguments with ** are not supported",
		"{{ 2 ** 3 }}":                              "the operator ** is not supported",
		"{{ 1.5 // 1 }}":                            "the operator // on floats is not supported",
		"{{ 1.5 % 1 }}":                             "the operator % on floats is not supported",
		"{{ 'a%s' % 1 }}":                           "the operator % on text is not supported",
		"{{ 1e3 }}":                                 `numbers such as "1e" are not supported`,
		"{{ 0x10 }}":                                `numbers such as "0x" are not supported`,
		"{{ 1_000 }}":                               `numbers such as "1_" are not supported`,
		"{{ '\\N{DASH}' }}":                         `the escape \N is not supported`,
		"{{ '\\101' }}":                             `the escape \1 is not supported`,
		"{{ {1.5: 1} }}":                            `a "float" as a key is not supported`,
		"{{ {(1, 2): 1} }}":                         `a "tuple" as a key is not supported`,
		"{{ [1] < [2] }}":                           `"<" is not supported between instances of "list" and "list"`,
		"{{ range(3) == range(3) }}":                "comparing a range or a view of a dictionary is not supported",
		"{{ range(3) }}":                            "a range cannot be printed",
		"{{ messages[0].keys() }}":                  "a dict view cannot be printed",
		"{{ range(3)[1:] }}":                        `"range" object cannot be sliced`,
		"{{ 'a<b'|safe + 'a<b' }}":                  "marked as safe is not supported",
		"{{ 'a<b'|safe|upper }}":                    "marked as safe is not supported",
		"{{ ('a'|safe) == 'a' }}":                   "marked as safe is not supported",
		"{{ ('a'|safe).upper() }}":                  "marked as safe is not supported",
		"{{ ['a'|safe] }}":                          "a Markup cannot be printed",
		"{{ 'Σ' }}{{ 'aΣ'|title }}":                 "a capital sigma within a word",
		"{{ 'a b c'.split(none, 1) }}":              "split at white space with a maximum is not supported",
		"{{ 'x'.find('a', 1) }}":                    "find with 2 arguments is not supported",
		"{{ 'x'.startswith('a', 1) }}":              "startswith or endswith with 2 arguments is not supported",
		"{{ 'x'.splitlines(true) }}":                "splitlines with 1 arguments is not supported",
		"{{ [2, 1]|sort(attribute='a,b') }}":        "sort by several attributes is not supported",
		"{{ {}|dictsort(by='value') }}":             `the argument "by" is not supported`,
		"{{ '1f'|int(0, 16) }}":                     "int with 2 arguments is not supported",
		"{{ '1_0'|int }}":                           `the number "1_0" is not supported`,
		"{{ 'a'|indent(1, true, true) }}":           "indent with 3 arguments is not supported",
		"{{ 'a'|tojson(sort_keys=true) }}":          `the argument "sort_keys" is not supported`,
		"{{ 'a'|tojson(ensure_ascii=true) }}":       "ensure_ascii=true is not supported",
		"{{ strftime_now('%c') }}":                  `the directive "%c" is not supported`,
		"{{ messages is callable }}":                `the test "callable" is not supported`,
		"{{ 'a' is lower }}":                        `the test "lower" is not supported`,
		"{{ [1].index(1) }}":                        "index of a list is not supported",
		"{{ [1].append(2) }}":                       "append of a list is not supported",
		"{{ {}.update({}) }}":                       "update of a dict is not supported",
		"{{ messages.__class__ }}":                  "__class__ of a list is not supported",
		"{{ 'nan'|float }}":                         `the number "nan" is not supported`,
		"{{ 1" + strings.Repeat("0", 400) + ".0 }}": "is not supported",
		"{{ ('1e308'|float) * 10 }}":                "floats beyond 64 bits are not supported",
		"{{ {}.copy() }}":                           "copy of a dict is not supported",
	}
	for _, name := range strings.Fields("abs attr batch center e escape filesizeformat format groupby max min random round slice sum truncate unique urlize wordcount xmlattr") {
		cases["{{ 'a'|"+name+" }}"] = fmt.Sprintf("the filter %q is not supported", name)
	}
	for _, name := range strings.Fields(lacking) {
		cases["{{ 'a'."+name+"('a') }}"] = name + " of a str is not supported"
	}
	for template, want := range cases {
		got, err := chat.Render(t.Context(), "\n"+template, []chat.Message{{Role: "user", Content: "x"}}, chat.Options{})
		if assert.Error(t, err, "%s: got %q", template, got) {
			assert.ErrorContains(t, err, "chat: template line 2: ", template)
			assert.ErrorContains(t, err, want, template)
		}
		_, err = chat.Render(t.Context(), "{% if false %}"+template+"{% endif %}ok", nil, chat.Options{})
		if strings.Contains(want, "the filter") || strings.Contains(want, "of a str") {
			assert.NoError(t, err, "%s: a branch that is not taken may use it", template)
		}
	}
}

func TestStrftime(t *testing.T) {
	o := chat.Options{Now: time.Date(2024, 2, 9, 7, 5, 3, 42_000_000, time.UTC)}
	cases := map[string]string{ // as Python 3.11 on Linux says
		"%d %b %Y": "09 Feb 2024", "%Y-%m-%d": "2024-02-09", "%B %-d, %Y": "February 9, 2024", "%A %a": "Friday Fri", "%H:%M:%S": "07:05:03",
		"%I:%M %p": "07:05 AM", "%y%%": "24%", "%-I|%-m": "7|2", "ünï": "ünï",
	}
	for format, want := range cases {
		got, err := chat.Render(t.Context(), "{{ strftime_now('"+format+"') }}", nil, o)
		require.NoError(t, err, format)
		assert.Equal(t, want, got, format)
	}
	year, err := chat.Render(t.Context(), "{{ strftime_now('%Y') }}", nil, chat.Options{})
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
		got, err := chat.Render(t.Context(), template, []chat.Message{{Role: "user", Content: "a\n\"b\\ \u2028 :,[]{}"}}, chat.Options{})
		require.NoError(t, err, template)
		assert.Equal(t, want, got, template)
	}
}

// TestManyAtOnce checks that calls of Render share nothing, and leave no goroutine behind.
func TestManyAtOnce(t *testing.T) {
	const template = "{% for i in range(1000) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}{{ messages[0].content }}"
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			got, err := chat.Render(t.Context(), template, []chat.Message{{Role: "user", Content: fmt.Sprint(n)}}, chat.Options{})
			assert.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("012%d", n), got)
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, runtime.NumGoroutine(), before+1)
}

// FuzzRender checks that every template gives a text or an *Error.
func FuzzRender(f *testing.F) {
	f.Add("{% for m in messages %}{{ m.role + ('a' if loop.first else 'b') }}{% endfor %}", "x")
	f.Add("{%- set x = messages[-1].content.split('a')[0] -%}\n{# c #}{% raw %}{{{% endraw %}{{ x | tojson }}", "a")
	f.Add("{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1) }}", "")
	list := attacks()
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if t := list[name].template; len(t) < 1<<10 { // what a mutation may change something in
			f.Add(t, "x")
		}
	}
	f.Fuzz(func(t *testing.T, template, content string) {
		_, err := chat.Render(t.Context(), template, []chat.Message{{Role: "user", Content: content}}, chat.Options{Limits: chat.Limits{Steps: 100_000, Bytes: 4 << 20}})
		var e *chat.Error
		if err != nil && (!errors.As(err, &e) || strings.Contains(e.Reason, "internal error")) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
