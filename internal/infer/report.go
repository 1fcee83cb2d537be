package infer

import "github.com/mlxc/mlxc/ir"

// Left is a dispatch about which nothing can be said, and the reason.
type Left struct {
	Graph   string `json:"graph"`
	Command ir.ID  `json:"command"`
	Kernel  string `json:"kernel"`
	Why     string `json:"why"`
}

// Fit compares an argument of a proposal, or of a declaration, with what was observed.
type Fit struct {
	Slot     uint8  `json:"slot"`
	Argument string `json:"argument"`
	Access   string `json:"access"` // as the declaration says it
	Shape    string `json:"shape,omitempty"`
	// Exact says that in every observed shape just the declared bytes were touched.
	Exact bool `json:"exact"`
	// Skips says that it depends on the contents of memory which of the declared bytes are touched, each with some contents.
	Skips bool `json:"skips,omitempty"`
	// Touched and Declared are numbers of bytes, summed over all observed shapes.
	Touched  int64 `json:"touched"`
	Declared int64 `json:"declared"`
	// Loosest is the shape with the most bytes that are declared and not touched.
	Loosest string `json:"loosest,omitempty"`
	Why     string `json:"why,omitempty"` // why it is not exact
}

// Counts are numbers of dispatches, shapes and runs.
type Counts struct {
	Dispatches int `json:"dispatches"` // dispatches of the kernel in the graph
	Real       int `json:"real"`       // shapes of the graph, at values of its params
	Made       int `json:"made"`       // shapes that were made up
	HeldOut    int `json:"heldOut"`    // of these, shapes that the proposal was not fitted to
	Refused    int `json:"refused"`    // made-up shapes in which the kernel does what it must not
	Runs       int `json:"runs"`       // dispatches that ran
}

// Proposal is a declaration of effects that holds for everything that was observed.
type Proposal struct {
	Kernel  string     `json:"kernel"`
	Library ir.Library `json:"-"`
	Text    string     `json:"text"` // the lines of the declaration
	Fits    []Fit      `json:"arguments"`
	Counts  Counts     `json:"counts"`
	// Exact says that all arguments are exact.
	Exact bool `json:"exact"`
	// Notes are what the author should know before accepting.
	Notes []string `json:"notes,omitempty"`
}

// Broken is a contradiction between a declaration and what was seen.
type Broken struct {
	Kind     string `json:"kind"` // undeclared read, undeclared write, not written
	Argument string `json:"argument"`
	Lo       int64  `json:"lo"` // range in the view: the first byte, and the one behind the last
	Hi       int64  `json:"hi"`
	Bytes    int64  `json:"bytes"` // how many bytes of the range
	Shape    string `json:"shape"`
	Detail   string `json:"detail,omitempty"` // the thread and the line, where they are known
}

// Comparison is the result of comparing a declaration with what was observed.
type Comparison struct {
	Kernel   string   `json:"kernel"`
	Declared string   `json:"declared"` // what declares it, such as a file and line
	Broken   []Broken `json:"broken,omitempty"`
	Fits     []Fit    `json:"arguments"`
	Counts   Counts   `json:"counts"`
	Notes    []string `json:"notes,omitempty"`
}

// Report is the result of observing the kernels of some graphs.
type Report struct {
	Seed        uint64       `json:"seed"`
	Proposals   []Proposal   `json:"proposals,omitempty"`
	Comparisons []Comparison `json:"comparisons,omitempty"`
	Left        []Left       `json:"left,omitempty"`
}
