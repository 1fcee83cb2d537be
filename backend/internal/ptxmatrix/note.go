package ptxmatrix

import "encoding/json"

// noteLine begins the line of a [Kernel.Note].
const noteLine = "\n// mlxc fit: "

func note(f Fit) []byte {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // numbers and booleans
	}
	return append([]byte(noteLine), text...)
}

// Note implements [Kernel].
func (*product) Note(f Fit) []byte { return note(f) }

// Note implements [Kernel].
func (*attention) Note(f Fit) []byte { return note(f) }

// Noted reads a note, without what begins its line.
func Noted(note []byte) (f Fit, err error) {
	err = json.Unmarshal(note, &f)
	return f, err
}
