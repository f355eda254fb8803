// Package config is the table of settings of the server. The tags of the struct Serve say
// name, default, range and meaning of each setting. Flag, variable of the environment and
// key in the file follow from the name; help, validation, "codeq serve --print-config"
// and the table in docs/config.md follow from the tags.
//
// A flag beats the environment, the environment beats the file, the file beats the
// default. A value that is unknown or out of range is an error that says where it was
// set: the flag, the variable, or file and line. One error reports all of them.
//
// Only the command that starts the server calls this package; the other packages get
// their settings as small values. It starts no goroutine, reads only the file that it is
// given, and does not parse the command line.
package config

//go:generate go test -run TestTheDocumentIsFresh -rewrite .
