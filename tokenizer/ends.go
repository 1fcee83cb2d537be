package tokenizer

import (
	"slices"
	"strings"
)

// A model file does not say which tokens end generation. llama.cpp decides by the texts
// of known tokens (llama_vocab::impl::load), and so does this file.

// endTexts end generation in every vocabulary that has them.
var endTexts = strings.Fields(`<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|>
	<end_of_turn> <|endoftext|> </s> <|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance>
	<eos> <turn|> <|tool_response> <｜end▁of▁sentence｜> [e~[`)

// roleTexts name the token of a role if the model file does not. If there are several,
// the lowest ID is taken (llama.cpp takes any).
var roleTexts = []struct {
	role  Role
	texts []string
}{
	{EOT, strings.Fields(`<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <EOT> _<EOT> [EOT]
		<｜end▁of▁sentence｜> <end_of_utterance>`)},
	{EOM, strings.Fields(`<|eom_id|>`)},
	{FIMPre, strings.Fields(`<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> <|prefix|>`)},
	{FIMSuf, strings.Fields(`<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> <|suffix|>`)},
	{FIMMid, strings.Fields(`<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> <|middle|>`)},
	{FIMPad, strings.Fields(`<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]`)},
	{FIMRep, strings.Fields(`<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>`)},
	{FIMSep, strings.Fields(`<|file_sep|>`)},
}

// shownTexts are special tokens that the models which have them also use as text, so
// they are printed.
var shownTexts = strings.Fields(`<|channel|> <|message|> <|start|> <|constrain|>`)

// ends returns the IDs of the tokens that end generation, ascending, and corrects token
// types that model files often get wrong.
func ends(given map[Role]int32, tokenID map[string]int32, kinds []tokenTraits) []int32 {
	role := map[Role]int32{}
	for r, id := range given {
		role[r] = id
	}
	for _, rt := range roleTexts {
		if _, ok := role[rt.role]; ok {
			continue
		}
		for _, id := range lookup(rt.texts, tokenID) {
			role[rt.role] = id
			kinds[id] |= isControl
			break
		}
	}
	set := map[int32]bool{}
	for _, id := range lookup(endTexts, tokenID) {
		set[id] = true
		kinds[id] |= isControl
	}
	for _, id := range lookup(shownTexts, tokenID) {
		kinds[id] = isUserDefined
	}
	for _, r := range []Role{EOS, EOT, EOM, FIMPad, FIMRep, FIMSep} {
		if id, ok := role[r]; ok {
			set[id] = true
		}
	}
	has := func(text string) bool {
		id, ok := tokenID[text]
		return ok && set[id]
	}
	// In the formats of gpt-oss and Solar, <|end|> only ends a part of an answer.
	call := has("<|call|>") || has("<|calls|>")
	if has("<|end|>") && call && (has("<|return|>") || has("<|flush|>")) {
		id := tokenID["<|end|>"]
		delete(set, id)
		kinds[id] = isUserDefined
	}
	// In Gemma 4's format, </s> is an ordinary token.
	if has("<|tool_response>") && has("</s>") {
		id := tokenID["</s>"]
		delete(set, id)
		kinds[id] = isNormal
	}
	out := make([]int32, 0, len(set))
	for id := range set {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// lookup returns the IDs of those texts that the vocabulary has, ascending.
func lookup(texts []string, tokenID map[string]int32) []int32 {
	var ids []int32
	for _, t := range texts {
		if id, ok := tokenID[t]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
