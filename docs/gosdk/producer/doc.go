// Command producer posts three tasks and prints their results.
// It is shown whole by docs/go.md, which a test compares with the file. It reads the address of the
// server from CODEQ_URL and a token from CODEQ_TOKEN.
package main
