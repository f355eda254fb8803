// Package limit is the door: it takes the limits of tenants, and of their credentials,
// before a request reaches a shard. A limit is one atomic word for the whole server, so it
// holds over all shards. Rates are of package credit; how many tasks wait the shards tell.
//
// The limits of a tenant are a named record. Table.Set comes at the start and once every
// shard has a change. A tenant without limits costs one look into a map.
//
// All functions may be called from any goroutine, and none blocks.
package limit
