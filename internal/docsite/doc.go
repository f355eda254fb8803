// Package docsite makes pages for a browser out of the documents.
//
// The documents are Markdown below docs/ and sdk/. docs/README.md is the first page and the
// navigation: each heading of the second level is a group, each item of its lists that begins
// with a link is a page. All pages are made at once and kept in memory; Site serves them over
// HTTP and writes them into a directory. Addresses are relative and the index for the search is
// a script, so pages work from a directory, below any prefix and without a network.
//
// Nothing here knows a server of codeq.
package docsite
