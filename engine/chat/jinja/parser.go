package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxNesting bounds brackets and blocks inside each other, and maxChain the
// operators in a row, so that neither parsing nor rendering can use up the stack.
const (
	maxNesting = 150
	maxChain   = 2000
)

// parser turns tokens into statements and expressions. The grammar and the
// precedence of operators are those of Jinja's parser.py.
type parser struct {
	tokens []token
	pos    int
	depth  int
	loops  int // for loops around the position, for break and continue
}

func (p *parser) cur() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != kEOF {
		p.pos++
	}
	return t
}

// is reports whether the current token is this operator.
func (p *parser) is(op string) bool { return p.cur().kind == kOp && p.cur().text == op }

// isName reports whether the current token is one of these names.
func (p *parser) isName(names ...string) bool {
	return p.cur().kind == kName && slices.Contains(names, p.cur().text)
}

// skip passes an operator if it is the current token.
func (p *parser) skip(op string) bool {
	if p.is(op) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) unexpected(want string) {
	t := p.cur()
	switch t.kind {
	case kEOF:
		fail(t.line, "template ends where %s should be", want)
	case kBlockEnd, kVarEnd:
		fail(t.line, "tag ends where %s should be", want)
	}
	fail(t.line, "%q where %s should be", t.text, want)
}

func (p *parser) expect(op string) {
	if !p.skip(op) {
		p.unexpected(strconv.Quote(op))
	}
}

func (p *parser) expectKind(k kind, want string) token {
	if p.cur().kind != k {
		p.unexpected(want)
	}
	return p.next()
}

// nest counts a level of nesting until the function that it returns is called.
func (p *parser) nest() func() {
	if p.depth++; p.depth > maxNesting {
		fail(p.cur().line, "nested deeper than %d levels", maxNesting)
	}
	return func() { p.depth-- }
}

// chain counts the operators of a row.
func (p *parser) chain(n *int) {
	if *n++; *n > maxChain {
		fail(p.cur().line, "more than %d operators in a row", maxChain)
	}
}

// expression parses a whole expression: a if b else c.
func (p *parser) expression() expr {
	defer p.nest()()
	x := p.or()
	for n := 0; p.isName("if"); {
		p.chain(&n)
		at := pos{p.next().line}
		c := &condExpr{pos: at, then: x, cond: p.or()}
		if p.skipName("else") {
			c.other = p.expression()
		}
		x = c
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for n := 0; p.isName("or"); {
		p.chain(&n)
		x = &logic{pos: pos{p.next().line}, or: true, left: x, right: p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for n := 0; p.isName("and"); {
		p.chain(&n)
		x = &logic{pos: pos{p.next().line}, left: x, right: p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.isName("not") {
		defer p.nest()()
		return &not{pos: pos{p.next().line}, x: p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	x := p.sum()
	c := &compare{pos: pos{p.cur().line}, first: x}
	for n := 0; ; {
		op := ""
		switch t := p.cur(); {
		case t.kind == kOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text):
			op = p.next().text
		case p.isName("in"):
			op = p.next().text
		case p.isName("not") && p.tokens[p.pos+1].kind == kName && p.tokens[p.pos+1].text == "in":
			p.pos += 2
			op = "not in"
		}
		if op == "" {
			break
		}
		p.chain(&n)
		c.ops = append(c.ops, operand{op, p.sum()})
	}
	if len(c.ops) == 0 {
		return x
	}
	return c
}

// binaries parses a row of operators of the same rank.
func (p *parser) binaries(operand func() expr, ops ...string) expr {
	x := operand()
	for n := 0; p.cur().kind == kOp && slices.Contains(ops, p.cur().text); {
		p.chain(&n)
		t := p.next()
		x = &binary{pos: pos{t.line}, op: t.text, left: x, right: operand()}
	}
	return x
}

func (p *parser) sum() expr     { return p.binaries(p.concat, "+", "-") }
func (p *parser) concat() expr  { return p.binaries(p.product, "~") }
func (p *parser) product() expr { return p.binaries(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr   { return p.binaries(func() expr { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) expr {
	var x expr
	if t := p.cur(); p.is("-") || p.is("+") {
		done := p.nest()
		p.pos++
		x = &unary{pos: pos{t.line}, op: t.text, x: p.unary(false)}
		done()
	} else {
		x = p.primary()
	}
	x = p.postfix(x)
	if filters {
		x = p.filters(x)
	}
	return x
}

func (p *parser) primary() expr {
	t := p.cur()
	at := pos{t.line}
	switch t.kind {
	case kName:
		p.pos++
		switch t.text {
		case "true", "True":
			return &constant{at, true}
		case "false", "False":
			return &constant{at, false}
		case "none", "None":
			return &constant{at, nil}
		}
		return &name{at, t.text}
	case kString:
		text := ""
		for p.cur().kind == kString { // neighbours are one string
			text += p.next().text
		}
		return &constant{at, text}
	case kInt, kFloat:
		p.pos++
		return &constant{at, number(t)}
	}
	switch {
	case p.skip("("):
		x := p.tuple(true, true, "")
		p.expect(")")
		return x
	case p.skip("["):
		return &list{at, p.items("]")}
	case p.skip("{"):
		return p.dict(at)
	}
	p.unexpected("an expression")
	return nil
}

// number is the value of a number's token.
func number(t token) any {
	if t.kind == kFloat {
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil && !math.IsInf(f, 0) {
			fail(t.line, "number %q: %v", t.text, err)
		}
		return f
	}
	text := strings.TrimLeft(t.text, "0") // strconv would take 010 for octal
	if text == "" || strings.IndexByte("xXoObB", text[0]) >= 0 {
		text = t.text
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		fail(t.line, "number %q: %v", t.text, err)
	}
	return n
}

// items parses expressions up to a closing bracket.
func (p *parser) items(closing string) []expr {
	var all []expr
	for !p.is(closing) {
		all = append(all, p.expression())
		if !p.skip(",") {
			break
		}
	}
	p.expect(closing)
	return all
}

func (p *parser) dict(at pos) expr {
	d := &dict{pos: at}
	for !p.is("}") {
		d.keys = append(d.keys, p.expression())
		p.expect(":")
		d.vals = append(d.vals, p.expression())
		if !p.skip(",") {
			break
		}
	}
	p.expect("}")
	return d
}

// tuple parses expressions with commas between them; one without a comma is
// itself. Without cond, an if ends it; so does the name stop.
func (p *parser) tuple(empty, cond bool, stop string) expr {
	at, item := pos{p.cur().line}, p.expression
	if !cond {
		item = p.or
	}
	var all []expr
	comma := false
	for {
		t := p.cur()
		if t.kind == kEOF || t.kind == kVarEnd || t.kind == kBlockEnd || p.is(")") || stop != "" && p.isName(stop) {
			break
		}
		all = append(all, item())
		if !p.skip(",") {
			break
		}
		comma = true
	}
	switch {
	case len(all) == 1 && !comma:
		return all[0]
	case len(all) == 0 && !empty:
		p.unexpected("an expression")
	}
	return &tuple{at, all}
}

// postfix parses .name, [index] and (arguments) behind an expression.
func (p *parser) postfix(x expr) expr {
	for n := 0; ; {
		at := pos{p.cur().line}
		switch {
		case p.skip("."):
			switch t := p.next(); t.kind {
			case kName:
				x = &attr{at, x, t.text}
			case kInt:
				x = &index{at, x, &constant{at, number(t)}}
			default:
				p.pos--
				p.unexpected("a name")
			}
		case p.skip("["):
			x = p.subscript(at, x)
		case p.is("("):
			x = &call{at, x, p.arguments()}
		default:
			return x
		}
		p.chain(&n)
	}
}

func (p *parser) subscript(at pos, x expr) expr {
	defer p.nest()()
	var parts [3]expr
	n := 0
	for {
		if !p.is(":") && !p.is("]") {
			parts[n] = p.expression()
		}
		if n == 2 || !p.skip(":") {
			break
		}
		n++
	}
	p.expect("]")
	if n > 0 {
		return &slice{at, x, parts}
	}
	if parts[0] == nil {
		fail(at.line, "empty brackets")
	}
	return &index{at, x, parts[0]}
}

func (p *parser) arguments() args {
	defer p.nest()()
	var a args
	p.expect("(")
	for !p.is(")") {
		switch t := p.cur(); {
		case p.skip("**"):
			a.kwStar = p.expression()
		case p.skip("*"):
			a.star = p.expression()
		case t.kind == kName && p.tokens[p.pos+1].kind == kOp && p.tokens[p.pos+1].text == "=":
			p.pos += 2
			a.names = append(a.names, t.text)
			a.named = append(a.named, p.expression())
		default:
			if len(a.names) > 0 || a.kwStar != nil {
				fail(t.line, "an argument without a name behind one with a name")
			}
			a.plain = append(a.plain, p.expression())
		}
		if !p.skip(",") {
			break
		}
	}
	p.expect(")")
	return a
}

// filters parses |filter and "is test" behind an expression.
func (p *parser) filters(x expr) expr {
	for n := 0; ; {
		at := pos{p.cur().line}
		switch {
		case p.skip("|"):
			x = p.filter(at, x)
		case p.skipName("is"):
			x = p.test(at, x)
		case p.is("("):
			x = &call{at, x, p.arguments()}
		default:
			return x
		}
		p.chain(&n)
	}
}

func (p *parser) filter(at pos, x expr) expr {
	f := &filter{pos: at, x: x, name: p.expectKind(kName, "a filter's name").text}
	if p.is("(") {
		f.args = p.arguments()
	}
	return f
}

func (p *parser) test(at pos, x expr) expr {
	negated := p.skipName("not")
	t := &test{pos: at, x: x}
	switch c := p.cur(); {
	case c.kind == kName:
		t.name = p.next().text
	default:
		p.unexpected("a test's name")
	}
	switch c := p.cur(); {
	case p.is("("):
		t.args = p.arguments()
	case c.kind == kName && !p.isName("else", "or", "and", "if", "is", "not", "in"), c.kind == kString, c.kind == kInt, c.kind == kFloat, p.is("["), p.is("{"):
		t.args.plain = []expr{p.postfix(p.primary())}
	}
	if negated {
		return &not{at, t}
	}
	return t
}
