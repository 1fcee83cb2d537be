package fusion

// Anew makes a run search around every command, whatever repeats.
func Anew(o Options) Options {
	o.anew = true
	return o
}
