// Package chat renders a conversation with a model's own chat template.
//
// A chat template is a Jinja program that comes with the model
// (tokenizer.chat_template in a GGUF file) and turns messages into the one text
// that the model was trained to continue.
//
// What: [Render] runs a template as Hugging Face transformers let Jinja do it:
// an immutable sandbox, trim_blocks and lstrip_blocks on, no HTML escaping,
// break and continue, the tag {% generation %}, the functions raise_exception
// and strftime_now, a tojson that does not escape. The variables are messages
// (each with role and content), bos_token, eos_token and add_generation_prompt.
// Statements, expressions, filters, tests and methods of strings, lists and
// dictionaries are those that published chat templates use; anything else is
// an error that says so.
//
// What not: no tools or documents (those variables are undefined), no content
// in parts, no other files (include, import, extends and block do not exist
// here).
//
// It is compared with jinja2 on data of testdata/gen/chat.py and chat_fuzz.py:
// whole conversations, single constructs, white space, and random programs. What
// differs:
//   - whole numbers have 64 bits; what goes beyond is an error;
//   - a name is looked up when it is read. jinja2 decides before it runs, so
//     that in a template whose variable is set after a macro that reads it, the
//     macro does not see a variable of that name from outside;
//   - a slice of what has none is always an error; jinja2 makes it undefined
//     where it can compute it beforehand;
//   - map, select and their like go through their input at once, so that an
//     error in an element shows even if nobody looks at it;
//   - what Python would print with an address cannot be printed.
//
// A template is code from a model file. It cannot touch files, and whatever it
// does is bounded ([Limits]): its size, the steps it takes, the bytes of its
// values, its output, its time, and how deep anything is within anything. All
// of that counts before it happens. Reading it takes time in proportion to its
// length. A context ends it at once.
//
// Encode the result with specials allowed. A user's text that spells
// "<|im_end|>" then ends his turn: whoever cannot trust the messages must say
// what to do about that before rendering.
//
// Smallest example:
//
//	text, err := chat.Render(ctx, tok.ChatTemplate(), []chat.Message{
//		{Role: "user", Content: "Hi"},
//	}, chat.Options{AddGenerationPrompt: true})
//	ids := tok.Encode(text, true)
package chat
