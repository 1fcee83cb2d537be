package cmd_test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// sarifSchema is SARIF's own schema.
var sarifSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	text, err := os.ReadFile("../testdata/sarif/sarif-schema-2.1.0.json")
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat() // of URIs and times
	if err := c.AddResource("sarif.json", document); err != nil {
		return nil, err
	}
	return c.Compile("sarif.json")
})

// validSARIF returns what SARIF's schema has against a text.
func validSARIF(text string) error {
	schema, err := sarifSchema()
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(document)
}

// sarifCommand is the command sarif of scripts: a file, or stdout, must be what SARIF's schema allows.
func sarifCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: sarif FILE")
	}
	if err := validSARIF(ts.ReadFile(args[0])); err != nil {
		ts.Fatalf("%v", err)
	}
}

// What the schema refuses is seen: each part of a log that is taken away or altered against it is an error, so that sarif in scripts can
// fail.
func TestSARIFSchema(t *testing.T) {
	const log = `{"$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "version": "2.1.0", "runs": [{
		"tool": {"driver": {"name": "mlxreplay check", "version": "1", "rules": [{"id": "race"}]}},
		"results": [{"ruleId": "race", "ruleIndex": 0, "level": "error", "message": {"text": "two"}, "locations": [{
			"physicalLocation": {"artifactLocation": {"uri": "a.metal"}, "region": {"startLine": 7}}, "logicalLocations": [{"name": "k", "kind": "function"}]}]}]}]}`
	require.NoError(t, validSARIF(log))
	for _, alter := range [][2]string{
		{`"version": "2.1.0"`, `"version": "2.0.0"`}, {`"version": "2.1.0", `, ``}, {`"$schema": "https:`, `"$schema": ":`},
		{`"name": "mlxreplay check", `, ``}, {`"id": "race"`, `"id": 1`}, {`"ruleIndex": 0`, `"ruleIndex": -2`}, {`"error"`, `"fatal"`},
		{`"message": {"text": "two"}, `, ``}, {`"text": "two"`, `"txt": "two"`}, {`"startLine": 7`, `"startLine": 0`}, {`"uri": "a.metal"`, `"uri": "%"`},
		{`"startLine": 7`, `"startLine": "7"`}, {`"results"`, `"result"`},
	} {
		require.Contains(t, log, alter[0])
		require.Error(t, validSARIF(strings.Replace(log, alter[0], alter[1], 1)), "%s", alter[1])
	}
}
