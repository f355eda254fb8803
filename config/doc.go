// Package config is the table of settings of the server: one struct, Serve,
// whose tags say name, default, range and meaning of each. Flag, variable of
// the environment and key in the file follow from the name; help, validation,
// "codeq serve --print-config" and docs/config.md follow from the table.
//
// A flag beats the environment, that beats the file, that the default. What is
// unknown or out of range is an error that says where it was set: the flag,
// the variable, or file and line. All of them are told at once.
//
// The package is called once, by whoever starts the server, and nobody else
// imports it: settings are handed on as small values. It starts no goroutine,
// reads the file it is told to and no other, and does not parse the command
// line.
package config

//go:generate go test -run TestTheDocumentIsFresh -rewrite .
