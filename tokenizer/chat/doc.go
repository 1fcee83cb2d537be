// Package chat renders a conversation with a model's own chat template.
//
// A chat template is a Jinja program that comes with the model (tokenizer.chat_template
// in a GGUF file). It turns messages into the one text that the model was trained to
// continue.
//
// [Render] runs a template as Hugging Face transformers configures Jinja: an immutable
// sandbox with trim_blocks and lstrip_blocks, without HTML escaping, with break and
// continue, with the tag {% generation %}, the functions raise_exception and
// strftime_now, and a tojson that does not escape. The variables are messages (each
// with role and content), bos_token, eos_token and add_generation_prompt. Statements,
// expressions, filters, tests, and methods of strings, lists and dictionaries are those
// that published chat templates use. Anything else is an error that names it and its
// line; filters, tests, methods and call blocks only when they are reached, because many
// templates need them for tools alone.
//
// There are no tools or documents (those variables are none, as transformers passes them), messages whose
// content consists of parts are not supported, and a template cannot read other files
// (include, import, extends and block do not exist here).
//
// It is compared with jinja2 on the data of testdata/gen/chat.py and chat_fuzz.py:
// whole conversations, single constructs, white space, and random programs. These are
// the differences:
//   - whole numbers have 64 bits; what goes beyond is an error;
//   - a name is looked up when it is read. jinja2 decides before it runs, so
//     that in a template whose variable is set after a macro that reads it, the
//     macro does not see a variable of that name from outside;
//   - a slice of a value that cannot be sliced is always an error; jinja2 gives
//     an undefined value if it can evaluate the slice when it compiles the
//     template;
//   - map, select, reject and similar filters go through their whole input at
//     once, so that an error in an element shows even if the result is not used,
//     and what they give can be read once;
//   - a function, a namespace, a range or a view of a dictionary cannot be printed.
//
// A template is code from a model file. It cannot touch files, and everything that it
// does is bounded ([Limits]): its size, the steps it takes, the bytes of its values,
// its output, its time, and how deeply anything is nested. All of this is accounted for
// before it happens. Parsing takes time in proportion to the template's length. If the
// context is cancelled, the rendering ends within a few thousand steps.
//
// Encode the result with special tokens allowed. A user's text that contains
// "<|im_end|>" then ends the user's turn. If messages cannot be trusted, this must be
// dealt with before rendering.
//
// Smallest example:
//
//	text, err := chat.Render(ctx, tok.ChatTemplate(), []chat.Message{
//		{Role: "user", Content: "Hi"},
//	}, chat.Options{AddGenerationPrompt: true})
//	ids := tok.Encode(text, true)
package chat
