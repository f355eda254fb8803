// Package conform tries an SDK: it starts the SDK's driver as a process, speaks lines of JSON with it,
// and runs scripted sessions against a real server with a manual clock behind a bad network, or plays the
// server itself. Each script proves one sentence of docs/sdk-guide.md; docs/sdk-lines.md has the lines.
//
// A script runs on one goroutine. The process, the proxy and the server have their own, which end
// with the script. The package knows nothing of any language.
//
// It is one package because its scripts, two thirds of it, are data for the rest.
package conform
