package config

import (
	"errors"
	"slices"
	"strings"

	"codeq/wire"
)

// servicePart ends the name of the variable that Kubernetes sets for each service.
const servicePart = "_SERVICE_HOST"

// unknownVariables is an error for each variable that begins with CODEQ_ and is no
// setting: a name with a typing error would otherwise have no effect. The variables that
// Kubernetes sets for its services, among them one called codeq, are left out.
func (r *Resolved) unknownVariables(from *Sources) []error {
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

// isOfService reports whether Kubernetes sets this variable for a service.
func isOfService(name, service string) bool {
	rest, ok := strings.CutPrefix(name, service)
	return ok && (strings.HasPrefix(rest, "_SERVICE_") || rest == "_PORT" || strings.HasPrefix(rest, "_PORT_"))
}
