package cmd_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/mlxc"
	"github.com/mlxc/mlxc/cmd/internal/mlxreplay"
)

// fileFlags are all arguments and flags of the commands that name files: those
// that are written, each with a session that would write over an input, and those that
// are read, with nil.
var fileFlags = map[string][]string{
	"recordCmd.Model":          nil,
	"recordCmd.Output":         {"mlxc", "record", "m", "--external", "-o", "m"},
	"tracedFlags.Weights":      nil,
	"tracedFlags.Library":      nil,
	"optimizeCmd.Graph":        nil,
	"optimizeCmd.Output":       {"mlxc", "optimize", "e.mlxg", "-o", "m"}, // with --force it may be the graph itself: script/keep.txtar,
	"optimizeCmd.HTML":         {"mlxc", "optimize", "e.mlxg", "-o", "o.mlxg", "--html", "m"},
	"modelFlags.Profile":       nil,
	"kernelFlags.Kernels":      nil,
	"verifyCmd.Graph":          nil,
	"verifyCmd.After":          nil,
	"diffCmd.Before":           nil,
	"diffCmd.After":            nil,
	"statsCmd.Graph":           nil,
	"dumpCmd.Graph":            nil,
	"dumpCmd.HTML":             {"mlxc", "dump", "e.mlxg", "--html", "m"},
	"asmCmd.Text":              nil,
	"asmCmd.Output":            {"mlxc", "asm", "e.mlxg", "-o", "m"},
	"disasmCmd.Graph":          nil,
	"disasmCmd.Output":         {"mlxc", "disasm", "e.mlxg", "-o", "m"},
	"reduceCmd.Graph":          nil,
	"reduceCmd.Output":         {"mlxc", "reduce", "e.mlxg", "--check", "true", "-o", "m"},
	"reportCmd.Graph":          nil,
	"reportCmd.Findings":       nil,
	"runCmd.Graph":             nil,
	"runCmd.In":                nil,
	"runCmd.Out":               {"mlxreplay", "run", "e.mlxg", "--graph", "decode", "--zeros", "--set", "pos=0", "--out", "logits=m"},
	"generateCmd.Model":        nil,
	"generateCmd.Messages":     nil,
	"chatCmd.Model":            nil,
	"chatCmd.Messages":         nil,
	"generateCmd.Logits":       {"mlxreplay", "generate", "e.mlxg", "-p", "a", "-n", "1", "--logits", "m"},
	"benchCmd.Graph":           nil,
	"profileCmd.Graph":         nil,
	"profileCmd.Profile":       nil,
	"profileCmd.Write":         {"mlxreplay", "profile", "e.mlxg", "--rounds", "1", "--tokens", "2", "--prompt", "2", "--write", "m"},
	"profileCmd.Trace":         {"mlxreplay", "profile", "e.mlxg", "--rounds", "1", "--tokens", "2", "--prompt", "2", "--trace", "m"},
	"profileCmd.HTML":          {"mlxreplay", "profile", "e.mlxg", "--rounds", "1", "--tokens", "2", "--prompt", "2", "--html", "m"},
	"tokenizeCmd.Model":        nil,
	"effectsCmd.Graph":         nil,
	"effectsCmd.Library":       nil,
	"effectsCmd.Output":        {"mlxc", "effects", "e.mlxg", "--graph", "decode", "--infer", "-o", "m"},
	"captureCmd.Output":        {"mlxc", "capture", "-o", "m", "m"},
	"captureCmd.Program":       nil,
	"importCmd.Log":            nil,
	"importCmd.Output":         {"mlxc", "import", "m", "-o", "m"},
	"kernelsCmd.Library":       nil,
	"kernelsCmd.Names":         nil, // of kernels
	"libraryFlags.Library":     nil,
	"deviceFlags.Library":      nil,
	"deviceFlags.Measured":     nil,
	"deviceFlags.CUDAMeasured": nil,
	"filling.Graph":            nil,
	"filling.In":               nil,
	"compareCmd.Other":         nil,
	"checkCmd.Library":         nil,
	"doctorCmd.Library":        nil,
	"doctorCmd.JSON":           {"mlxreplay", "doctor", "--device", "softmetal", "--library", "m", "--json", "m"},
	"doctorCmd.Profile":        {"mlxreplay", "doctor", "--device", "softmetal", "--library", "m", "--profile", "m"},
	"doctorCmd.Log":            {"mlxreplay", "doctor", "--device", "softmetal", "--library", "m", "--log", "m"},
}

// commandSources parses the packages of the commands.
func commandSources(t *testing.T) map[string]*ast.File {
	out := map[string]*ast.File{}
	for _, dir := range []string{"../cmd/internal/mlxc", "../cmd/internal/mlxreplay", "../cmd/internal/cli", "../cmd/internal/textgen"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			require.NoError(t, err)
			out[name] = f
		}
	}
	return out
}

// Every flag that names a file is known, and every one that writes refuses to
// write over what the command reads, by its name, through a link and by a hard
// link.
func TestEveryOutputIsChecked(t *testing.T) {
	named := regexp.MustCompile(`(?i)\bfiles?\b|\bmodel\b|\bcontainer\b|\bwrite`)
	var found []string
	for _, f := range commandSources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				if field.Tag == nil || len(field.Names) == 0 {
					continue
				}
				tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
				kind, _ := field.Type.(*ast.Ident)
				text := kind != nil && kind.Name == "string"
				if _, list := field.Type.(*ast.ArrayType); list {
					text = true
				}
				if _, isArg := tag.Lookup("arg"); text && (strings.Contains(tag.Get("placeholder"), "FILE") || isArg || named.MatchString(tag.Get("help")) && tag.Get("enum") == "" && tag.Get("placeholder") == "") {
					found = append(found, spec.Name.Name+"."+field.Names[0].Name)
				}
			}
			return true
		})
	}
	sort.Strings(found)
	var known []string
	for name := range fileFlags {
		known = append(known, name)
	}
	sort.Strings(known)
	require.Equal(t, known, found, "a flag that names a file: say in fileFlags whether it is written")

	model, err := os.ReadFile("../testdata/review/files/t.gguf")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("model.gguf", model, 0o644))
	require.Equal(t, cli.OK, mlxc.Main([]string{"record", "model.gguf", "--external", "-o", "e.mlxg"}))
	graph, err := os.ReadFile("e.mlxg")
	require.NoError(t, err)
	for _, name := range known {
		args := fileFlags[name]
		if args == nil {
			continue
		}
		for _, target := range []string{"model.gguf", "e.mlxg"} {
			for way, make := range map[string]func() error{
				"symbolic link": func() error { return os.Symlink(target, "m") },
				"hard link":     func() error { return os.Link(target, "m") },
			} {
				t.Run(name+"/"+target+"/"+way, func(t *testing.T) {
					require.NoError(t, make())
					defer os.Remove("m")
					main := mlxc.Main
					if args[0] == "mlxreplay" {
						main = func(args []string) int { return mlxreplay.Main(args, devices...) }
					}
					code := main(args[1:])
					gguf, err := os.ReadFile("model.gguf")
					require.NoError(t, err)
					require.True(t, bytes.Equal(model, gguf), "the model is what it was")
					carries := target == "e.mlxg" && name == "asmCmd.Output"
					if carries {
						require.Equal(t, cli.OK, code, "a graph is replaced by what holds or refers to all of its contents")
						require.Equal(t, cli.OK, mlxc.Main([]string{"verify", "--verify", "e.mlxg"}))
						require.NoError(t, os.WriteFile("e.mlxg", graph, 0o644))
						return
					}
					require.Equal(t, cli.Usage, code)
					now, err := os.ReadFile("e.mlxg")
					require.NoError(t, err)
					require.True(t, bytes.Equal(graph, now), "the graph is what it was")
				})
			}
		}
	}
}

// Commands write files in one way only: package output.
func TestCommandsWriteThroughOutput(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"os":         regexp.MustCompile(`^(Create|CreateTemp|WriteFile|OpenFile|Rename|Remove|RemoveAll|Truncate|Link|Symlink|Mkdir|MkdirAll|NewFile)$`),
		"atomicfile": regexp.MustCompile(`^(Write|Replace)$`),
		"mlxg":       regexp.MustCompile(`^(Write|WriteFile)$`),
		"npy":        regexp.MustCompile(`^Save$`),
		"ioutil":     regexp.MustCompile(`.`),
		"syscall":    regexp.MustCompile(`^(Open|Creat|Rename|Unlink|Write)$`),
		"unix":       regexp.MustCompile(`.`),
	}
	calls := 0
	for name, f := range commandSources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := s.X.(*ast.Ident); ok {
				calls++
				if r := forbidden[pkg.Name]; r != nil && r.MatchString(s.Sel.Name) {
					t.Errorf("%s calls %s.%s: files are written by cmd/internal/output", name, pkg.Name, s.Sel.Name)
				}
			}
			return true
		})
	}
	require.Greater(t, calls, 500, "the sources were read")
}
