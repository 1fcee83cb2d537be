// Package tokenizer turns text into token ids and back, by byte-level BPE.
//
// What: the tokenizers that GGUF files call model "gpt2" with pre-tokenizer
// "smollm", with the same ids that llama.cpp gives for the same file. Any other
// model or pre-tokenizer is refused by name.
//
// Encoding has four steps, one file each:
//
//  1. special.go cuts out special tokens, such as <|im_end|>, where they are
//     allowed: they are found in the raw text, before anything else.
//  2. scan.go splits what is left into words: every digit alone, then
//     contractions, letters, signs and white space.
//  3. alphabet.go writes each byte of a word as one character (GPT-2's
//     alphabet, in which a space is Ġ): the smallest symbols.
//  4. merge.go joins neighbouring symbols, lowest rank first, until no merge
//     applies. What remains are the tokens.
//
// What not: no other families (SentencePiece, WordPiece), no normalisation, no
// training, no chat templates (package chat, below this one), and Encode never
// adds a BOS token by itself: see [Tokenizer.AddBOS].
//
// Two things llama.cpp does that surprise, done here too:
//   - A byte for which the vocabulary has no token disappears. SmolLM2 lacks
//     U+0004, U+0006, U+0013, U+0014, U+0016 and U+001D; see
//     [Tokenizer.MissingBytes]. All other valid UTF-8 survives the round trip.
//   - Bytes that are not UTF-8 become U+FFFD, one for each byte, except that
//     surrogates are kept and overlong forms are shortened. llama.cpp aborts on
//     four-byte forms above U+10FFFF; here their bytes become U+FFFD.
//
// Words: a token is an entry of the vocabulary, an id its number; a piece is
// the bytes that a token stands for; a merge is a pair of symbols that may be
// joined, its rank its place in the list; special tokens are those matched in
// raw text; an end-of-generation token stops a model's answer.
//
// A [Spec] is the data a tokenizer is made from. Package gguf reads one from a
// model file; [Marshal] and [Unmarshal] carry it in our own container.
//
// Smallest example:
//
//	tok, err := tokenizer.New(spec)
//	if err != nil {
//		return err
//	}
//	ids := tok.Encode("The capital of France is", false) // 504 3575 282 4649 314
//	text := tok.Decode(ids, false)
//
// A Tokenizer does not change after New and may be used by many goroutines.
package tokenizer
