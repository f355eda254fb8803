// Package yamlfile reads the files that people write for codeq, YAML or JSON,
// into plain values that know their line, so that whoever looks at one can say
// where it is wrong.
//
// It wraps goccy/go-yaml and is the one place that guards against what YAML
// can do to a reader: a file has one document, at most MaxBytes and a bounded
// depth, no key twice, no anchors, aliases, merges or tags, and a parser that
// panics is an error. A scalar stays the text as it was written; what it means
// is for the reader to say, so a name may be 007 or yes.
//
// Errors name file and line and say what is wrong there without quoting the
// file, which may hold secrets. The package has no state, starts no goroutine
// and knows no setting.
package yamlfile
