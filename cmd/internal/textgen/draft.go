package textgen

import "fmt"

// Lengths of the sequences of tokens by which guesses are looked up.
const (
	shortestMatch = 3
	longestMatch  = 5
)

// drafter guesses what follows a text from what followed the same last tokens when they were there before, as answers do that
// repeat what they were asked about (https://github.com/apoorvumang/prompt-lookup-decoding). A guess costs time only: a step
// runs all of them at once, and says which were right.
type drafter struct {
	most   int // guesses of a step
	text   []int32
	behind map[match]int // where the text went on behind the last occurrence of these tokens
	length int           // how many guesses the next step has at most
	wait   int           // for so many tokens nothing is guessed
	missed int           // how long to wait if the next step's guesses are all wrong
}

// match are the last tokens of a text; the first ones are −1 if it is shorter than longestMatch.
type match [longestMatch]int32

func newDrafter(most int, text []int32) *drafter {
	d := &drafter{most: most, behind: map[match]int{}}
	d.length = d.next(1)
	for _, id := range text {
		d.add(id)
	}
	return d
}

// ending returns the last n tokens.
func (d *drafter) ending(n int) match {
	var m match
	for i := range m {
		m[i] = -1
	}
	copy(m[longestMatch-n:], d.text[len(d.text)-n:])
	return m
}

// add goes on with the text.
func (d *drafter) add(id int32) {
	for n := shortestMatch; d.most > 0 && n <= min(longestMatch, len(d.text)); n++ {
		d.behind[d.ending(n)] = len(d.text)
	}
	d.text = append(d.text, id)
	d.wait = max(0, d.wait-1)
}

// guess returns at most so many tokens that may follow; none if there is no guess. Where what followed before reaches the end of the text, the guesses
// themselves are what follows.
func (d *drafter) guess(most int) (out []int32) {
	most = min(most, d.length)
	if d.wait > 0 || most <= 0 {
		return nil
	}
	for n := min(longestMatch, len(d.text)); n >= shortestMatch; n-- {
		from, ok := d.behind[d.ending(n)]
		if !ok {
			continue
		}
		for i := from; len(out) < most; i++ {
			if i < len(d.text) {
				out = append(out, d.text[i])
			} else {
				out = append(out, out[i-len(d.text)])
			}
		}
		return out
	}
	return nil
}

// learn is told how many of the last guesses were right. Rows of a step are powers of two where they can be, since there are kernels
// for so many: with the next token 2, 4, 8 and so on. Where guesses are wrong again and again, more and more tokens go without one.
func (d *drafter) learn(guessed, right int) {
	switch {
	case guessed == 0:
		return
	case right == guessed:
		d.length = d.next(guessed + 1)
	case right > 0:
		d.length = d.next(right)
	default:
		d.length = d.next(1)
		d.wait, d.missed = d.missed, min(2*d.missed+1, 16)
		return
	}
	d.missed = 0
}

// next returns the least number of guesses, not less than n, that makes the rows of a step a power of two.
func (d *drafter) next(n int) int {
	rows := 2
	for rows < n+1 {
		rows *= 2
	}
	return min(d.most, rows-1)
}

// Drafts returns how many guesses a step verifies at most; 0: the module has no graph for it.
func (m *Model) Drafts() int { return m.drafts }

func (m *Model) checkDraft(o Options) error {
	switch {
	case o.Draft < 0:
		return fmt.Errorf("a draft of %d tokens makes no sense", o.Draft)
	case o.Draft == 0:
		return nil
	case m.verify == nil:
		return fmt.Errorf("a draft of %d tokens: there is no graph that verifies guesses (mlxc record --draft %[1]d makes one)", o.Draft)
	case o.Draft > m.drafts:
		return fmt.Errorf("a draft of %d tokens: %s verifies up to %d (mlxc record --draft %[1]d verifies more)", o.Draft, m.verify, m.drafts)
	case o.Burst > 1:
		return fmt.Errorf("%d tokens in a burst, and a draft of %d: the host has to see which guesses were right", o.Burst, o.Draft)
	}
	return nil
}
