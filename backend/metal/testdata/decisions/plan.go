package plan

// Planted names the wrong decision that is taken; "": none is.
var Planted string

func planted(name string) bool { return Planted == name }
