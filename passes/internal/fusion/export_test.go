package fusion

// Anew makes a run search around every command, even where the graph repeats itself.
func Anew(o Options) Options {
	o.anew = true
	return o
}
