package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// swapped are operators that are taken for each other.
var swapped = map[string]string{
	"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "/": "*",
	"&&": "||", "||": "&&", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "+=": "-=", "-=": "+=",
}

// inGo are faults of a Go file: another operator, a number more by one, a statement left out, a case that is
// never taken, a bool that is the other one. What only makes messages is left alone.
func inGo(path string, text []byte) (out []fault) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	add := func(from, to int, with string) { out = append(out, fault{path, from, to, with, lineOf(text, from)}) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return n.Name.Name != "String" && n.Name.Name != "Error"
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(s.Sel.Name, "rrorf") {
				return false
			}
		case *ast.ImportSpec, *ast.ArrayType:
			return false
		case *ast.BinaryExpr:
			if to := swapped[n.Op.String()]; to != "" {
				add(at(n.OpPos), at(n.OpPos)+len(n.Op.String()), to)
			}
		case *ast.BasicLit:
			if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
				add(at(n.Pos()), at(n.End()), strconv.Itoa(v+1))
			}
		case *ast.ExprStmt, *ast.IncDecStmt:
			add(at(n.Pos()), at(n.End()), "")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add(at(n.Pos()), at(n.End()), "")
			}
		case *ast.IfStmt:
			add(at(n.Cond.Pos()), at(n.Cond.End()), "false && ("+string(text[at(n.Cond.Pos()):at(n.Cond.End())])+")")
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				add(at(n.Pos()), at(n.End()), map[string]string{"true": "false", "false": "true"}[n.Name])
			}
		}
		return true
	})
	return out
}

var (
	operators = regexp.MustCompile(` (<|<=|>|>=|==|!=|\+|-|\*|/|&&|\|\||<<|>>|&|\||\+=|-=) `)
	numbers   = regexp.MustCompile(`[^\w.]([0-9]+)[^\w.]`)
)

// inC are those of a source in C or Metal, by its text.
func inC(path string, text []byte) (out []fault) {
	start := 0
	for _, line := range bytes.SplitAfter(text, []byte("\n")) {
		code, _, _ := bytes.Cut(line, []byte("//"))
		if s := strings.TrimSpace(string(code)); s != "" && s[0] != '#' && !strings.HasPrefix(s, "template") && !strings.Contains(s, `"`) && !strings.HasPrefix(s, "*") {
			for _, m := range operators.FindAllSubmatchIndex(code, -1) {
				out = append(out, fault{path, start + m[2], start + m[3], swapped[string(code[m[2]:m[3]])], lineOf(text, start)})
			}
			for _, m := range numbers.FindAllSubmatchIndex(code, -1) {
				v, _ := strconv.Atoi(string(code[m[2]:m[3]]))
				out = append(out, fault{path, start + m[2], start + m[3], strconv.Itoa(v + 1), lineOf(text, start)})
			}
		}
		start += len(line)
	}
	return out
}

func lineOf(text []byte, at int) string {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[from:], []byte("\n"))
	return strings.TrimSpace(string(line))
}
