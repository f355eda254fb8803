// Package conform tries the Go SDK with the kit of `codeq conform`, and the kit with faults: for each
// script one is put into the SDK or its driver, and the script must fail over it. Its driver is the
// program in the directory driver.
package conform
