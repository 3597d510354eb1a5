"""Writes cases.json: small templates with what Python's jinja2 makes of them.

Run it with jinja2 3.1 in this folder. The environment is set up as in transformers: trim_blocks,
lstrip_blocks, break and continue, and tojson as json.dumps.
"""
import datetime
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import SandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def refuse(message):
    raise jinja2.TemplateError(message)


env = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
    x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
env.filters["from_json"] = json.loads
env.globals["raise_exception"] = refuse
env.globals["strftime_now"] = lambda f: datetime.datetime(2026, 8, 18, 12, 34, 56).strftime(f)

CONTEXT = {
    "n": 7, "f": 2.5, "s": "Hello, wörld 🦙", "e": "", "t": True, "z": None, "l": [3, 1, 2], "nested": [[1, 2], [3, [4]]],
    "d": {"b": 1, "a": {"x": [1, 2.0, None, True, "q\"'\n"]}, "C": "é\u0001\u007f<&>"},
    "msgs": [{"role": "user", "content": "hi", "n": 2}, {"role": "assistant", "content": "yo", "n": 1}, {"role": "user", "content": "bye"}],
    "text": "  <think>a b</think>\n\nline one\nline two\r\nthree  ",
}

EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2 ~ '|' ~ -7 // 2 ~ '|' ~ 7 % 3 ~ '|' ~ -7 % 3 ~ '|' ~ 7 % -3
7.5 // 2 ~ '|' ~ -7.5 % 2 ~ '|' ~ 2 ** 10 ~ '|' ~ 2 ** -1 ~ '|' ~ -2 ** 2
2 ** 3 ** 2
(1 ~ 2) | int + 3
'a' + 'b' ~ 1 - 1
'a' ~ 1 ~ none ~ true ~ 1.5
1e3 ~ ' ' ~ 1.0 ~ ' ' ~ 1e16 ~ ' ' ~ 1e-5 ~ ' ' ~ 0.1 ~ ' ' ~ 123456789.123 ~ ' ' ~ 1e100 ~ ' ' ~ 0.0001
0x1f ~ ' ' ~ 1_000 ~ ' ' ~ 0b101 ~ ' ' ~ 0o17
true + true
1 == 1.0 and true == 1 and 'a' != 1
1 < 2 < 3 and not 1 < 2 > 3
'a' < 'b' <= 'b'
[1, 2] < [1, 3]
[1, [2]] == [1, [2]]
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
'ell' in s and 'x' not in s and 3 in l and 'b' in d and not 'q' in d
1 if t else 2
1 if not t
(1 if z) is undefined
'x' if z else 'y' if e else 'w'
n and f or s
z or e or 'last'
not n
(1, 2) ~ (1,) ~ ()
[1, 'a', "it's", 'q"', none, true, 1.5, [], {}, {'k': 'v'}, (1,)]
{'a': [1, {'b': none}], 2: 'x', 'z': (1, 2)}
'tab\t nl\n quote\' bs\\ \x41 \u00e9' | tojson
"a" 'b' "c"
l[0] ~ l[-1] ~ l[1:] ~ l[:-1] ~ l[::-1] ~ l[::2] ~ l[5:] ~ l[-2:]
s[0] ~ s[-1] ~ s[7:12] ~ s[::-1] ~ s[-3:-1] ~ s[100:]
l[10] is defined
d.b ~ d['a'].x[1] ~ d.a['x'][0]
d.missing is defined ~ d['missing'] is undefined
d.items() | list
d.keys() | list ~ d.values() | list
d.get('b') ~ d.get('q') ~ d.get('q', 'def')
d | length ~ s | length ~ l | count
msgs[0].role ~ msgs[-1]['content'] ~ msgs.0.n
nothing
nothing is defined
nothing | default('x') ~ e | default('y') ~ e | default('y', true) ~ z | d('q', boolean=true)
nothing == nothing2
nothing | length
'x' in nothing
nothing ~ 'a'
d | tojson
d | tojson(indent=2)
d | tojson(indent=4, ensure_ascii=true)
d | tojson(separators=(',', ':'))
d | tojson(sort_keys=true)
[] | tojson(indent=2) ~ {} | tojson(indent=2)
[1, 2.0, 1e20, 1e-7, true, none, 'é🦙'] | tojson ~ 'é🦙' | tojson(ensure_ascii=true)
{1: 'a', none: 'b', true: 'c', 1.5: 'd'} | tojson
'{"a": [1, 2.5, null, true, "x"]}' | from_json
('[1,2]' | from_json)[1]
text.split('</think>')[-1].lstrip('\n')
text.strip() ~ '|' ~ text.lstrip() ~ '|' ~ text.rstrip()
'xxaxx'.strip('x') ~ 'abcba'.lstrip('ab') ~ 'abcba'.rstrip('ab')
'a,b,,c'.split(',') ~ 'a b  c'.split() ~ ' a  b '.split(' ') ~ 'a,b,c'.split(',', 1) ~ 'a b c'.split(none, 1)
'a,b,c'.rsplit(',', 1) ~ 'a b c'.rsplit(maxsplit=1) ~ '  a b  c '.rsplit(none, 1)
text.splitlines() ~ 'a\n\nb\n'.splitlines(true)
'abc'.startswith('ab') ~ 'abc'.endswith(('x', 'c')) ~ 'abc'.startswith('b', 1)
'aXbX'.replace('X', '-') ~ 'aXbX'.replace('X', '-', 1) ~ 'abc'.replace('', '.') ~ 'abc' | replace('b', 'q')
'abcabc'.find('c') ~ 'abcabc'.rfind('c') ~ 'abc'.find('x') ~ 'äbc'.index('c') ~ 'abcabc'.find('a', 1)
'abcabc'.count('b') ~ 'x'.join(['a', 'b']) ~ 'aBc'.upper() ~ 'aBc'.lower() ~ 'aBc'.swapcase()
'hello world'.title() ~ 'hELLO wORLD'.capitalize() ~ "they're bill's" | title ~ 'foo BAR' | capitalize
'7'.zfill(3) ~ '-7'.zfill(4) ~ 'a'.center(4) ~ '|' ~ 'a'.center(5, '*') ~ 'ab'.ljust(4, '.') ~ 'ab'.rjust(4)
'a=b=c'.partition('=') ~ 'a=b=c'.rpartition('=') ~ 'abc'.partition('x') ~ 'abc'.rpartition('x')
'abc'.removeprefix('a') ~ 'abc'.removesuffix('c') ~ 'abc'.removeprefix('x')
'a1'.isalnum() ~ 'a'.isalpha() ~ '12'.isdigit() ~ ' '.isspace() ~ ''.isdigit() ~ 'aB'.islower() ~ 'AB'.isupper() ~ 'é'.isascii()
'{} {}'.format(1, 'a') ~ '{0}{1}{0}'.format('x', 'y') ~ '{a:>4}|{b:<4}|{c:^5}|'.format(a=1, b='q', c='m')
'{:.2f} {:05d} {:,} {:x} {:e} {!r} {{}}'.format(3.14159, 42, 1234567, 255, 12345.678, 'q')
'{:+d} {:08.3f} {:%} {:s} {:>10.3}'.format(5, 3.14159, 0.5, 'abc', 'abcdef')
'%s is %d years, %.2f, %5s|%-5s|%05d %r %%' % ('x', 7, 1.5, 'a', 'b', 42, 'q')
'%s' % 5 ~ '%(a)s' % {'a': 1} ~ 'x%sy' | format('q')
l | sort ~ l | sort(reverse=true) ~ ['b', 'A', 'c'] | sort ~ ['b', 'A', 'c'] | sort(case_sensitive=true)
msgs | selectattr('role', 'equalto', 'user') | map(attribute='content') | list
msgs | sort(attribute='content') | map(attribute='content') | join('-')
msgs | map(attribute='n', default=0) | list ~ msgs | selectattr('n', 'defined') | list | length
msgs | rejectattr('role', 'eq', 'user') | map(attribute='content') | first
['a', 'b'] | map('upper') | list ~ [1, 2, 3, 4] | select('even') | list ~ [1, 2, 3] | reject('gt', 1) | list ~ [0, 1, ''] | select | list
{'b': 2, 'a': 1, 'C': 3} | dictsort ~ {'b': 2, 'a': 1} | dictsort(by='value') ~ {'b': 1, 'a': 2} | dictsort(reverse=true)
l | join(', ') ~ [1, 'a', none] | join ~ msgs | join('/', attribute='role') ~ s | join('.')
l | first ~ l | last ~ l | max ~ l | min ~ l | sum ~ ([] | first) ~ s | last
l | reverse | list ~ s | reverse ~ (l | unique | list) ~ ['a', 'A', 'b'] | unique | list
3.7 | int ~ '42' | int ~ 'x' | int ~ 'x' | int(9) ~ '3.9' | int ~ '0x1f' | int(base=16) ~ '2.5' | float ~ 'q' | float ~ 3 | float ~ true | int
2.5 | round ~ ' ' ~ 3.14159 | round(2) ~ ' ' ~ 3.7 | round(method='floor') ~ ' ' ~ 3.2 | round(0, 'ceil') ~ ' ' ~ -5 | abs ~ ' ' ~ 7 | round
'a\nb\n\nc' | indent ~ '|' ~ 'a\nb' | indent(2, true) ~ '|' ~ 'a\n\nb' | indent(2, blank=true) ~ 'a\nb' | indent('--')
'  x ' | trim ~ 'xxaxx' | trim('x') ~ 'aB' | upper ~ 'aB' | lower ~ 5 | string ~ [1] | string ~ ' a b ' | wordcount
'<a href="x">&\'' | e
'a long text that goes on' | truncate(10) ~ 'a long text that goes on' | truncate(10, true) ~ 'short' | truncate(10) ~ 'a long text' | truncate(9, true, '…', 0)
[1, 2, 3, 4, 5] | batch(2) | list ~ [1, 2, 3] | batch(2, 'x') | list
d | items | list | length ~ (nothing | items | list)
s | list | length ~ d | list ~ (1, 2) | list ~ range(5) | list ~ range(2, 10, 3) | list ~ range(3, 0, -1) | list
n is number and f is float and n is integer and not t is integer and t is boolean and t is number
s is string and d is mapping and l is sequence and s is sequence and d is iterable and not n is iterable and l is not mapping
z is none and e is not none and t is true and not n is true and nothing is undefined and range is callable
n is odd ~ n is even ~ n is divisibleby 7 ~ n is divisibleby(2) ~ 1 is eq 1 ~ 1 is ne(2) ~ 3 is gt 2 ~ 3 is le 2 ~ 2 is in [1, 2]
'a' is lower ~ 'A' is upper ~ z is sameas none ~ 1 is sameas true ~ n is not odd
(n is odd) ~ (not n is even) ~ (n is even or n is odd)
-n | abs ~ (-n) | abs ~ (-5 + 3)
(l + [9]) ~ ((1,) + (2,)) ~ [0] * 3 ~ 'ab' * 2 ~ 3 * 'x' ~ 'a' * -1
dict(a=1, b=2) ~ dict({'x': 1}, y=2)
namespace(a=1).a
strftime_now('%d %B %Y %H:%M:%S %a %A %b %j %y %-d %I %p %% %m %U')
[1, 2, 3][1] ~ {'a': {'b': 5}}.a.b ~ 'abc'[1] ~ (1, 2)[0] ~ [[1]][0][0]
d['a']['x'][4]
'a' 'b' ~ "c'd"
{'a': 1,}.a ~ [1, 2,] ~ (1, 2,)
true and false or true ~ 'x'
(true and false) is false
1 in [1, 2] and 'a' in 'abc' and 1 not in (2, 3)
{'items': 5}['items'] ~ {'items': 5}.items is callable
'a' if 'x' in {'x': 1} else 'b'
msgs | map(attribute='role') | unique | list
(msgs | selectattr('role', 'in', ['user']) | list) | length
[[2, 'b'], [1, 'a']] | sort ~ [{'a': 2}, {'a': 1}] | sort(attribute='a') | map(attribute='a') | list
msgs | map(attribute='content') | map('length') | list
'%s' | format(s) ~ '%d%%' | format(5)
none ~ '' ~ none | string
'é' | upper ~ 'ß' | lower ~ 'ǆ' | title
"\u00e9" == 'é'
(1 ~ '2' | int) + '3' ~ (1 ~ '2') | int
joiner(', ')() ~ 'x'
[none, true, false] | tojson
'\\n' ~ '\n' | tojson
none | map('upper') | list ~ false | select | list ~ 'x' % [1] ~ 'a b-c_d' | wordcount ~ 3.0 is odd
'x' % 1
3 == 3.0 ~ '3' == 3 ~ none == false ~ [] == false ~ '' == none
""".strip("\n").split("\n")

TEMPLATES = [
    "{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ loop.index }}{{ k }}{{ loop.revindex0 }};{% endfor %}",
    "{% for a in l if a > 1 %}{{ loop.length }}{{ loop.first }}{{ a }}{% endfor %}",
    "{% for a in l %}{{ loop.previtem | default('-') }}{{ a }}{{ loop.nextitem | default('-') }}|{% endfor %}",
    "{% for a in l %}{{ loop.cycle('x', 'y') }}{{ loop.changed(a > 1) }}{{ loop.depth }}{% endfor %}",
    "{% for a in nested recursive %}[{% if a is iterable %}{{ loop(a) }}{% else %}{{ a }}@{{ loop.depth }}{% endif %}]{% endfor %}",
    "{% for c in s %}{{ c }}.{% endfor %}",
    "{% for x in nothing %}a{% endfor %}ok",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for m in msgs %}{% for c in m.content %}{% if c == 'y' %}{% break %}{% endif %}{{ c }}{% endfor %};{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}",
    "{% set ns = namespace(x=1, found=false) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.found }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2), e2 = (3, 4), 5 %}{{ c + d2 + e2 }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}a {{ n }} b{% endset %}{{ x }}{{ x | length }}",
    "{% set x | upper | replace('A', 'q') %}aha{% endset %}{{ x }}",
    "{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}",
    "{% if z %}a{% elif e %}b{% elif l %}c{% endif %}",
    "{% if t %}{% set q = 5 %}{% endif %}{{ q }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(b=5) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}",
    "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ n }}{% endcall %}",
    "{% macro m(l) %}{% for x in l %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(a, b) m(l) %}{{ a }}-{{ b }};{% endcall %}",
    "{% macro m() %}{{ later }}{% endmacro %}{% set later = 5 %}{{ m() }}",
    "{% set v = 1 %}{% macro m() %}{{ v }}{% set v = 2 %}{{ v }}{% endmacro %}{{ m() }}{{ v }}",
    "{% macro m(x) %}{{ x | default('none') }}{% endmacro %}{{ m() }}{{ m(none) }}",
    "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% set a = 9 %}{{ a }}{% endwith %}{{ a is defined }}",
    "{% filter upper | trim %} abc {{ s }} {% endfilter %}",
    "a{% generation %}{% set inner = 1 %}{{ n }}{% endgeneration %}{{ inner is defined }}",
    "{% raw %}{{ n }}{% if %}{% endraw %}{{ n }}",
    "{%- raw -%}  {{ x }}  {%- endraw -%}  y",
    "a {# comment {{ n }} #} b{#- x -#}   c",
    "line\n{# comment #}\nnext\n{% if t %}\n  yes\n{% endif %}\nend\n",
    "  {% if t %}\n    a\n  {% endif %}\n  b\n\n",
    "  {%+ if t %}x{% endif +%}\n y",
    "a\n\n  {%- if t -%}\n\n  b  {%- endif %}\n\n c",
    "x {{- n -}}   y {{ n }}   z",
    "{{ n }}\n{{ n }}\n",
    "\n\n{{ n }}\n\n",
    "{% set x = 'a' %}\n{{ x }}\n  {% set x = 'b' %}  {{ x }}",
    "\t{% if t %}\t\n\t{% endif %}\t|",
    "a\r\nb\r{{ n }}\r\n",
    "{{ {'a': {'b': {}}} }}{{ '}}' }}{{ '%}' }}",
    "{{ '{{' }}{{ \"{% x %}\" }}",
    "{% for m in msgs %}{{ '<' + m.role + '>' }}{{ m['content'] | trim }}\n{% endfor %}",
    "{% for i in l[::-1] %}{{ i }}{{ loop.index0 }}{% endfor %}",
    "{% set q = [] %}{% for i in l %}{% set _ = q.append(i * 2) %}{% endfor %}{{ q }}",
    "{% set q = {'a': 1} %}{% set _ = q.update({'b': 2}) %}{% set _ = q.pop('a') %}{% set _ = q.setdefault('c', 3) %}{{ q }}",
    "{% set q = [1, 2, 3] %}{{ q.pop() }}{{ q.pop(0) }}{{ q }}{{ q.index(2) }}{% set _ = q.insert(0, 9) %}{% set _ = q.extend([5]) %}{{ q }}{{ q.count(5) }}",
    "{{ raise_exception('no: ' ~ n) }}",
    "{{ nothing.x }}",
    "{{ nothing + 'a' }}",
    "{{ 'a' + 1 }}",
    "{{ 1 / 0 }}",
    "{{ d.missing.more }}",
    "{{ nothing() }}",
    "{{ 'x' | nofilter }}",
    "{{ 1 is notest }}",
    "{% if n %}",
    "{% endif %}",
    "{{ n ",
    "{{ 'abc }}",
    "{% for x in %}{% endfor %}",
    "{% unknown %}",
    "{{ (1, 2 }}",
    "{{ n[ }}",
    "{{ nothing | tojson }}",
    "{% set a, b = [1, 2, 3] %}",
    "{% set n.x = 1 %}",
    "{{ 1 < 'a' }}",
    "{{ [1] + (2,) }}",
    "{{ 'abc'.split('') }}",
    "{{ n.x.y }}",
    "{{ range(10000000) | length }}",
    "{{ '%d' % 'x' }}",
    "{{ l | sort(attribute='x') | list }}{{ [1, 'a'] | sort }}",
    "{% break %}",
    "{# open",
    "{% raw %}x",
    "{{ }}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{{ f(a=1, 2) }}",
    "{% if t %}a{% else %}b{% elif n %}c{% endif %}",
]


def run(template):
    case = {"template": template}
    try:
        case["text"] = env.from_string(template).render(**json.loads(json.dumps(CONTEXT)))
    except Exception as e:  # any failure of Python's is one that must fail
        case["error"] = f"{type(e).__name__}: {e}"
    return case


cases = [run("{{ " + e + " }}") for e in EXPRESSIONS] + [run(t) for t in TEMPLATES]
with open("cases.json", "w") as f:
    json.dump({"context": CONTEXT, "cases": cases}, f, ensure_ascii=False, indent=0)
print(len(cases), "cases,", sum("error" in c for c in cases), "of them errors")
