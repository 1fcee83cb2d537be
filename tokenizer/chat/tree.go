package chat

// This is a parsed template. Operators of one rank, subscripts, calls, filters and
// tests are lists, so that the depth of the tree depends on nesting only, not on
// length.

type (
	// expr is one of the expressions below.
	expr interface{}

	literal  struct{ value value }
	name     struct{ name string }
	listExpr struct {
		items []expr
		tuple bool
	}
	dictExpr struct{ keys, values []expr }

	// arithmetic is first op right op right …, from the left.
	arithmetic struct {
		first expr
		rest  []operand
	}
	// comparison is first < right < right …, as Python chains them.
	comparison struct {
		first expr
		rest  []operand
	}
	operand struct {
		op    string // also "in", "not in"
		right expr
	}
	concatenation struct{ parts []expr } // with ~
	// logic is a chain of "and", or of "or".
	logic struct {
		and   bool
		parts []expr
	}
	negation struct{ x expr } // not
	signed   struct {
		minus bool
		x     expr
	}
	spread      struct{ x expr }                     // *x among arguments
	conditional struct{ then, cond, otherwise expr } // otherwise may be nil

	// postfix is an operand and what follows it, such as x.a[b](c)|d is e.
	postfix struct {
		base expr
		ops  []postfixOp
	}
	postfixOp struct {
		kind    postfixKind
		line    int
		negated bool    // of a test
		name    string  // of an attribute, filter or test
		index   expr    // of an item
		slice   [3]expr // start, stop, step; nil where left out
		args    arguments
	}
	arguments struct {
		positional []expr
		keywords   []keyword
	}
	keyword struct {
		name  string
		value expr
	}
)

type postfixKind uint8

const (
	attributeOp postfixKind = iota
	itemOp
	sliceOp
	callOp
	filterOp
	testOp
)

type (
	// stmt is one of the statements below.
	stmt interface{}

	text   struct{ text string }
	output struct {
		line int
		x    expr
	}
	ifStmt struct {
		branches  []branch
		otherwise []stmt
	}
	branch struct {
		line int
		cond expr
		body []stmt
	}
	forStmt struct {
		line      int
		target    target
		over      expr
		cond      expr // or nil
		body      []stmt
		otherwise []stmt
	}
	setStmt struct {
		line   int
		target target
		value  expr
	}
	setBlock struct {
		line   int
		target target
		body   []stmt
	}
	macroStmt struct {
		line int
		*signature
	}
	callBlock   struct{ line int }    // refused when it is reached
	scopedBlock struct{ body []stmt } // generation
	jump        struct{ outcome outcome }

	signature struct {
		name     string
		names    []string
		defaults []expr // of the last names
		body     []stmt
	}
)

// target is what a statement assigns to.
type target struct {
	name      string
	attribute string   // of a namespace; or ""
	tuple     []string // instead of name
}

// outcome says how a statement ended.
type outcome uint8

const (
	ran outcome = iota
	broke
	continued
)
