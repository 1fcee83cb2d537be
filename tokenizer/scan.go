package tokenizer

// splitSmollm cuts text into words, and calls word with the code points of each, in
// order. Joined, they are the text. It implements the pre-tokenizer "smollm": first
// every \p{N} becomes a word of its own, then the stretches between are matched from
// the left by
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// It follows that only lower-case contractions are found, and that the space before a
// digit is a word of its own.
func splitSmollm(text []rune, word func([]rune)) {
	for len(text) > 0 {
		if classOf(text[0]) == number {
			word(text[:1])
			text = text[1:]
			continue
		}
		n := 1
		for n < len(text) && classOf(text[n]) != number {
			n++
		}
		for rest := text[:n:n]; len(rest) > 0; {
			k := wordLen(rest)
			word(rest[:k])
			rest = rest[k:]
		}
		text = text[n:]
	}
}

// wordLen returns the length of the first word of s, which must not be empty and has no
// numbers.
func wordLen(s []rune) int {
	if n := contraction(s); n > 0 {
		return n
	}
	// One space may begin a word, but only U+0020.
	start := 0
	if s[0] == ' ' && len(s) > 1 {
		start = 1
	}
	if c := classOf(s[start]); c == letter || c == sign {
		n := start + 1
		for n < len(s) && classOf(s[n]) == c {
			n++
		}
		return n
	}
	n := 1 // s[0] is white space: nothing else is possible
	for n < len(s) && classOf(s[n]) == space {
		n++
	}
	if n > 1 && n < len(s) {
		return n - 1 // \s+(?!\S): the last space belongs to what follows
	}
	return n
}

// contraction returns the length of 's, 't, 'm, 'd, 're, 've or 'll at the beginning of
// s, or 0.
func contraction(s []rune) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) < 3 {
		return 0
	}
	switch string(s[1:3]) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}
