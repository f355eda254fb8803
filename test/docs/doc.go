// Package docs holds the tests that keep the pages below docs/ true.
//
// They run in that directory, send every example of reference/ to a server in
// their own process and compare what comes back, run every example of cli.md with
// the built program, hold the tables against the constants they speak of, and
// check each answer against the schemas of openapi.yaml. config.md is written by
// the package config, security.md belongs to auth.
//
// Nothing may import the package, and it must not know more of the server than
// a client can see, but for the lists of routes, frames, codes and limits.
package docs
