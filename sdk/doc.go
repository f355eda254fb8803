// Package sdk holds the first pages of the SDKs that are not written in Go.
//
// The program shows them beside its own documents. The Go SDK is the package client.
package sdk

import "embed"

// Files are the pages, with paths below sdk/.
//
//go:embed typescript/README.md python/README.md
var Files embed.FS
