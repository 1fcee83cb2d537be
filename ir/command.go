package ir

// Command is a node that is executed: a [*Dispatch], [*Copy], [*Fill] or [*Carry],
// or a [*Join], which touches nothing. The other nodes are marks between commands.
type Command interface {
	Node
	// Num returns the command's own ID.
	Num() ID
	// Origin returns the recorded commands that this one implements (its From); nil
	// for a command that implements itself.
	Origin() []ID
	// Renumber gives the command another ID and origin.
	Renumber(id ID, from []ID)
	// Touches returns the bytes that the command touches: the declared effects of a dispatch (nil
	// if they are unknown), or the views of any other command.
	Touches() *Effects
	// EachView calls f with each view that the command binds; f may change it.
	EachView(f func(*View))
}

// Num implements [Command].
func (d *Dispatch) Num() ID { return d.ID }

// Num implements [Command].
func (c *Copy) Num() ID { return c.ID }

// Num implements [Command].
func (f *Fill) Num() ID { return f.ID }

// Num implements [Command].
func (j *Join) Num() ID { return j.ID }

// Origin implements [Command].
func (d *Dispatch) Origin() []ID { return d.From }

// Origin implements [Command].
func (c *Copy) Origin() []ID { return c.From }

// Origin implements [Command].
func (f *Fill) Origin() []ID { return f.From }

// Origin implements [Command]: a join implements nothing that was recorded.
func (j *Join) Origin() []ID { return nil }

// Renumber implements [Command].
func (d *Dispatch) Renumber(id ID, from []ID) { d.ID, d.From = id, from }

// Renumber implements [Command].
func (c *Copy) Renumber(id ID, from []ID) { c.ID, c.From = id, from }

// Renumber implements [Command].
func (f *Fill) Renumber(id ID, from []ID) { f.ID, f.From = id, from }

// Renumber implements [Command].
func (j *Join) Renumber(id ID, _ []ID) { j.ID = id }

// Touches implements [Command].
func (d *Dispatch) Touches() *Effects { return d.Effects }

// Touches implements [Command].
func (c *Copy) Touches() *Effects {
	return &Effects{Complete: true, Reads: []Region{c.Src.Contiguous()}, Writes: []Write{{Region: c.Dst.Contiguous(), Must: true}}}
}

// Touches implements [Command].
func (f *Fill) Touches() *Effects {
	return &Effects{Complete: true, Writes: []Write{{Region: f.Dst.Contiguous(), Must: true}}}
}

// Touches implements [Command].
func (j *Join) Touches() *Effects { return &Effects{Complete: true} }

// EachView implements [Command].
func (d *Dispatch) EachView(f func(*View)) {
	for i := range d.Bindings {
		if d.Bindings[i].Kind == BindView {
			f(&d.Bindings[i].View)
		}
	}
	if x := d.Indirect; x != nil {
		if x.Grid != nil {
			f(x.Grid)
		}
		for i := range x.Offsets {
			f(&x.Offsets[i].At)
		}
	}
}

// EachView implements [Command]: the destination first.
func (c *Copy) EachView(f func(*View)) {
	f(&c.Dst)
	f(&c.Src)
}

// EachView implements [Command].
func (f *Fill) EachView(each func(*View)) { each(&f.Dst) }

// EachView implements [Command].
func (j *Join) EachView(func(*View)) {}

// LabelOf returns what its engine called a command; "" if it gave it no name.
func LabelOf(n Node) string {
	switch n := n.(type) {
	case *Dispatch:
		return n.Label
	case *Copy:
		return n.Label
	case *Fill:
		return n.Label
	case *Carry:
		return n.Label
	}
	return ""
}
