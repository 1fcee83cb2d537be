// Package chat renders a conversation with a model's own chat template.
//
// A chat template is a Jinja program that comes with the model
// (tokenizer.chat_template in a GGUF file) and turns messages into the one text
// that the model was trained to continue.
//
// What: [Render] runs a template under github.com/nikolalohinski/gonja/v2, set
// up as Hugging Face transformers set up Jinja for this purpose: trim_blocks and
// lstrip_blocks on, no HTML escaping, break and continue, the tag
// {% generation %}, the functions raise_exception and strftime_now, a tojson
// that does not escape. The variables are messages (each with role and
// content), bos_token, eos_token and add_generation_prompt.
//
// What not: no tools or documents (those variables are undefined), no content
// in parts, no other files (include, import and extends do not exist here).
//
// gonja is not Jinja to the last detail. What chat templates use every day and
// gonja does otherwise is put right here: white space control (whitespace.go),
// conditional expressions inside brackets (conditional.go), lists, strings and
// dictionaries (repairs.go). The rest is compared with jinja2, construct by
// construct, on data of testdata/gen/chat.py; the differences that remain are a
// list in render_test.go. Those that do not end in an error:
//   - none is not printed as None, and an undefined value counts as none;
//   - 2 ** 3 is 8.0, and // and % round towards 0 for negative numbers;
//   - a loop over a string goes by bytes, and 'a'[-1] is undefined;
//   - a string joined to an undefined value is the string.
//
// A template is code from a model file. It cannot touch files, and its size,
// its output, the length of range and all nesting are bounded; its running
// time and memory are not.
//
// Encode the result with specials allowed. A user's text that spells
// "<|im_end|>" then ends his turn: whoever cannot trust the messages must say
// what to do about that before rendering.
//
// Smallest example:
//
//	text, err := chat.Render(tok.ChatTemplate(), []chat.Message{
//		{Role: "user", Content: "Hi"},
//	}, chat.Options{AddGenerationPrompt: true})
//	ids := tok.Encode(text, true)
package chat
