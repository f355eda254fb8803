// Package replica keeps the database of a node of a cluster as the log of the cluster says.
//
// A leader's shards make batches as ever. A [Lease] gathers those that are ready into entries
// of the log, which hashicorp/raft carries to the other nodes; each node writes the bytes of
// an entry into its database when a majority has it, and with them the position in the log, so
// that no entry is written twice or left out whatever happens. An entry begins with the epoch
// of its leader, the index of the entry by which it opened its time as a leader, and each batch
// has its number in its shard: a batch of an earlier epoch, or one before which a batch is
// missing, is skipped by all nodes alike, because the leader that made it did not know what
// the others had done.
package replica
