"""Writes testdata/tokenizer/chat_models.json: conversations as transformers renders them by templates of many models' kinds.

    python chat_models.py ../tokenizer/chat_models.json [TEMPLATE.jinja ...]

The templates are our own: each makes the turns of a model family by the constructs that the family's template has, with
other sentences. With files of published templates, those are taken instead. See README.md beside this file for the format.
"""

import datetime
import json
import os
import sys

import transformers
from chat import CONVERSATIONS, m
from transformers.utils.chat_template_utils import _compile_jinja_template

NOW = datetime.datetime(2024, 2, 9, 7, 5, 3)
THOUGHTS = {
    "thoughts": [m("user", "2+2?"), m("assistant", "<think>\nEasy.\n</think>\n\n4"), m("user", "And 3+3?"), m("assistant", "<think>\n\nSum: 6\n</think>\n\n\n6")],
    "no thinking": [m("system", "Short. /no_think  "), m("user", "Hi /no_think"), m("assistant", "\n\nHello")],
    "developer": [m("developer", "Be exact."), m("user", "x"), m("assistant", "y")],
    "channels": [m("user", "x"), m("assistant", "<|channel|>final<|message|>y"), m("user", "z")],
}

TEMPLATES = {
    "llama3": r"""{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now("%d %b %Y") %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set first = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set first = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if builtin_tools is defined or tools is not none %}{{- "Tools follow.\n" }}{%- endif %}
{{- "It is " + date_string + ".\n\n" + first + "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
""",
    "mistral": r"""{%- if messages[0]["role"] == "system" %}
    {%- set before = messages[0]["content"] %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set rest = messages %}
{%- endif %}
{%- set asked = rest | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.turn = 0 %}
{%- for message in rest %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.turn % 2 == 0) %}
            {{- raise_exception("user and assistant take turns") }}
        {%- endif %}
        {%- set ns.turn = ns.turn + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in rest %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == asked[-1]) %}{{- "[AVAILABLE_TOOLS]" }}{%- endif %}
        {%- if loop.last and before is defined %}
            {{- "[INST]" + before + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST]" + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- message["content"] + eos_token }}
    {%- else %}
        {{- raise_exception("there is no role " + message.role + " here") }}
    {%- endif %}
{%- endfor %}
""",
    "qwen2": r"""{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
{%- else %}
    {{- '<|im_start|>system\nAnswer well.<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\n<tool_response>\n' + message.content + '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
""",
    "qwen3": r"""{%- if messages[0].role == 'system' %}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- endif %}
{%- set ns = namespace(searching=true, last=messages | length - 1) %}
{%- for message in messages[::-1] %}
    {%- set at = (messages | length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not (message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = at %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content, thoughts = message.content, '' %}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none %}
            {%- set thoughts = message.reasoning_content %}
        {%- elif '</think>' in message.content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}
            {%- set thoughts = message.content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and thoughts)) %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}
""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system here') }}{% endif %}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('user and assistant take turns') }}{% endif %}
{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}
{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}""",
    "gemma3": r"""{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set before = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set before = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set rest = messages[1:] -%}
{%- else -%}
    {%- set before = "" -%}
    {%- set rest = messages -%}
{%- endif -%}
{%- for message in rest -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception("user and assistant take turns") }}{%- endif -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + (before if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}{{ item['text'] | trim }}{%- endfor -%}
    {%- else -%}
        {{ raise_exception("what content is this?") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}
""",
    "phi3": """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %}""",
    "granite": r"""{%- if tools and not available_tools -%}{%- set available_tools = tools -%}{%- endif -%}
{%- if messages[0]['role'] == 'system' %}
     {%- set before = messages[0]['content'] %}
     {%- set rest = messages[1:] %}
 {%- else %}
     {%- set before = "Today is " + strftime_now('%B %d, %Y') + "." %}
     {%- if available_tools and documents %}{%- set before = before + " Both." %}
     {%- elif documents %}{%- set before = before + " Documents." %}
     {%- elif thinking %}{%- set before = before + " Think." %}
     {%- else %}{%- set before = before + " Answer." %}{%- endif %}
     {%- if 'citations' in controls and documents %}{%- set before = before + "\nCite." %}{%- endif %}
     {%- set rest = messages %}
 {%- endif %}
 {{- '<|start_of_role|>system<|end_of_role|>' + before + '<|end_of_text|>
' }}
 {%- for message in rest %}
     {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + '<|end_of_text|>
' }}
     {%- if loop.last and add_generation_prompt %}
         {{- '<|start_of_role|>assistant' }}
             {%- if controls %}{{- ' ' + controls | tojson()}}{%- endif %}
         {{- '<|end_of_role|>' }}
     {%- endif %}
 {%- endfor %}
""",
    "gpt-oss": r"""{%- macro types(spec, needed) -%}
    {%- if spec.type == "array" -%}{{- types(spec["items"]) + "[]" }}{%- else -%}{{- spec.type }}{%- endif -%}
{%- endmacro -%}
{%- macro opening() -%}
    {%- if model_identity is not defined %}{%- set model_identity = "You are a model." %}{%- endif %}
    {{- model_identity + "\nDate: " + strftime_now("%Y-%m-%d") + "\n\n" }}
    {%- if reasoning_effort is not defined %}{%- set reasoning_effort = "medium" %}{%- endif %}
    {{- "Effort: " + reasoning_effort + "\n\n" }}
    {%- if builtin_tools %}
        {%- set have = namespace(browser=false) %}
        {%- for tool in builtin_tools %}{%- if tool == "browser" %}{%- set have.browser = true %}{%- endif %}{%- endfor %}
    {%- endif -%}
    {{- "# Channels: analysis, final." }}
    {%- if tools -%}{{- "\nAnd commentary." }}{%- endif -%}
{%- endmacro -%}
{{- "<|start|>system<|message|>" }}
{{- opening() }}
{{- "<|end|>" }}
{%- if messages[0].role == "developer" or messages[0].role == "system" %}
    {%- set told = messages[0].content %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set told = "" %}
    {%- set rest = messages %}
{%- endif %}
{%- if told or tools %}
    {{- "<|start|>developer<|message|>" }}
    {%- if told %}{{- "# Told\n\n" }}{{- told }}{{- "\n\n" }}{%- endif %}
    {{- "<|end|>" }}
{%- endif %}
{%- set call = namespace(name=none) %}
{%- for message in rest -%}
    {%- if message.role == 'assistant' -%}
        {%- if "content" in message %}
            {%- if "<|channel|>analysis<|message|>" in message.content or "<|channel|>final<|message|>" in message.content %}
                {{- raise_exception("a message has channels") }}
            {%- endif %}
        {%- endif %}
        {%- if "tool_calls" in message %}
            {%- set call.name = message.tool_calls[0].name %}
        {%- elif loop.last and not add_generation_prompt %}
            {%- if "thinking" in message %}{{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}{%- endif %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|return|>" }}
        {%- else %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|end|>" }}
            {%- set call.name = none %}
        {%- endif %}
    {%- elif message.role == 'tool' -%}
        {%- if call.name is none %}{{- raise_exception("there was no call") }}{%- endif %}
        {{- "<|start|>functions." + call.name + "<|message|>" + message.content | tojson + "<|end|>" }}
    {%- elif message.role == 'user' -%}
        {{- "<|start|>user<|message|>" + message.content + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start|>assistant
{%- endif -%}
""",
    "smollm3": r"""{# defaults #}
{%- if enable_thinking is not defined -%}{%- set enable_thinking = true -%}{%- endif -%}
{# mode #}
{%- if enable_thinking -%}{%- set mode = "/think" -%}{%- else -%}{%- set mode = "/no_think" -%}{%- endif -%}
{{- "<|im_start|>system\n" -}}
{%- if messages[0].role == "system" -%}
    {%- set before = messages[0].content -%}
    {%- if "/no_think" in before -%}{%- set mode = "/no_think" -%}{%- elif "/think" in before -%}{%- set mode = "/think" -%}{%- endif -%}
    {%- set own = before.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{%- if "/system_override" in before -%}
    {{- own.replace("/system_override", "").rstrip() -}}
{%- else -%}
    {%- set today = strftime_now("%d %B %Y") -%}
    {{- "## Data\n\nToday: " ~ today ~ "\nMode: " + mode + "\n\n## Own\n\n" -}}
    {%- if own -%}{{- own + "\n\n" -}}{%- elif mode == "/think" -%}{{- "Think first.\n\n" -}}{%- else -%}{{- "Answer.\n\n" -}}{%- endif -%}
    {%- if xml_tools or python_tools or tools -%}{{- "### Tools\n\n" -}}{%- endif -%}
{%- endif -%}
{{- "<|im_end|>\n" -}}
{# turns #}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|im_start|>" + message.role + "\n" + content + "<|im_end|>\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if mode == "/think" -%}
            {{ "<|im_start|>assistant\n" + content.lstrip("\n") + "<|im_end|>\n" }}
        {%- else -%}
            {{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n" + content.lstrip("\n") + "<|im_end|>\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- elif message.role == "tool" -%}
        {{ "<|im_start|>" + "user\n" + content + "<|im_end|>\n" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {%- if mode == "/think" -%}{{ "<|im_start|>assistant\n" }}{%- else -%}{{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n" }}{%- endif -%}
{%- endif -%}
""",
}


def main(dest, files):
    templates = {os.path.basename(f): open(f, encoding="utf-8").read() for f in files} or TEMPLATES
    conversations = {**CONVERSATIONS, **THOUGHTS}
    cases = []
    for name, source in templates.items():
        t = _compile_jinja_template(source)
        t.environment.globals["strftime_now"] = lambda form: NOW.strftime(form)
        t.globals["strftime_now"] = t.environment.globals["strftime_now"]
        for told, messages in conversations.items():
            for prompt in (True, False):
                case = {"template": name, "conversation": told, "add_generation_prompt": prompt}
                try:  # as apply_chat_template calls it
                    case["text"] = t.render(messages=messages, tools=None, documents=None, add_generation_prompt=prompt, bos_token="<s>", eos_token="</s>")
                except Exception as e:
                    case["error"] = str(e) or type(e).__name__
                cases.append(case)
    data = {"transformers": transformers.__version__, "bos": "<s>", "eos": "</s>", "templates": templates, "conversations": conversations, "cases": cases}
    with open(dest, "w") as f:
        json.dump(data, f, indent=0)
        f.write("\n")
    print(len(templates), "templates,", len(cases), "cases,", sum("error" in c for c in cases), "errors")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
