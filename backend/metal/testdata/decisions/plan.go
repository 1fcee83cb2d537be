package plan

// Planted is the name of the wrong decision that is switched on; "": none is.
var Planted string

func planted(name string) bool { return Planted == name }
