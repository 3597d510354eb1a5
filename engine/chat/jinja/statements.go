package jinja

import "slices"

// template parses to the end of the template.
func (p *parser) template() []stmt {
	body := p.body()
	if t := p.cur(); t.kind != kEOF {
		fail(t.line, "%s without a block to end", p.tokens[p.pos+1].text)
	}
	return body
}

// body parses statements up to a tag with one of these names, whose {% it leaves
// to the caller.
func (p *parser) body(until ...string) []stmt {
	defer p.nest()()
	var body []stmt
	for {
		switch t := p.cur(); t.kind {
		case kEOF:
			if len(until) > 0 {
				fail(t.line, "template ends inside a block: %s is missing", until[len(until)-1])
			}
			return body
		case kData:
			p.pos++
			body = append(body, &data{t.text})
		case kVarBegin:
			p.pos++
			body = append(body, &output{pos{t.line}, p.tuple(false, true, "")})
			p.expectKind(kVarEnd, "}}")
		case kBlockBegin:
			if n := p.tokens[p.pos+1]; n.kind == kName && slices.Contains(until, n.text) {
				return body
			} else if len(until) == 0 && isEnd(n.text) {
				return body // template reports it
			}
			p.pos++
			body = append(body, p.statement())
		default:
			p.unexpected("text")
		}
	}
}

func isEnd(word string) bool {
	return word == "else" || word == "elif" || len(word) > 3 && word[:3] == "end"
}

// end passes {% name %} behind a body.
func (p *parser) end(name string) {
	p.expectKind(kBlockBegin, name)
	if !p.skipName(name) {
		p.unexpected(name)
	}
	p.expectKind(kBlockEnd, "%}")
}

// block parses a body and its end.
func (p *parser) block(end string) []stmt {
	p.expectKind(kBlockEnd, "%}")
	body := p.body(end)
	p.end(end)
	return body
}

// statement parses a tag behind its {%, with all that belongs to it.
func (p *parser) statement() stmt {
	t := p.expectKind(kName, "a statement")
	at := pos{t.line}
	switch t.text {
	case "if":
		return p.ifStmt(at)
	case "for":
		return p.forStmt(at)
	case "set":
		return p.setStmt(at)
	case "macro":
		return p.macro(at)
	case "call":
		return p.callBlock(at)
	case "filter":
		f := &filterBlock{pos: at, filters: p.filterRow(at)}
		f.body = p.block("endfilter")
		return f
	case "with":
		return p.with(at)
	case "generation":
		return &scoped{p.block("endgeneration")}
	case "break", "continue":
		if p.loops == 0 {
			fail(t.line, "%s outside of a loop", t.text)
		}
		p.expectKind(kBlockEnd, "%}")
		if t.text == "break" {
			return &jump{at, broke}
		}
		return &jump{at, continued}
	}
	fail(t.line, "unknown statement %q", t.text)
	return nil
}

func (p *parser) ifStmt(at pos) stmt {
	s := &ifStmt{pos: at}
	for {
		s.conds = append(s.conds, p.tuple(false, false, ""))
		p.expectKind(kBlockEnd, "%}")
		s.bodies = append(s.bodies, p.body("elif", "else", "endif"))
		p.expectKind(kBlockBegin, "endif")
		if p.skipName("elif") {
			continue
		}
		if p.skipName("else") {
			p.expectKind(kBlockEnd, "%}")
			s.other = p.body("endif")
			p.expectKind(kBlockBegin, "endif")
		}
		if !p.skipName("endif") {
			p.unexpected("endif")
		}
		p.expectKind(kBlockEnd, "%}")
		return s
	}
}

func (p *parser) forStmt(at pos) stmt {
	s := &forStmt{pos: at, target: p.target(false, "in")}
	if !p.skipName("in") {
		p.unexpected("in")
	}
	s.iter = p.tuple(false, false, "recursive")
	if p.skipName("if") {
		s.cond = p.expression()
	}
	s.recursive = p.skipName("recursive")
	p.expectKind(kBlockEnd, "%}")
	p.loops++
	s.body = p.body("else", "endfor")
	p.loops--
	p.expectKind(kBlockBegin, "endfor")
	if p.skipName("else") {
		p.expectKind(kBlockEnd, "%}")
		s.other = p.body("endfor")
		p.expectKind(kBlockBegin, "endfor")
	}
	if !p.skipName("endfor") {
		p.unexpected("endfor")
	}
	p.expectKind(kBlockEnd, "%}")
	return s
}

// target parses what is assigned to, up to the name stop or an operator.
func (p *parser) target(namespaces bool, stop string) target {
	defer p.nest()()
	at := pos{p.cur().line}
	var all []target
	comma := false
	for !p.is(")") && !p.is("=") && p.cur().kind != kBlockEnd && (stop == "" || !p.isName(stop)) {
		var one target
		if p.skip("(") {
			one = p.target(namespaces, "")
			p.expect(")")
		} else {
			t := p.expectKind(kName, "a name")
			if slices.Contains([]string{"true", "True", "false", "False", "none", "None"}, t.text) {
				fail(t.line, "%s cannot be assigned to", t.text)
			}
			one = target{pos: pos{t.line}, name: t.text}
			if namespaces && p.skip(".") {
				one.attr = p.expectKind(kName, "a name").text
			}
		}
		all = append(all, one)
		if !p.skip(",") {
			break
		}
		comma = true
	}
	switch {
	case len(all) == 0:
		p.unexpected("a name")
	case len(all) == 1 && !comma:
		return all[0]
	}
	return target{pos: at, many: all}
}

func (p *parser) setStmt(at pos) stmt {
	to := p.target(true, "")
	if p.skip("=") {
		x := p.tuple(false, true, "")
		p.expectKind(kBlockEnd, "%}")
		return &setStmt{at, to, x}
	}
	s := &setBlock{pos: at, target: to}
	if p.skip("|") {
		s.filters = p.filterRow(at)
	}
	s.body = p.block("endset")
	return s
}

// filterRow parses name(arguments)|name ...
func (p *parser) filterRow(at pos) []*filter {
	var row []*filter
	for {
		row = append(row, p.filter(at, nil).(*filter))
		if !p.skip("|") {
			return row
		}
	}
}

// parameters parses the list behind a macro's name.
func (p *parser) parameters(def *macroDef) {
	p.expect("(")
	for !p.is(")") {
		t := p.expectKind(kName, "a parameter's name")
		def.params = append(def.params, t.text)
		if p.skip("=") {
			def.defaults = append(def.defaults, p.expression())
		} else if len(def.defaults) > 0 {
			fail(t.line, "parameter %s without a default behind one with a default", t.text)
		}
		if !p.skip(",") {
			break
		}
	}
	p.expect(")")
}

// nested parses a body that no break of a loop around it can leave.
func (p *parser) nested(end string) []stmt {
	loops := p.loops
	p.loops = 0
	body := p.block(end)
	p.loops = loops
	return body
}

func (p *parser) macro(at pos) stmt {
	def := &macroDef{name: p.expectKind(kName, "a macro's name").text, line: at.line}
	p.parameters(def)
	def.body = p.nested("endmacro")
	return &macroStmt{at, def}
}

func (p *parser) callBlock(at pos) stmt {
	def := &macroDef{name: "caller", line: at.line}
	if p.is("(") {
		p.parameters(def)
	}
	c, ok := p.expression().(*call)
	if !ok {
		fail(at.line, "call block without a call")
	}
	def.body = p.nested("endcall")
	return &callBlock{at, c, def}
}

func (p *parser) with(at pos) stmt {
	s := &withStmt{pos: at}
	for p.cur().kind != kBlockEnd {
		if len(s.targets) > 0 {
			p.expect(",")
		}
		t := p.expectKind(kName, "a name")
		s.targets = append(s.targets, target{pos: pos{t.line}, name: t.text})
		p.expect("=")
		s.values = append(s.values, p.expression())
	}
	s.body = p.block("endwith")
	return s
}
