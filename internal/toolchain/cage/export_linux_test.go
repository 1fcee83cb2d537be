package cage

// Tried returns why a kind of cage is not to be had here.
func Tried(k Kind) error {
	if k == None {
		return nil
	}
	return tried(k)
}
