package infer

import "github.com/mlxc/mlxc/ir"

// Left is a dispatch of which nothing can be said, and why.
type Left struct {
	Graph   string `json:"graph"`
	Command ir.ID  `json:"command"`
	Kernel  string `json:"kernel"`
	Why     string `json:"why"`
}

// Fit is how an argument of a proposal, or of a declaration, compares with what was seen.
type Fit struct {
	Slot     uint8  `json:"slot"`
	Argument string `json:"argument"`
	Access   string `json:"access"` // as the declaration says it
	Shape    string `json:"shape,omitempty"`
	// Exact: in every shape that was observed it is these bytes, and no others.
	Exact bool `json:"exact"`
	// Touched and Declared are bytes, in all observed shapes together.
	Touched  int64 `json:"touched"`
	Declared int64 `json:"declared"`
	// Loosest is the shape in which most is declared and not touched.
	Loosest string `json:"loosest,omitempty"`
	Why     string `json:"why,omitempty"` // why it is not exact
}

// Counts are how many shapes were observed.
type Counts struct {
	Dispatches int `json:"dispatches"` // of the graph, that a kernel has
	Real       int `json:"real"`       // shapes of the graph, at values of its params
	Made       int `json:"made"`       // shapes that were made up
	HeldOut    int `json:"heldOut"`    // of these, those that the proposal was not made from
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
	// Exact: all arguments are.
	Exact bool `json:"exact"`
	// Notes are what the author should know before accepting.
	Notes []string `json:"notes,omitempty"`
}

// Broken is a contradiction between a declaration and what was seen.
type Broken struct {
	Kind     string `json:"kind"` // undeclared read, undeclared write, not written
	Argument string `json:"argument"`
	Lo       int64  `json:"lo"` // bytes of the view, the first of them and the one after the last
	Hi       int64  `json:"hi"`
	Bytes    int64  `json:"bytes"` // how many there are
	Shape    string `json:"shape"`
	Detail   string `json:"detail,omitempty"` // the thread and the line, where they are known
}

// Comparison holds a declaration against what was seen.
type Comparison struct {
	Kernel   string   `json:"kernel"`
	Declared string   `json:"declared"` // by what
	Broken   []Broken `json:"broken,omitempty"`
	Fits     []Fit    `json:"arguments"`
	Counts   Counts   `json:"counts"`
	Notes    []string `json:"notes,omitempty"`
}

// Report is what there is to say about the kernels of some graphs.
type Report struct {
	Seed        uint64       `json:"seed"`
	Proposals   []Proposal   `json:"proposals,omitempty"`
	Comparisons []Comparison `json:"comparisons,omitempty"`
	Left        []Left       `json:"left,omitempty"`
}
