// Package repo holds the rules of the repository, written as tests: the import
// table, the size of functions and files, what the deterministic core must not
// call, what a tracked file must not contain.
//
// It has no code but tests, which run in the root of the repository. Each
// failure says why the rule exists and how to satisfy it. It must not know any
// package of codeq: it reads their sources.
package repo
