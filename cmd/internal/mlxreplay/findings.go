package mlxreplay

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/ir"
)

// report is what a check found, in the form that other programs read.
type report struct {
	graph    *ir.Graph
	file     string // that has the graph
	observed []softmetal.Observed
	findings []finding
	order    []string // what nothing orders, and what depends on the order
}

// source returns the file of a finding's kernel, and the line there: of a Metal source, else the graph's file.
func (r *report) source(f *finding) (file string, line int) {
	if k := kernelsOf(r.graph)[f.Command]; k != nil && k.Library.Kind == ir.SourceFile {
		return filepath.ToSlash(filepath.Join(filepath.Dir(r.file), k.Library.Path)), f.Line
	}
	return filepath.ToSlash(r.file), 0
}

func (f *finding) message() string { return fmt.Sprintf("%s %s: %s", f.Command, f.Kernel, f.Text) }

// github writes a workflow command of GitHub for each finding, which it shows at the line:
// https://docs.github.com/actions/reference/workflow-commands-for-github-actions
func (r *report) github(w io.Writer) error {
	value := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for i := range r.findings {
		f := &r.findings[i]
		file, line := r.source(f)
		at := "file=" + property.Replace(file)
		if line > 0 {
			at += fmt.Sprintf(",line=%d", line)
		}
		if _, err := fmt.Fprintf(w, "::error %s,title=%s::%s\n", at, property.Replace(f.Kind), value.Replace(f.message())); err != nil {
			return err
		}
	}
	for _, text := range r.order {
		if _, err := fmt.Fprintf(w, "::error file=%s,title=order::%s\n", property.Replace(filepath.ToSlash(r.file)), value.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}

// The parts of SARIF 2.1.0 that findings need: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
)

// sarif returns the findings as SARIF, a rule for each kind.
func (r *report) sarif() *sarifLog {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "mlxreplay check", Version: cli.Version("mlxreplay"), Rules: []sarifRule{}}
	rules := map[string]int{}
	add := func(kind, text, file string, line int, kernel string) {
		i, ok := rules[kind]
		if !ok {
			i = len(rules)
			rules[kind] = i
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{kind})
		}
		at := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: file}).String()}}}
		if line > 0 {
			at.Physical.Region = &sarifRegion{line}
		}
		if kernel != "" {
			at.Logical = []sarifLogical{{kernel, "function"}}
		}
		run.Results = append(run.Results, sarifResult{kind, i, "error", sarifText{text}, []sarifLocation{at}})
	}
	for i := range r.findings {
		f := &r.findings[i]
		file, line := r.source(f)
		add(strings.ReplaceAll(f.Kind, " ", "-"), f.message(), file, line, f.Kernel)
	}
	for _, text := range r.order {
		add("order", text, filepath.ToSlash(r.file), 0, "")
	}
	return &sarifLog{"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", "2.1.0", []sarifRun{run}}
}

// The parts of JUnit's XML that programs read.
type (
	junitSuites struct {
		XMLName struct{}     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name     string         `xml:"name,attr"`
		Class    string         `xml:"classname,attr"`
		Failures []junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
	}
)

// junit writes a test case for each dispatch, and one for the order of the graph.
func (r *report) junit(w io.Writer) error {
	s := junitSuite{Name: r.graph.Name}
	of := kernelsOf(r.graph)
	failures := map[ir.ID][]junitFailure{}
	for i := range r.findings {
		f := &r.findings[i]
		failures[f.Command] = append(failures[f.Command], junitFailure{f.Kind, printable(f.message())})
	}
	add := func(c junitCase) {
		if s.Tests++; len(c.Failures) > 0 {
			s.Failures++
		}
		s.Cases = append(s.Cases, c)
	}
	for i := range r.observed {
		id := r.observed[i].Command
		name := ""
		if k := of[id]; k != nil {
			name = k.Function
		}
		add(junitCase{printable(fmt.Sprintf("%s %s", id, name)), r.graph.Name, failures[id]})
	}
	order := junitCase{Name: "order", Class: r.graph.Name}
	for _, text := range r.order {
		order.Failures = append(order.Failures, junitFailure{"order", printable(text)})
	}
	add(order)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{s}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// printable replaces what XML cannot hold.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, s)
}
