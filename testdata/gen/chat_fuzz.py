"""Writes random chat templates with what jinja2 makes of them.

    python testdata/gen/chat_fuzz.py COUNT SEED OUT.json

Needs jinja2 alone (requirements.txt has the version). The environment is that
of Hugging Face transformers for chat templates: ImmutableSandboxedEnvironment
with trim_blocks, lstrip_blocks and loop controls, its tojson, raise_exception,
strftime_now at a fixed time. Templates are programs of a grammar of what
tokenizer/chat supports; it knows the types of expressions and now and then
forgets them. See README.md.
"""

import datetime
import json
import random
import re
import sys
import warnings

import jinja2
import jinja2.ext
import jinja2.sandbox

MESSAGES = [
    {"role": "system", "content": "Be  kind.\n"},
    {"role": "user", "content": " Héllo <b>wörld</b>, it's 3\t\"o'clock\"\n\nnow "},
    {"role": "assistant", "content": "日本 ok"},
    {"role": "user", "content": ""},
]
NOW = datetime.datetime(2024, 2, 9, 7, 5, 3)

WORDS = ["a", "b", "ab", "user", "role", "content", "x y", "A-b c", "Ünï", "", " ", "3", "-7", "1.5", "ß", "ΣΑΣ", "{{", "%}", "a,b,,c", "\\n", "it's", '"q"', "\t z \n", "<&>", "é", "0x1f", "ǆ"]
NAMES = ["m", "n", "s", "t", "l", "d", "i", "j", "x"]


class Gen:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.depth = 0
        self.loops = 0
        self.vars = {"str": [], "int": [], "list": [], "dict": [], "any": []}

    def pick(self, *xs):
        return self.r.choice(xs)

    def string(self, s):
        q = self.pick("'", '"')
        return q + s.replace("\\", "\\\\").replace(q, "\\" + q).replace("\n", self.pick("\\n", "\n")).replace("\t", "\\t") + q

    def var(self, kind):
        names = self.vars[kind]
        return self.r.choice(names) if names and self.r.random() < 0.95 else self.pick("nope", "messages", "loop", "x", "bos_token")

    def expr(self, kind=None):
        if self.r.random() < 0.06:
            kind = None
        kind = kind or self.pick("str", "str", "int", "int", "list", "dict", "bool", "float", "none", "any")
        self.depth += 1
        try:
            if self.depth > 4:
                return self.leaf(kind)
            return getattr(self, kind)()
        finally:
            self.depth -= 1

    def leaf(self, kind):
        if kind in self.vars and self.vars[kind] and self.r.random() < 0.5:
            return self.var(kind)
        return {
            "str": lambda: self.string(self.r.choice(WORDS)),
            "int": lambda: str(self.pick(0, 1, 2, 3, 5, 7, 10, -1, -2, -3)),
            "float": lambda: self.pick("0.5", "1.0", "2.5", "-1.25", "1000.0", "3.14159", "0.1"),
            "bool": lambda: self.pick("true", "false", "True"),
            "none": lambda: "none",
            "list": lambda: self.pick("messages", "[]", "[1, 2, 3]", "['a', 'B', 'c']", "(1, 'x')", "(range(4)|list)", "[[1, 2], [3, 4]]", "messages[1:]"),
            "dict": lambda: self.pick("messages[0]", "messages[-1]", "{}", "{'a': 1, 'b': 'x'}", "{'B': [1], 'a': none}"),
            "any": lambda: self.var("any"),
        }[kind]()

    def any(self):
        return self.pick(
            lambda: self.leaf("any"),
            lambda: self.leaf("any"),
            lambda: f"({self.expr()} if {self.expr('bool')} else {self.expr()})",
            lambda: f"{self.atom('list')}[{self.expr('int')}]",
            lambda: f"{self.atom('dict')}.{self.pick('a', 'role', 'content', 'items', 'x')}",
            lambda: f"{self.atom('dict')}[{self.expr('str')}]",
            lambda: f"{self.atom('list')}|{self.pick('first', 'last')}",
            lambda: f"{self.atom('dict')}.get({self.expr('str')})",
            lambda: f"({self.expr()} {self.pick('and', 'or')} {self.expr()})",
            lambda: f"({self.expr()})|default({self.expr()}{self.pick('', ', true')})",
            lambda: f"({self.expr()} if {self.expr('bool')})",
            lambda: f"({self.expr()} {self.pick('+', '-', '*', '%', '/', '//')} {self.expr()})",
        )()

    def atom(self, kind):
        e = self.expr(kind)
        return e if re.fullmatch(r"\w+|\[[^\[\]]*\]|'[^']*'", e) and not e[0].isdigit() else f"({e})"

    def str(self):
        s = lambda: self.atom("str")
        return self.pick(
            lambda: self.leaf("str"),
            lambda: self.leaf("str"),
            lambda: f"messages[{self.pick(0, 1, 2, 3)}].{self.pick('role', 'content')}",
            lambda: f"messages[{self.pick(0, 1, 2, 3)}]['{self.pick('role', 'content')}']",
            lambda: f"{s()} + {self.expr('str')}",
            lambda: f"{s()} ~ {self.atom(None)} ~ {s()}",
            lambda: f"{s()} * {self.leaf('int')}",
            lambda: f"{s()}[{self.expr('int')}]",
            lambda: f"{s()}[{self.pick('', self.leaf('int'))}:{self.pick('', self.leaf('int'))}{self.pick('', '', ':' + self.leaf('int'))}]",
            lambda: f"{s()}|{self.pick('upper', 'lower', 'trim', 'capitalize', 'title', 'string', 'reverse', 'tojson', 'first', 'last', 'length')}",
            lambda: f"{s()}|replace({self.expr('str')}, {self.expr('str')}{self.pick('', ', 1')})",
            lambda: f"{s()}|{self.pick('indent', 'indent(2)', 'indent(2, true)', 'list', 'trim(chr)'.replace('chr', chr(39) + 'a ' + chr(39)))}",
            lambda: f"{s()}.{self.pick('strip', 'lstrip', 'rstrip', 'upper', 'lower', 'title', 'capitalize', 'splitlines', 'split')}()",
            lambda: f"{s()}.{self.pick('strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix', 'split', 'rsplit', 'find', 'startswith', 'endswith')}({self.expr('str')})",
            lambda: f"{s()}.{self.pick('split', 'rsplit')}({self.expr('str')}, {self.leaf('int')})",
            lambda: f"{s()}.replace({self.expr('str')}, {self.expr('str')})",
            lambda: f"{s()}.join({self.expr('list')})",
            lambda: f"{self.atom('list')}|join{self.pick('', '(' + self.expr('str') + ')')}",
            lambda: f"{self.atom('list')}|map(attribute='{self.pick('role', 'content', 'x', '0')}')|join({self.expr('str')})",
            lambda: f"{self.atom(None)}|tojson{self.pick('', '(indent=2)', '(ensure_ascii=false)')}",
            lambda: f"{self.atom(None)}|string",
            lambda: f"strftime_now('{self.pick('%Y-%m-%d', '%d %b %Y', '%B')}')",
            lambda: f"({self.expr('str')} if {self.expr('bool')} else {self.expr('str')})",
            lambda: f"{s()}{s()}" if self.r.random() < 0.1 else f"'a' 'b'",
            lambda: "loop.index ~ ''" if self.loops else "eos_token",
            lambda: f"{self.atom('dict')}.role",
        )()

    def int(self):
        i = lambda: self.atom("int")
        return self.pick(
            lambda: self.leaf("int"),
            lambda: self.leaf("int"),
            lambda: f"{i()} {self.pick('+', '-', '*', '//', '%')} {i()}",
            lambda: f"-{i()}",
            lambda: f"{self.atom(self.pick('list', 'str', 'dict'))}|{self.pick('length', 'count')}",
            lambda: f"{self.atom(self.pick('str', 'float', 'int', 'bool'))}|int{self.pick('', '(7)')}",
            lambda: f"{i()}|{self.pick('float', 'string')}",
            lambda: self.pick("loop.index", "loop.index0", "loop.length", "loop.revindex", "loop.revindex0") if self.loops else "1000",
            lambda: f"({self.expr('int')} if {self.expr('bool')} else {self.expr('int')})",
            lambda: f"{self.atom('str')}.find({self.leaf('str')})",
        )()

    def float(self):
        return self.pick(
            lambda: self.leaf("float"),
            lambda: f"{self.atom('int')} / {self.atom('int')}",
            lambda: f"{self.atom(self.pick('int', 'float'))} {self.pick('+', '-', '*', '/')} {self.atom('float')}",
            lambda: f"{self.atom(self.pick('str', 'int'))}|float{self.pick('', '(1.5)')}",
        )()

    def bool(self):
        return self.pick(
            lambda: self.leaf("bool"),
            lambda: f"{self.atom(None)} {self.pick('==', '!=')} {self.atom(None)}",
            lambda: f"{self.atom('str')} {self.pick('==', '!=', '<', '>', 'in', 'not in')} {self.atom('str')}",
            lambda: f"{self.atom('int')} {self.pick('==', '!=', '<', '>', '<=', '>=')} {self.atom(self.pick('int', 'float'))}",
            lambda: f"{self.atom('int')} < {self.atom('int')} <= {self.atom('int')}",
            lambda: f"{self.atom(None)} {self.pick('in', 'not in')} {self.atom(self.pick('list', 'dict'))}",
            lambda: f"{self.pick('nope', self.atom(None))} is {self.pick('', 'not ')}{self.pick('defined', 'none', 'string', 'number', 'mapping', 'sequence', 'iterable', 'true', 'false', 'undefined', 'integer', 'float', 'boolean', 'odd', 'even', 'divisibleby 2', 'eq 1', 'in [1, 2]')}",
            lambda: f"not {self.expr('bool')}",
            lambda: f"{self.expr('bool')} {self.pick('and', 'or')} {self.expr('bool')}",
            lambda: f"{self.atom('str')}.{self.pick('startswith', 'endswith')}({self.expr('str')})",
            lambda: self.pick("loop.first", "loop.last") if self.loops else "true",
            lambda: f"({self.expr()})|default(false)",
        )()

    def none(self):
        return "none"

    def list(self):
        l = lambda: self.atom("list")
        return self.pick(
            lambda: self.leaf("list"),
            lambda: self.leaf("list"),
            lambda: "[" + ", ".join(self.expr() for _ in range(self.r.randint(0, 3))) + "]",
            lambda: "(" + "".join(self.expr() + ", " for _ in range(self.r.randint(0, 3))) + ")",
            lambda: f"{l()} + {l()}",
            lambda: f"{l()} * {self.leaf('int')}",
            lambda: f"{l()}[{self.pick('', self.leaf('int'))}:{self.pick('', self.leaf('int'))}{self.pick('', '', ':' + self.leaf('int'))}]",
            lambda: f"{l()}|{self.pick('list', 'sort', 'reverse|list', 'sort(reverse=true)', 'sort(case_sensitive=true)')}",
            lambda: f"{l()}|{self.pick('select', 'reject')}{self.pick('', '(' + chr(39) + self.pick('string', 'number', 'odd', 'defined') + chr(39) + ')')}|list",
            lambda: f"messages|{self.pick('selectattr', 'rejectattr')}('role', '{self.pick('eq', 'equalto', 'ne', 'in')}', {self.expr('str')})|list",
            lambda: f"messages|{self.pick('map(attribute=self)', 'sort(attribute=self)', 'selectattr(self)|list').replace('self', chr(39) + self.pick('role', 'content') + chr(39))}|list",
            lambda: f"{l()}|map({self.string(self.pick('upper', 'string', 'length', 'int', 'tojson', 'first'))})|list",
            lambda: f"{self.atom('str')}.split({self.pick('', self.expr('str'))})",
            lambda: f"{self.atom('str')}|list",
            lambda: f"{self.atom('dict')}.{self.pick('keys', 'values', 'items')}()|list",
            lambda: f"{self.atom('dict')}|{self.pick('items|list', 'dictsort', 'list', 'dictsort(case_sensitive=true)')}",
            lambda: f"range({self.leaf('int')}{self.pick('', ', ' + self.leaf('int'), ', ' + self.leaf('int') + ', ' + self.leaf('int'))})|list",
        )()

    def dict(self):
        return self.pick(
            lambda: self.leaf("dict"),
            lambda: self.leaf("dict"),
            lambda: "{" + ", ".join(f"{self.expr(self.pick('str', 'str', 'int', None))}: {self.expr()}" for _ in range(self.r.randint(0, 3))) + "}",
            lambda: f"dict(a={self.expr()})",
            lambda: f"messages[{self.leaf('int')}]",
        )()

    def text(self):
        return self.pick("\n", " ", "x", "<|im|>", "  \n", "a b", "\n  ", "")

    def tag(self, inside):
        return "{%" + self.pick("", "", "-", "+") + " " + inside + " " + self.pick("", "", "-") + "%}"

    def out(self, e):
        return "{{" + self.pick("", "", "-") + " " + e + " " + self.pick("", "", "-") + "}}"

    def body(self, n=None):
        saved = {k: list(v) for k, v in self.vars.items()}
        out = "".join(self.text() + self.statement() for _ in range(n or self.r.randint(1, 3)))
        self.vars = saved
        return out + self.text()

    def statement(self):
        self.depth += 1
        try:
            if self.depth > 4:
                return self.out(self.expr())
            return self.pick(
                lambda: self.out(self.expr()), lambda: self.out(self.expr("str")), lambda: self.out(self.expr("int")), lambda: self.out(self.expr("list")),
                self.set, self.set, self.if_, self.for_, self.for_, self.other,
            )()
        finally:
            self.depth -= 1

    def set(self):
        name = self.r.choice(NAMES)
        kind = self.pick("str", "int", "list", "dict", "any")
        choice = self.r.random()
        if choice < 0.7:
            s = self.tag(f"set {name} = {self.expr(kind)}")
        elif choice < 0.8:
            s = self.tag(f"set {name}") + self.body(1) + self.tag("endset")
            kind = "str"
        elif choice < 0.9:
            s = self.tag(f"set ns = namespace({name}={self.expr(kind)})") + self.tag(f"set ns.{name} = {self.pick('ns.' + name, self.expr(kind))}")
            self.vars["any"].append("ns." + name)
            return s
        else:
            other = self.r.choice(NAMES)
            s = self.tag(f"set {name}, {other} = {self.pick(self.expr() + ', ' + self.expr(), self.expr('list'))}")
            kind = "any"
        self.vars[kind].append(name)
        return s

    def if_(self):
        s = self.tag("if " + self.expr("bool")) + self.body()
        if self.r.random() < 0.3:
            s += self.tag("elif " + self.expr("bool")) + self.body(1)
        if self.r.random() < 0.5:
            s += self.tag("else") + self.body(1)
        return s + self.tag("endif")

    def for_(self):
        name = self.r.choice(NAMES)
        target, over, kind = self.pick(
            (name, self.expr("list"), "any"), (name, "messages", "dict"), (name, f"range({self.leaf('int')})", "int"), (name, self.expr("str"), "str"),
            (f"{name}, x", self.expr("dict") + self.pick(".items()", "|items", "|dictsort"), "any"), (name, self.expr("dict"), "str"),
        )
        s = self.tag(f"for {target} in {over}" + (f" if {self.expr('bool')}" if self.r.random() < 0.2 else ""))
        saved = {k: list(v) for k, v in self.vars.items()}
        self.vars[kind].append(name)
        self.loops += 1
        s += self.body()
        if self.r.random() < 0.2:
            s += self.tag("if " + self.expr("bool")) + self.tag(self.pick("break", "continue")) + self.tag("endif") + self.text()
        self.loops -= 1
        self.vars = saved
        if self.r.random() < 0.2:
            s += self.tag("else") + self.body(1)
        return s + self.tag("endfor")

    def other(self):
        choice = self.r.random()
        if choice < 0.15:
            return "{# " + self.pick("c", "{{ x }}", "\n") + self.pick(" #}", " -#}")
        if choice < 0.2:
            return self.tag("if " + self.expr("bool")) + self.out(f"raise_exception({self.string(self.r.choice(WORDS))})") + self.tag("endif")
        if choice < 0.3:
            return self.out(f"{self.atom(None)}|safe ~ {self.atom('str')}")
        if choice < 0.33:
            return self.out(f"{self.atom('dict')}.pop('a')")
        loops, self.loops = self.loops, 0
        saved = {k: list(v) for k, v in self.vars.items()}
        name = self.pick("f", "g")
        self.vars["any"].append("p")
        self.vars["any"].append("q")
        s = self.tag(f"macro {name}(p, q={self.expr()})") + self.body(1) + self.tag("endmacro")
        self.vars = saved
        self.loops = loops
        call = f"{name}({self.expr()}{self.pick('', ', ' + self.expr(), ', q=' + self.expr())})"
        return s + self.out(call)


def environment():
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def main():
    warnings.simplefilter("ignore")  # of the Python that jinja2 makes
    count, seed, dest = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    env = environment()
    cases = []
    n = 0
    while len(cases) < count:
        source = Gen(f"{seed}/{n}").body()
        n += 1
        if len(source) > 600:
            continue
        case = {"t": source}
        try:
            env.from_string(source)
        except TypeError:
            continue  # jinja2 computes constants when it compiles, even those that are never reached
        except jinja2.exceptions.TemplateError:
            pass
        try:
            text = env.from_string(source).render(messages=json.loads(json.dumps(MESSAGES)), bos_token="<s>", eos_token="</s>", add_generation_prompt=True)
            if len(text) > 600 or re.search(r" at 0x[0-9a-f]+>|<function|<class", text):
                continue  # an address
            case["x"] = text
        except jinja2.exceptions.TemplateError as e:
            if type(e) is jinja2.exceptions.TemplateError:
                case["raised"] = str(e)
            else:
                case["error"] = type(e).__name__
        except Exception as e:
            case["error"] = type(e).__name__
        # Half of all random programs fail; a tenth is enough of them.
        if "error" in case and random.Random(source).random() < 0.85:
            continue
        cases.append(case)
    with open(dest, "w") as out:
        out.write('{"jinja2": %s, "messages": %s, "cases": [\n' % (json.dumps(jinja2.__version__), json.dumps(MESSAGES)))
        out.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases))
        out.write("\n]}\n")
    print(f"{dest}: {len(cases)} of {n} templates, {sum('x' in c for c in cases)} rendered")


if __name__ == "__main__":
    main()
