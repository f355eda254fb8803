// Package docs holds the documents, so that the program can show them without a network.
//
// README.md lists every page once: its headings and lists are the navigation of the pages
// that the package docsite makes. Tests in test/docs keep the documents true.
package docs

import "embed"

// Files are the documents and what they show or link to, with paths below docs/.
//
//go:embed *.md concepts/*.md guides/*.md reference/*.md *.yaml images/curves.svg images/overview-dark.png images/task-light.png images/dead-light.png
var Files embed.FS
