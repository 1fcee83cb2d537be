package cmd_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestReview runs testdata/review: graphs, templates and sessions that a review
// found to be answered wrongly, each with the answer that it must get. A script
// finds the files in $FILES.
func TestReview(t *testing.T) {
	files, err := filepath.Abs("../testdata/review/files")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts(t, "../testdata/review", sample.Few),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"template": putTemplate, "contradict": contradict},
		Setup: func(e *testscript.Env) error {
			e.Setenv("FILES", files)
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("CUDA_VISIBLE_DEVICES", "-1")
			collectAsHere(e)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
	})
}

// putTemplate is "template T.jinja IN.mlxt OUT.mlxt": it gives the tokenizer of a
// model in the text form a chat template.
func putTemplate(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: template T.jinja IN.mlxt OUT.mlxt")
	}
	model := ts.ReadFile(args[1])
	at := regexp.MustCompile(`data "tokenizer\.json" = blob base64"([^"]*)"`).FindStringSubmatchIndex(model)
	if at == nil {
		ts.Fatalf("%s has no tokenizer", args[1])
	}
	old, err := base64.StdEncoding.DecodeString(model[at[2]:at[3]])
	ts.Check(err)
	var tokenizer map[string]any
	ts.Check(json.Unmarshal(old, &tokenizer))
	tokenizer["chat_template"] = ts.ReadFile(args[0])
	text, err := json.Marshal(tokenizer)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(model[:at[2]]+base64.StdEncoding.EncodeToString(text)+model[at[3]:]), 0o666))
}
