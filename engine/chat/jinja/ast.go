package jinja

// pos is where a node stands in the template.
type pos struct{ line int }

// expr is an expression; eval returns its value.
type expr interface {
	eval(st *state, sc *scope) any
}

type (
	constant struct {
		pos
		value any
	}
	name struct {
		pos
		text string
	}
	list struct {
		pos
		items []expr
	}
	tuple struct {
		pos
		items []expr
	}
	dict struct {
		pos
		keys, vals []expr
	}
	attr struct { // x.name
		pos
		x    expr
		name string
	}
	index struct { // x[key]
		pos
		x, key expr
	}
	slice struct { // x[start:stop:step], each may be nil
		pos
		x     expr
		parts [3]expr
	}
	call struct {
		pos
		fn   expr
		args args
	}
	filter struct {
		pos
		x    expr // nil in a filter block
		name string
		args args
	}
	test struct {
		pos
		x    expr
		name string
		args args
	}
	condExpr struct { // then if cond else other; other may be nil
		pos
		then, cond, other expr
	}
	logic struct {
		pos
		or          bool
		left, right expr
	}
	not struct {
		pos
		x expr
	}
	compare struct { // first op x op x ...
		pos
		first expr
		ops   []operand
	}
	binary struct {
		pos
		op          string
		left, right expr
	}
	unary struct {
		pos
		op string
		x  expr
	}
)

// operand is one step of a chain of comparisons.
type operand struct {
	op string
	x  expr
}

// args are the arguments of a call.
type args struct {
	plain        []expr
	names        []string
	named        []expr
	star, kwStar expr
}

// control tells how a statement ended.
type control uint8

const (
	normal control = iota
	broke
	continued
)

// stmt is a statement; exec writes its output.
type stmt interface {
	exec(st *state, sc *scope) control
}

type (
	data   struct{ text string }
	output struct {
		pos
		x expr
	}
	ifStmt struct {
		pos
		conds  []expr
		bodies [][]stmt
		other  []stmt
	}
	forStmt struct {
		pos
		target    target
		iter      expr
		cond      expr // may be nil
		recursive bool
		body      []stmt
		other     []stmt
	}
	setStmt struct {
		pos
		target target
		x      expr
	}
	setBlock struct {
		pos
		target  target
		filters []*filter
		body    []stmt
	}
	macroStmt struct {
		pos
		def *macroDef
	}
	callBlock struct {
		pos
		call   *call
		caller *macroDef
	}
	filterBlock struct {
		pos
		filters []*filter
		body    []stmt
	}
	withStmt struct {
		pos
		targets []target
		values  []expr
		body    []stmt
	}
	scoped struct{ body []stmt } // a generation block
	jump   struct {
		pos
		how control
	}
)

// macroDef is what a macro is made of. defaults belong to the last parameters.
type macroDef struct {
	name     string
	params   []string
	defaults []expr
	body     []stmt
	line     int
}

// target is what a value is assigned to: a name, ns.name, or several of them.
type target struct {
	pos
	name string
	attr string // of the namespace name
	many []target
}
