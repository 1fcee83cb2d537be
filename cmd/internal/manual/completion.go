package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Completion returns what a shell has to read to complete the words of a command.
func Completion(app *kong.Application, shell string) (string, error) {
	switch shell {
	case "bash":
		return bash(app), nil
	case "zsh":
		return zsh(app), nil
	case "fish":
		return fish(app), nil
	}
	return "", fmt.Errorf("no completions for %q: bash, zsh or fish", shell)
}

// bash is written for version 3.2 too, which Macs have. Where it has nothing to offer, bash completes names of files.
func bash(app *kong.Application) string {
	var subcommands []string
	var values, words strings.Builder
	for _, c := range commands(app) {
		subcommands = append(subcommands, c.Name)
		var known, plain []string
		for _, f := range flags(c) {
			known = append(known, names(f)...)
			if !takesValue(f) {
				continue
			}
			patterns := make([]string, 0, 2)
			for _, n := range names(f) {
				patterns = append(patterns, c.Name+","+n)
			}
			if f.Enum != "" {
				fmt.Fprintf(&values, "\t%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", strings.Join(patterns, "|"), strings.Join(f.EnumSlice(), " "))
			} else {
				plain = append(plain, patterns...)
			}
		}
		if len(plain) > 0 {
			fmt.Fprintf(&values, "\t%s) return ;;\n", strings.Join(plain, "|"))
		}
		fmt.Fprintf(&words, "\t%s,-*) words='%s' ;;\n", c.Name, strings.Join(known, " "))
		if len(c.Positional) > 0 && c.Positional[0].Enum != "" {
			fmt.Fprintf(&words, "\t%s,*) words='%s' ;;\n", c.Name, strings.Join(c.Positional[0].EnumSlice(), " "))
		}
	}
	var top []string
	for _, f := range flags(app.Node) {
		top = append(top, names(f)...)
	}
	all := strings.Join(subcommands, "|")
	return fmt.Sprintf(`# Completions of %[1]s for bash: source <(%[1]s completion bash)
_%[1]s() {
	local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command='' words='' i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case "${COMP_WORDS[i]}" in
		%[2]s) command="${COMP_WORDS[i]}"; break ;;
		esac
	done
	# --flag=value comes as three words
	if [[ $cur == = ]]; then
		cur=''
	elif [[ $prev == = ]]; then
		prev="${COMP_WORDS[COMP_CWORD-2]}"
	fi
	COMPREPLY=()
	case "$command,$prev" in
%[3]s	esac
	case "$command,$cur" in
	,-*) words='%[4]s' ;;
	,*) words='%[5]s' ;;
%[6]s	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -o bashdefault -F _%[1]s %[1]s
`, app.Name, all, values.String(), strings.Join(top, " "), strings.Join(subcommands, " "), words.String())
}

// quoted is a text in single quotes, as shells take it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// zsh says of each flag what it is for and what it takes.
func zsh(app *kong.Application) string {
	inBrackets := strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`)
	inWord := strings.NewReplacer(`\`, `\\`, ":", `\:`)
	specs := func(c *kong.Node) string {
		var out strings.Builder
		for _, f := range flags(c) {
			all := names(f)
			value := ""
			if takesValue(f) {
				what := inWord.Replace(placeholder(f))
				switch {
				case f.Enum != "":
					value = ":" + what + ":(" + strings.Join(f.EnumSlice(), " ") + ")"
				case takesFile(f.Value):
					value = ":" + what + ":_files"
				default:
					value = ":" + what + ": "
				}
			}
			for _, n := range all {
				name, exclude := n, "("+strings.Join(all, " ")+")"
				if value != "" && strings.HasPrefix(n, "--") {
					name += "="
				} else if value != "" {
					name += "+"
				}
				if f.IsCumulative() {
					exclude = "*"
				}
				fmt.Fprintf(&out, " \\\n\t\t\t%s", quoted(exclude+name+"["+inBrackets.Replace(brief(f.Help))+"]"+value))
			}
		}
		for i, p := range c.Positional {
			place := fmt.Sprint(i + 1)
			if p.IsCumulative() {
				place = "*"
			}
			action := "_files"
			if p.Enum != "" {
				action = "(" + strings.Join(p.EnumSlice(), " ") + ")"
			}
			fmt.Fprintf(&out, " \\\n\t\t\t%s", quoted(place+":"+inWord.Replace(p.Name)+":"+action))
		}
		return out.String()
	}
	var list, cases strings.Builder
	for _, c := range commands(app) {
		fmt.Fprintf(&list, "\t\t\t%s\n", quoted(c.Name+":"+inWord.Replace(brief(c.Help))))
		fmt.Fprintf(&cases, "\t\t%s)\n\t\t\t_arguments -s -S%s\n\t\t\t;;\n", c.Name, specs(c))
	}
	return fmt.Sprintf(`#compdef %[1]s
# Completions of %[1]s for zsh: a file _%[1]s in a folder of $fpath, or source <(%[1]s completion zsh)
_%[1]s() {
	local line state curcontext="$curcontext"
	_arguments -C%[2]s \
			'1:command:->command' '*::argument:->argument'
	case $state in
	command)
		local -a subcommands=(
%[3]s		)
		_describe command subcommands
		;;
	argument)
		case $line[1] in
%[4]s		esac
		;;
	esac
}
if [ "$funcstack[1]" = _%[1]s ]; then
	_%[1]s "$@"
else
	compdef _%[1]s %[1]s
fi
`, app.Name, specs(app.Node), list.String(), cases.String())
}

// fish completes names of files where no line here says what comes.
func fish(app *kong.Application) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Completions of %[1]s for fish: ~/.config/fish/completions/%[1]s.fish\n", app.Name)
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" }
	line := func(condition, rest string) {
		fmt.Fprintf(&out, "complete -c %s -n %s %s\n", app.Name, quote(condition), rest)
	}
	flag := func(condition string, f *kong.Flag) {
		rest := "-l " + f.Name
		if f.Short != 0 {
			rest = "-s " + string(f.Short) + " " + rest
		}
		if takesValue(f) {
			switch {
			case f.Enum != "":
				rest += " -x -a " + quote(strings.Join(f.EnumSlice(), " "))
			case takesFile(f.Value):
				rest += " -r -F"
			default:
				rest += " -x"
			}
		}
		line(condition, rest+" -d "+quote(brief(f.Help)))
		if f.Tag.Negatable != "" {
			line(condition, "-l no-"+f.Name+" -d "+quote("Not: "+brief(f.Help)))
		}
	}
	for _, f := range flags(app.Node) {
		flag("__fish_use_subcommand", f)
	}
	for _, c := range commands(app) {
		line("__fish_use_subcommand", "-f -a "+c.Name+" -d "+quote(brief(c.Help)))
		given := "__fish_seen_subcommand_from " + c.Name
		for _, f := range flags(c) {
			flag(given, f)
		}
		if len(c.Positional) > 0 && c.Positional[0].Enum != "" {
			line(given, "-f -a "+quote(strings.Join(c.Positional[0].EnumSlice(), " ")))
		}
	}
	return out.String()
}
