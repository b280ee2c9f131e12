package repository

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Each line of a node's log has the node's id in "node". A line with a second "node" would be read as
// that of the other node where the log is JSON, since programs keep the last of two members of one name.
func TestLogLinesNameTheNodeOnce(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || !strings.HasPrefix(s.file, "cluster/") {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, f.Sel.Name) {
				return true
			}
			for _, arg := range call.Args {
				if word, ok := arg.(*ast.BasicLit); ok && word.Value == `"node"` {
					t.Errorf("%s: the logger has the key node already; name the other one member or other_node", s.at(call))
				}
			}
			return true
		})
	}
}
