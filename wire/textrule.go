package wire

import (
	"cmp"
	"fmt"
)

// textRule is the rule of a string member. Lengths are in bytes of UTF-8
// after unescaping.
type textRule struct {
	code Code
	high int
	// tooLong is the code of a string over high bytes, code if empty.
	tooLong Code
	// required makes an absent or empty string a refusal; filled refuses only
	// the empty one.
	required, filled bool
	// exact refuses a lone surrogate, which is otherwise read as U+FFFD: texts that are
	// stored must come out as they went in, and two keys must not become one.
	exact bool
	// problem says what else is wrong with a text that is not empty.
	problem func(text string) string
}

func (o *object) text(field int, rule *textRule) string {
	raw := o.given(field)
	if raw == nil {
		if rule.required {
			o.refuse(rule.code, field, "is required: a string")
		}
		return ""
	}
	if raw[0] != '"' {
		o.refuse(rule.code, field, "must be a string, got "+describe(raw))
		return ""
	}
	text, mended := decodeString(raw)
	if mended && rule.exact && !o.answer {
		o.refuse(rule.code, field, "must be Unicode text, got a surrogate without its partner")
	}
	if !o.answer || rule.required {
		o.checkText(field, text, rule)
	}
	return text
}

// fault is what a text breaks of its rule, and the code of that; empty if nothing.
func (rule *textRule) fault(text string) (code Code, problem string) {
	switch {
	case text == "" && (rule.required || rule.filled):
		return rule.code, "must not be empty"
	case rule.problem != nil && text != "" && rule.problem(text) != "":
		return rule.code, rule.problem(text)
	case len(text) > rule.high:
		return cmp.Or(rule.tooLong, rule.code), fmt.Sprintf("must be at most %d bytes, got %d", rule.high, len(text))
	}
	return "", ""
}
