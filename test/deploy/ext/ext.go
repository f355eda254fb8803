package ext

// HTTP adds nothing to Traefik's HTTP configuration.
type HTTP struct{}

// Router adds nothing to a router.
type Router struct{}
