// Package codeq is the root of the module and holds no code: the program is
// cmd/codeq, its parts are the packages beside this file, and ARCHITECTURE.md
// says which part may know which.
//
// What lives here are the rules of the repository, written as tests
// (repo*_test.go): the import table, the size of functions and files, what the
// deterministic core must not call, what a tracked file must not contain. Each
// failure says why the rule exists and how to satisfy it.
package codeq
