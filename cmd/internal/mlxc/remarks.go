package mlxc

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
)

// remarksFlag is --remarks, or --remarks=KIND.
type remarksFlag struct {
	on   bool
	kind string
}

// Decode implements [kong.MapperValue].
func (f *remarksFlag) Decode(ctx *kong.DecodeContext) error {
	f.on = true
	if t := ctx.Scan.Peek(); t.Type == kong.FlagValueToken {
		f.kind = fmt.Sprint(ctx.Scan.Pop().Value)
	}
	return nil
}

// IsBool implements [kong.BoolMapperValue]: the value may be left out.
func (f *remarksFlag) IsBool() bool { return true }

// shows reports whether a remark is of the kind that was asked for: a pass, "done",
// "not-done", a command, or words of its text.
func (f *remarksFlag) shows(pass string, m passes.Remark) bool {
	name, _, _ := strings.Cut(pass, "{")
	switch f.kind {
	case "", pass, name:
		return true
	case "done":
		return m.Done
	case "not-done":
		return !m.Done
	}
	return strings.Contains(m.Text, f.kind) || m.At == f.kind || strings.HasPrefix(m.At, f.kind+" ")
}

// alike is how many remarks of one form are printed if no kind was asked for.
const alike = 3

// print prints the remarks of a result by pass, remarks of one form together. If no
// kind was asked for, it prints the first few of each form and counts the others.
func (f *remarksFlag) print(w io.Writer, r *optimize.Result) (shown int) {
	for _, row := range r.Rows {
		var forms []string
		groups := map[string][]passes.Remark{}
		for _, m := range row.Remarks {
			if !f.shows(row.Pass, m) {
				continue
			}
			k := form(m)
			if groups[k] == nil {
				forms = append(forms, k)
			}
			groups[k] = append(groups[k], m)
		}
		for _, k := range forms {
			group := groups[k]
			n := len(group)
			if f.kind == "" && n > alike+1 { // one more remark is as short as the line that counts it
				n = alike
			}
			for _, m := range group[:n] {
				fmt.Fprintf(w, "%s: %s: %s\n", r.Graph, row.Pass, m)
			}
			if more := len(group) - n; more > 0 {
				name, _, _ := strings.Cut(row.Pass, "{")
				fmt.Fprintf(w, "%s: %s: %d more: %s (--remarks=%s prints all)\n", r.Graph, row.Pass, more, k, name)
			}
			shown += len(group)
		}
	}
	return shown
}

// names matches what differs between remarks of one form: commands, memories with their
// ranges, kernels, numbers.
var names = regexp.MustCompile(`#[0-9]+|[%$@][^\s:,;]+(\[[^\]]*\])?|\b[0-9][0-9.]*\b`)

// form returns a remark without names.
func form(m passes.Remark) string {
	verb := "not done: "
	if m.Done {
		verb = "done: "
	}
	return verb + strings.Join(strings.Fields(names.ReplaceAllString(m.Text, "…")), " ")
}

// printAll prints the remarks of all graphs.
func (f *remarksFlag) printAll(env *cli.Env, results []*optimize.Result) {
	if !f.on {
		return
	}
	shown := 0
	for _, r := range results {
		shown += f.print(env.Stdout, r)
	}
	if shown == 0 && f.kind != "" {
		fmt.Fprintf(env.Stdout, "no remark is of kind %s: want a pass, done, not-done, a command as in #12, or words of the text\n", cli.Quote(f.kind))
	}
}
