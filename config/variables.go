package config

import (
	"errors"
	"slices"
	"strings"

	"codeq/wire"
)

// servicePart is how Kubernetes begins the end of a variable about a service.
const servicePart = "_SERVICE_HOST"

// strangers finds variables that begin as ours do and are no settings: a name
// that was typed wrong must not be passed over. Kubernetes sets some for every
// service it knows, one that is called codeq above all; those are not meant.
func (r *Resolved) strangers(from *Sources) []error {
	ours := slices.Clone(from.Beside)
	for i := range r.rows {
		ours = append(ours, r.rows[i].Env())
	}
	services := []string{strings.TrimSuffix(envPrefix, "_")}
	for _, name := range from.Variables {
		if service, ok := strings.CutSuffix(name, servicePart); ok {
			services = append(services, service)
		}
	}
	var found []error
	for _, name := range slices.Sorted(slices.Values(from.Variables)) {
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(ours, name) || from.Env(name) == "" ||
			slices.ContainsFunc(services, func(service string) bool { return isOfService(name, service) }) {
			continue
		}
		found = append(found, errors.New(wire.NotKnown("variable ", name, ours)))
	}
	return found
}

// isOfService says whether a variable is one that Kubernetes sets for a service.
func isOfService(name, service string) bool {
	rest, ok := strings.CutPrefix(name, service)
	return ok && (strings.HasPrefix(rest, "_SERVICE_") || rest == "_PORT" || strings.HasPrefix(rest, "_PORT_"))
}
