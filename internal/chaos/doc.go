// Package chaos is a bad network between clients and a server: a proxy that cuts, holds, drops, delays
// and slows what goes through it, and leaves half a connection open. Its goroutines end with Close. It
// knows nothing of what is said.
package chaos
