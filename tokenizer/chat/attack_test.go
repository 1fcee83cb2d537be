package chat_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/tokenizer/chat"
)

const limit = "!limit" // the expected result of a template that exceeds its steps or bytes

// attacks returns templates that try to use too much time or memory. Each one must end with
// the wanted text, of which up to 60 bytes are compared, or with limit, or with an error that
// contains what follows the "!".
func attacks() map[string]struct{ template, want string } {
	type a = struct{ template, want string }
	x := strings.Repeat
	const long = 240_000
	return map[string]a{
		"and":          {"{{ 1" + x(" and 1", long/6) + " }}", "1"},
		"or":           {"{{ 0" + x(" or 0", long/5) + " }}", "0"},
		"plus":         {"{{ 1" + x("+1", long/2) + " }}", "120001"},
		"plus strings": {"{{ 'a'" + x("+'a'", long/4) + " }}", limit},
		"tilde":        {"{{ 1" + x("~1", long/2) + " }}", x("1", 60)},
		"cmp":          {"{{ 1" + x("<=1", long/3) + " }}", "True"},
		"not":          {"{{ " + x("not ", long/4) + "1 }}", "!nested deeper"},
		"minus":        {"{{ " + x("-", long) + "1 }}", "!nested deeper"},
		"dot":          {"{{ messages" + x(".a", long/2) + " }}", "!has no attribute"},
		"idx":          {"{{ messages" + x("[0]", long/3) + " }}", "!has no"},
		"pipe":         {"{{ 1" + x("|int", long/4) + " }}", "1"},
		"tests":        {"{{ 1" + x(" is defined == 1 ", long/17) + " }}", "True"},
		"calls":        {"{{ dict" + x("()", long/2) + " }}", "!not callable"},
		"tern":         {"{{ 1" + x(" if 1 else 1", long/12) + " }}", "!nested deeper"},
		"tern2":        {"{{ 1" + x(" if 1", long/5) + " }}", "!nested deeper"},
		"paren":        {"{{ " + x("(", long) + " }}", "!nested deeper"},
		"brack":        {"{{ " + x("[", long) + " }}", "!nested deeper"},
		"brace":        {"{{ " + x("{1:", long/3) + " }}", "!nested deeper"},
		"targets":      {"{% set " + x("(", long) + "a = 1 %}", "!nested deeper"},
		"names":        {"{{ " + x("a", long) + " }}", ""},
		"signs":        {"{{ 1 " + x("$", long) + " }}", "!unexpected character"},
		"str":          {"{{ '" + x("a", long), "!no closing"},
		"backslashes":  {"{{ '" + x(`\\`, long/2) + "' }}", x(`\`, 60)},
		"comment":      {x("{# ", long/3), "!no closing"},
		"comments":     {x("{##}", long/4), ""},
		"raw":          {"{% raw %}" + x("{% ", long/3), "!no \"{% endraw"},
		"raw space":    {"{% raw %}" + x("{%"+x(" ", 500), 400), "!no \"{% endraw"},
		"braces":       {x("{", long-1) + " ", "!"},
		"space":        {x(" ", long) + "{%- if 1 %}x{% endif %}", "x"},
		"spaces":       {x("{%- set a = 1 -%}  ", long/19), ""},
		"lines":        {x("\n", long) + "{{ nope.x }}", "!line 240001: "},
		"unclosed":     {x("{% if 1 %}", long/10), "!nested deeper"},
		"ifs":          {x("{% if 1 %}{% endif %}", long/21), ""},
		"elifs":        {"{% if 0 %}" + x("{% elif 0 %}", long/12) + "{% endif %}", ""},
		"set names":    {manyNames(long), "3"},
		"keywords":     {"{{ dict(" + x("a=1,", long/4) + ") }}", "!given twice"},
		"adjacent":     {"{{ 'a'" + x(" 'a'", long/4) + " }}", x("a", 60)},
		"list":         {"{{ [" + x("1,", long/2) + "]|length }}", "120000"},
		"dict":         {"{{ {" + x("1:1,", long/4) + "}|length }}", "1"},
		"while":        {"{% while 1 %}{% endwhile %}", "!not supported"},
		"nul":          {"\x00{{ '\x00' }}", "\x00\x00"},
		"bytes":        {"\xff{{ '\xfe' }}", "\xff\xfe"},
		"include_self": {"{% include 'template' %}", "!not supported"},
		"debug":        {"{% debug %}", "!not supported"},

		"fors":       {x("{% for i in range(100000) %}", 90) + x("{% endfor %}", 90), limit},
		"fors60":     {x("{% for i in messages * 2 %}", 60) + x("{% endfor %}", 60), limit},
		"nest_range": {x("{% for i in range(10) %}", 30) + "x" + x("{% endfor %}", 30), limit},
		"range_many": {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", limit},
		"range_big":  {"{{ range(100000)|list|length }}", "100000"},
		"range_huge": {"{{ range(2000000000) }}", "!range of more than"},
		"range_neg":  {"{{ range(-9223372036854775808, 9223372036854775807) }}", "!beyond 64 bits"},
		"range_wide": {"{{ range(-9223372036854775807, 9223372036854775807, 9000000000000000000) }}", "!beyond 62 bits"},
		"loop_peek":  {"{% for i in range(100000) %}{{ loop.last }}{% endfor %}", x("False", 12)},
		"macro_rec":  {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "!more than 100 deep"},
		"macro_fan":  {"{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}", limit},
		"macro_big":  {"{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% else %}xxxxxxxx{% endif %}{% endmacro %}{{ f(40) }}", limit},
		"macro_deep": {"{% macro f(n) %}" + x("{% if 1 %}", 90) + "{{ f(n) }}" + x("{% endif %}", 90) + "{% endmacro %}{{ f(1) }}", "!deep"},
		"caller":     {"{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", "!not supported"},

		"dbl":          {"{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}", limit},
		"dbl_plus":     {"{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", limit},
		"dbl_list":     {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", limit},
		"dbl_nested":   {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}", limit},
		"dbl_json":     {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s|tojson }}", limit},
		"dbl_eq":       {"{% set ns = namespace(s=[1], t=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}", limit},
		"dbl_sort":     {"{% set ns = namespace(s='x') %}{% for i in range(20) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ([ns.s] * 1000)|sort|length }}", limit},
		"deep_list":    {"{% set ns = namespace(s=[1]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}", "!nested deeper than 100"},
		"deep_json":    {"{% set ns = namespace(s=[1]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s|tojson }}", "!nested deeper than 100"},
		"deep_eq":      {"{% set ns = namespace(s=[1], t=[1]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% set ns.t = [ns.t] %}{% endfor %}{{ ns.s == ns.t }}", "!nested deeper than 100"},
		"deep_map":     {"{% set ns = namespace(s=[1]) %}{% for i in range(100000) %}{% set ns.s = ns.s|map('int') %}{% endfor %}{{ ns.s|list }}", "[1]"},
		"ns_cyc":       {"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "!cannot be printed"},
		"ns_cyc2":      {"{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a|tojson }}", "!not JSON serializable"},
		"ns_cyc_eq":    {"{% set ns = namespace() %}{% set ns.a = [ns] %}{% set ms = namespace() %}{% set ms.a = [ms] %}{{ ns.a == ms.a }}", "False"},
		"ns_cyc_str":   {"{% set ns = namespace() %}{% set ns.a = {1: ns} %}{{ ns.a|string|length }}", "!cannot be printed"},
		"ns_cyc_join":  {"{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a|join }}", "!cannot be printed"},
		"ns_cyc_map":   {"{% set ns = namespace() %}{% set ns.a = ns %}{{ [ns]|map(attribute='" + x("a.", 50_000) + "a')|list|length }}", "1"},
		"setblock_big": {"{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set t %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = t %}{% endfor %}", limit},
		"scope_many":   {"{% for i in range(100000) %}{% set a = i %}{% set b = a %}{% endfor %}x", "x"},

		"slice_neg":   {"{{ 'abc'[::0] }}", "!step cannot be zero"},
		"slice_min":   {"{{ 'abc'[::-9223372036854775807 - 1] }}{{ 'abc'[-9223372036854775807:9223372036854775807:9223372036854775807] }}", "ca"},
		"indent":      {"{{ 'a\nb'|indent(2000000000) }}", limit},
		"indent_many": {"{{ ('a\n' * 1000000)|indent(1000, true) }}", limit},
		"strmul":      {"{{ 'a' * 2000000000 }}", limit},
		"strmul2":     {"{{ ('a' * 1000000) * 1000000 }}", limit},
		"strmul3":     {"{{ '' * 9223372036854775807 }}{{ 'a' * -9223372036854775807 }}x", "x"},
		"listmul":     {"{{ ([0] * 2000000000)|length }}", limit},
		"listmul2":    {"{{ ([0] * 1000000)|sort|length }}", "1000000"},
		"join":        {"{{ (['a'] * 1000000)|join('b' * 100000) }}", limit},
		"joinm":       {"{{ ('b' * 100000).join(['a'] * 1000000) }}", limit},
		"replace":     {"{{ ('a' * 30000).replace('', 'b' * 30000) }}", limit},
		"replacef":    {"{{ ('a' * 30000)|replace('a', 'b' * 30000) }}", limit},
		"splitbig":    {"{{ ('a' * 1000000).split('a')|length }}", "1000001"},
		"splitbig2":   {"{{ ('a ' * 1000000).split()|length }}{{ ('a ' * 1000000).rsplit(' ', 2)|length }}", "10000003"},
		"splitlines":  {"{{ ('\n' * 1000000).splitlines()|length }}", "1000000"},
		"titles":      {"{{ ('a ' * 1000000)|title|length }}", "2000000"},
		"sigmas":      {"{{ ('Σ' * 100000)|lower|length }}", "100000"},
		"sigmas2":     {"{{ ('A' ~ '.Σ' * 30000)|lower|length }}", "60001"},
		"sigmas3":     {"{{ ('A' ~ '.' * 30000 ~ 'Σ' * 300)|lower|length }}", "30301"},
		"expandtabs":  {"{{ '\t'.expandtabs(2000000000) }}", "!not supported"},
		"pow2":        {"{{ 10 ** 10 ** 10 ** 10 }}", "!not supported"},
		"product":     {"{{ 4294967296 * 4294967296 }}", "!beyond 64 bits"},
		"product2":    {"{{ (-9223372036854775807 - 1) * -1 }}", "!beyond 64 bits"},
		"minint":      {"{{ (-9223372036854775807 - 1) // -1 }}", "!beyond 64 bits"},
		"minint3":     {"{{ (-9223372036854775807 - 1) % -1 }}", "0"},
		"div0":        {"{{ 1 // 0 }}", "!division"},
		"round":       {"{{ 1.5|round(2000000000) }}", "!not supported"},
		"sort":        {"{{ ([3, 1, 2] * 100000)|sort|length }}", "300000"},
		"sort_texts":  {"{% set a = 'x' * 1000000 %}{% set ns = namespace(l=[]) %}{% for i in range(20) %}{% set ns.l = ns.l + [a ~ i] %}{% endfor %}{{ ns.l|sort(case_sensitive=true)|length }}", "20"},
		"in_list":     {"{% set l = range(100000)|list %}{% for i in l %}{{ -1 in l }}{% endfor %}", limit},
		"in_text":     {"{% set l = 'a' * 1000000 %}{% for i in range(100000) %}{{ 'b' in l }}{% endfor %}", limit},
		"index_text":  {"{% set l = 'é' * 1000000 %}{% for i in range(100000) %}{{ l[999999] }}{% endfor %}", limit},
		"len_text":    {"{% set l = 'é' * 10000000 %}{% for i in range(100000) %}{{ l|length }}{% endfor %}", limit},
		"eq_text":     {"{% set l = 'a' * 10000000 %}{% set m = 'a' * 10000000 %}{% for i in range(100000) %}{{ l == m }}{% endfor %}", limit},
		"strip_text":  {"{% set l = ' ' * 10000000 %}{% for i in range(100000) %}{{ l.strip() }}{% endfor %}", limit},
		"strftime":    {"{{ strftime_now('%B' * 20000000) }}", limit},
		"strftime2":   {"{{ strftime_now('%') }}", "!not supported"},
		"json_indent": {"{{ [[[1]]]|tojson(indent=2000000000) }}", "!indent"},
		"hugeoutput":  {"{% set l = 'a' * 1000000 %}{% for i in range(100) %}{{ l }}{% endfor %}", limit},
		"errors":      {"{{ raise_exception('a' * 10000000) }}", "!aaa"},
		"undefineds":  {"{% for i in range(100000) %}{% set a = nope %}{% endfor %}{{ ({}['a' * 1000000] ~ '') * 1000000 }}", ""},
		"lipsum":      {"{{ lipsum(2000000000) }}", "!not supported"},
		"regex":       {"{{ 'a'|regex_replace('(a+)+$', '') }}", "!not supported"},
		"random":      {"{{ [1]|random }}", "!not supported"},
		"urlize":      {"{{ 'a'|urlize }}", "!not supported"},
		"attr":        {"{{ messages[0].__class__.__mro__ }}", "!not supported"},
		"attr2":       {"{{ messages[0].__class__.mro() }}", "!not supported"},
		"update":      {"{{ messages[0].update({'a': messages}) }}", "!not supported"},
		"self":        {"{{ self }}", "!not supported"},
		"lm":          {"{{ __line(1) }}", "!is undefined"},
		"call_str":    {"{{ 'a'() }}", "!not callable"},
		"eval":        {"{{ eval('1') }}", "!is undefined"},
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n-40; i++ {
		b.WriteString("{%set a")
		for j := i; j > 0; j /= 26 {
			b.WriteByte(byte('a' + j%26))
		}
		b.WriteString("=3%}")
	}
	b.WriteString("{{ ab }}")
	return b.String()
}

// TestAttacks checks that steps and bytes bound every template, and that the memory that is
// really allocated is not much more than the limit. It does not depend on time.
func TestAttacks(t *testing.T) {
	sample.Long(t)
	o := chat.Options{Limits: chat.Limits{Steps: 5_000_000, Bytes: 128 << 20, Time: time.Hour}}
	all := attacks()
	for _, name := range sample.Of(t, t.Name(), slices.Sorted(maps.Keys(all)), 4) {
		a := all[name]
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := chat.Render(t.Context(), a.template, []chat.Message{{Role: "user", Content: "hi"}}, o)
			runtime.ReadMemStats(&after)
			assert.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(8*o.Limits.Bytes), "bytes allocated") // buffers grow by copying
			var e *chat.Error
			require.True(t, err == nil || errors.As(err, &e), "%T", err)
			if e != nil {
				assert.NotContains(t, e.Error(), "internal error")
				assert.Less(t, len(e.Error()), 700)
			}
			switch want, failing := strings.CutPrefix(a.want, "!"); {
			case a.want == limit:
				assert.ErrorIs(t, err, chat.ErrLimit, "got %.60q", got)
			case failing:
				if assert.Error(t, err, "got %.60q", got) {
					assert.Contains(t, err.Error(), want)
					assert.NotErrorIs(t, err, chat.ErrLimit)
				}
			default:
				if assert.NoError(t, err) {
					assert.Equal(t, want, got[:min(len(got), 60)])
				}
			}
		})
	}
}

// TestStepsGrowLinearly checks that a template takes steps in proportion to its length.
func TestStepsGrowLinearly(t *testing.T) {
	for _, name := range []string{"and", "plus", "tilde", "cmp", "pipe", "comments", "spaces", "ifs", "elifs", "adjacent", "list", "dict", "backslashes", "raw space"} {
		template := attacks()[name].template
		_, err := chat.Render(t.Context(), template, nil, chat.Options{Limits: chat.Limits{Steps: int64(4*len(template) + 1000)}})
		assert.NotErrorIs(t, err, chat.ErrLimit, name)
	}
}

// TestRenderStops checks that a context ends a rendering in the middle of any operation.
func TestRenderStops(t *testing.T) {
	endless := map[string]string{
		"loops":  attacks()["fors"].template,
		"macros": attacks()["macro_fan"].template,
		"sort":   "{% for i in range(100000) %}{% set x = (range(100000)|list + [1])|sort %}{% endfor %}",
		"text":   attacks()["in_text"].template,
	}
	for name, template := range endless {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(30*time.Millisecond, func() { cancel(nil) })
		_, err := chat.Render(ctx, template, nil, chat.Options{Limits: chat.Limits{Steps: 1 << 50, Bytes: 1 << 50, Time: time.Hour}})
		assert.ErrorIs(t, err, context.Canceled, name)
		_, err = chat.Render(t.Context(), template, nil, chat.Options{Limits: chat.Limits{Steps: 1 << 50, Bytes: 1 << 50, Time: 30 * time.Millisecond}})
		assert.ErrorIs(t, err, chat.ErrLimit, name)
		assert.ErrorContains(t, err, "longer than 30ms", name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := chat.Render(ctx, "x", nil, chat.Options{})
	assert.ErrorIs(t, err, context.Canceled)
}
