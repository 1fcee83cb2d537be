package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printed is what a command prints.
func printed(t *testing.T, program string, args ...string) string {
	t.Helper()
	c := exec.Command(program, args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	require.NoError(t, err, "%s %v", program, args)
	return string(out)
}

// TestManual: the manual page and the completions of every shell have every command and flag that --help has, and their own readers
// take them, those that this machine has.
func TestManual(t *testing.T) {
	command, flag := regexp.MustCompile(`(?m)^  (\w+) `), regexp.MustCompile(`(?m)^  (?:-(\w), |    )--(\[no-\])?([\w-]+)`)
	for _, program := range []string{"mlxc", "mlxreplay"} {
		dir := t.TempDir()
		file := func(name, text string) string {
			path := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			return path
		}
		page := printed(t, program, "manual")
		shells := map[string]string{}
		for _, shell := range []string{"bash", "zsh", "fish"} {
			shells[shell] = printed(t, program, "completion", shell)
		}
		_, list, ok := strings.Cut(printed(t, program, "--help"), "Commands:\n")
		require.True(t, ok)
		commands := command.FindAllStringSubmatch(list, -1)
		require.Greater(t, len(commands), 8)
		flags := 0
		for _, m := range commands {
			name := m[1]
			assert.Contains(t, page, "\n.SS "+name+"\n")
			assert.Contains(t, shells["bash"], "\t"+name+",-*) words='")
			assert.Contains(t, shells["zsh"], "\t\t\t'"+name+":")
			assert.Contains(t, shells["fish"], " -f -a "+name+" ")
			_, inPage, _ := strings.Cut(page, "\n.SS "+name+"\n")
			inPage, _, _ = strings.Cut(inPage, "\n.SS ")
			_, inBash, _ := strings.Cut(shells["bash"], "\t"+name+",-*) words='")
			inBash, _, _ = strings.Cut(inBash, "'")
			_, inZsh, _ := strings.Cut(shells["zsh"], "\t\t"+name+")\n")
			inZsh, _, _ = strings.Cut(inZsh, ";;")
			for _, f := range flag.FindAllStringSubmatch(printed(t, program, name, "--help"), -1) {
				flags++
				long, fish := "--"+f[3], " -l "+f[3]+" "
				assert.Contains(t, " "+inBash+" ", " "+long+" ", name)
				assert.Regexp(t, regexp.QuoteMeta(")"+long)+`=?\[|\*`+regexp.QuoteMeta(long)+`=?\[`, inZsh, name)
				if f[1] != "" {
					assert.Contains(t, " "+inBash+" ", " -"+f[1]+" ", name)
					fish = " -s " + f[1] + fish
				}
				if f[2] != "" {
					assert.Contains(t, inBash, "--no-"+f[3], name)
				}
				assert.Contains(t, shells["fish"], "'__fish_seen_subcommand_from "+name+"'"+fish, name)
				if f[3] != "help" && f[3] != "version" {
					assert.Contains(t, inPage, strings.ReplaceAll(long, "-", `\-`)+`\fR`, name)
				}
			}
		}
		assert.Greater(t, flags, 50)

		offered := func(name string, args ...string) string {
			out, err := exec.Command(name, args...).CombinedOutput()
			require.NoError(t, err, "%s: %s", name, out)
			return " " + strings.Join(strings.Fields(string(out)), " ") + " "
		}
		if _, err := exec.LookPath("bash"); err == nil {
			path := file("completion.bash", shells["bash"])
			bash := func(words ...string) string {
				return offered("bash", append([]string{"-c", `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _$1; echo "${COMPREPLY[@]}"`, "bash", path, program}, words...)...)
			}
			assert.Equal(t, " completion ", bash("comp"+"l"))
			assert.Contains(t, bash(""), " "+commands[0][1]+" ")
			assert.Contains(t, bash(commands[0][1], "--h"), " --help ")
			assert.Equal(t, " fish ", bash("completion", "f"))
			if program == "mlxc" {
				assert.Equal(t, " text ", bash("dump", "--format", "=", "t"))
				assert.Equal(t, " text json dot ", bash("dump", "g.mlxg", "-f", ""))
				assert.Equal(t, "  ", bash("optimize", "-o", "--"), "a file comes here")
			}
		}
		if _, err := exec.LookPath("zsh"); err == nil {
			offered("zsh", "-n", file("completion.zsh", shells["zsh"]))
		}
		if _, err := exec.LookPath("fish"); err == nil {
			path := file("completion.fish", shells["fish"])
			fish := func(line string) string {
				c := offered("fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2] | string replace -r '\t.*' ''; true`, path, program+" "+line)
				return c
			}
			assert.Contains(t, fish(""), " completion ")
			assert.Contains(t, fish("completion "), " fish ")
			assert.Contains(t, fish(commands[0][1]+" --h"), " --help ")
		}
		if _, err := exec.LookPath("mandoc"); err == nil {
			out, _ := exec.Command("mandoc", "-T", "lint", "-W", "warning", file(program+".1", page)).CombinedOutput()
			assert.NotRegexp(t, `(?m)^.*(WARNING: (?:[^m]|m[^i])|ERROR|UNSUPP).*$`, string(out)) // no date is given
		}
	}
}
