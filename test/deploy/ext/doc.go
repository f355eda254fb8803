// Package ext has the two types by which Traefik's configuration can be extended, without a field. Traefik's
// packages import it from a module that only Traefik's repository has, so go.mod has it replaced by this one.
// Nothing runs here.
package ext
