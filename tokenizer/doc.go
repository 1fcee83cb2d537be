// Package tokenizer turns text into token IDs and back, by byte-level byte-pair
// encoding (BPE), by a SentencePiece vocabulary, by BPE of characters or by unigrams.
//
// It has the tokenizers that GGUF files call model "gpt2", with the pre-tokenizers of the table in pre.go (those of Llama
// 3, Qwen 2 and 3, Mistral's tekken, GPT-4o, SmolLM, GPT-2 and others), and those that they call model "llama"
// (SentencePiece: texts with scores; Llama 1 and 2, older models of Mistral), and returns the same IDs as llama.cpp for
// the same file. It refuses any other model or pre-tokenizer by name.
//
// Of tokenizer.json files ([FromJSON]) it has byte-level BPE, with the expressions of Llama 3, Qwen 2, gpt-oss (o200k), tekken, GPT-2 and
// SmolLM, BPE of characters with bytes for those that are no token, as Llama 2, Mistral, Gemma and Phi 3 have it, and unigrams; and
// returns the same IDs as Hugging Face's tokenizers 0.23. A model that is made of characters has [Rules] for normalization, spaces and
// special tokens (rules.go); characters.go and unigram.go encode, spm.go has SentencePiece. The rest of this page is about byte-level BPE.
//
// Encoding has four steps, one file each:
//
//  1. special.go cuts out special tokens, such as <|im_end|>, where they are
//     allowed: they are found in the raw text, before anything else.
//  2. pre.go splits what is left into words, by the regular expressions of the
//     model's pre-tokenizer: contractions, letters, digits, signs and white space.
//  3. alphabet.go writes each byte of a word as one character (GPT-2's
//     alphabet, in which a space is Ġ): the smallest symbols.
//  4. merge.go joins neighbouring symbols, lowest rank first, until no merge
//     applies. What remains are the tokens.
//
// There are no other families (WordPiece), for byte-level BPE no normalisation but Unicode's form C, no training, and no
// chat templates (package chat, below this one). Encode never adds a BOS token by itself: see [Tokenizer.AddBOS].
//
// Unicode's forms (normal.go) are those of Hugging Face's tokenizers, to which characters newer than Unicode 9 neither change nor move.
//
// Three things may surprise, the first two of which llama.cpp does too:
//   - A byte for which the vocabulary has no token disappears. SmolLM2 lacks
//     U+0004, U+0006, U+0013, U+0014, U+0016 and U+001D; see
//     [Tokenizer.MissingBytes]. All other valid UTF-8 survives the round trip.
//   - Bytes that are not UTF-8 become U+FFFD, one for each byte, except that
//     surrogates are kept and overlong forms are shortened. llama.cpp aborts on
//     four-byte forms above U+10FFFF; here their bytes become U+FFFD.
//   - Decode returns the bytes of byte tokens as they are. Hugging Face's tokenizers replace all bytes of a run that
//     is not UTF-8.
//
// A token is an entry of the vocabulary, and its ID is its number there. A piece is the
// bytes that a token stands for. A merge is a pair of symbols that may be joined, and
// its rank is its position in the list of merges. Special tokens are looked for in raw
// text. An end-of-generation token ends a model's answer.
//
// A [Spec] is the data that a tokenizer is made from. Package gguf reads one from a
// model file; [Marshal] and [Unmarshal] store it in this module's own form.
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
