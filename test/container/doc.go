// Package container tries the image that `make image` makes as a container runtime would start it: its
// files as a root that nobody may write, an unprivileged user, namespaces of its own, and the signal
// of a stop. make deploy-test makes the image first and runs it.
package container
