package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Page returns the manual page of a command with all its subcommands, in the macros of man(7).
func Page(app *kong.Application) string {
	var b strings.Builder
	name := app.Name
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"User Commands\"\n", strings.ToUpper(name), name)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(strings.TrimSuffix(lowered(app.Help), ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n.RI [ arguments ]\n.RI [ flags ]\n", roff(name))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(app.Help))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range commands(app) {
		usage := ".B " + roff(name+" "+c.Name) + "\n"
		for _, p := range c.Positional {
			usage += roff(p.Summary()) + "\n"
		}
		for _, f := range flags(c) {
			if f.Required {
				usage += roff(names(f)[0]+" "+placeholder(f)) + "\n"
			}
		}
		fmt.Fprintf(&b, ".SS %s\n%s[flags]\n.PP\n%s\n", roff(c.Name), usage, roff(c.Help))
		if c.Detail != "" {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(c.Detail))
		}
		for _, p := range c.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(p.Name), roff(p.Help))
		}
		for _, f := range flags(c) {
			if f.Name != "help" && f.Name != "version" { // below
				option(&b, f)
			}
		}
	}
	b.WriteString(".SH FLAGS OF ALL COMMANDS\n")
	for _, f := range flags(app.Node) {
		option(&b, f)
	}
	b.WriteString(`.SH EXIT STATUS
.TP
0
All is well.
.TP
1
A check has failed; of diff: something has changed.
.TP
2
The command line is wrong.
.TP
3
An input cannot be used.
.TP
129, 130, 143
The command was ended by a closed terminal, Ctrl\-C or SIGTERM.
`)
	other := map[string]string{"mlxc": "mlxreplay", "mlxreplay": "mlxc"}[name]
	if other != "" {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1),\nthe documentation in docs/ of the source tree\n", roff(other))
	}
	return b.String()
}

// option describes a flag.
func option(b *strings.Builder, f *kong.Flag) {
	all := names(f)
	for i := range all {
		all[i] = `\fB` + roff(all[i]) + `\fR`
	}
	value := ""
	if takesValue(f) {
		value = ` \fI` + roff(placeholder(f)) + `\fR`
	}
	fmt.Fprintf(b, ".TP\n%s%s\n%s\n", strings.Join(all, ", "), value, roff(f.Help))
}

// roff is text that a line of a page may be: no character of it is a command.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ", "…", "...").Replace(strings.TrimSpace(s))
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// lowered is a sentence as it goes on behind a dash.
func lowered(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToLower(s[:1]) + s[1:]
}
