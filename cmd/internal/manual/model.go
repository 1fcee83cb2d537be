package manual

import (
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// commands returns the subcommands that help lists.
func commands(app *kong.Application) (out []*kong.Node) {
	for _, c := range app.Children {
		if !c.Hidden {
			out = append(out, c)
		}
	}
	return out
}

// flags returns the flags of a command that help lists, and those of all commands.
func flags(c *kong.Node) (out []*kong.Flag) {
	for _, group := range c.AllFlags(true) {
		out = append(out, group...)
	}
	return out
}

// names returns a flag as it is written: -o and --output, --blocks and --no-blocks.
func names(f *kong.Flag) (out []string) {
	if f.Short != 0 {
		out = append(out, "-"+string(f.Short))
	}
	out = append(out, "--"+f.Name)
	if f.Tag.Negatable != "" {
		out = append(out, "--no-"+f.Name)
	}
	return out
}

// takesValue reports whether a word may follow the flag. One that can go without a value takes it behind = alone.
func takesValue(f *kong.Flag) bool {
	if f.IsBool() || f.IsCounter() {
		return false
	}
	b, ok := f.Mapper.(kong.BoolMapper)
	return !ok || !b.IsBool()
}

// placeholder says what a flag's value is: FILE, N, 1h.
func placeholder(f *kong.Flag) string {
	return strings.Trim(f.FormatPlaceHolder(), `"`)
}

// takesFile reports whether the value of a flag, or an argument, is a path.
func takesFile(v *kong.Value) bool {
	if v.Flag == nil {
		return v.Enum == ""
	}
	return file.MatchString(v.Flag.PlaceHolder)
}

var file = regexp.MustCompile(`FILE|FOLDER|PATH|DIR`)

// brief is the first sentence of a help text, without its period.
func brief(help string) string {
	if i := sentence.FindStringIndex(help); i != nil {
		help = help[:i[0]]
	}
	return strings.TrimSuffix(help, ".")
}

var sentence = regexp.MustCompile(`\. [A-Z]|[;:] | \(`)
