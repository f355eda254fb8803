// Package record has what a data directory keeps: the records of tasks, leases,
// queues and shards, their keys, and the bytes that both become there. Records
// become bytes here and nowhere else.
//
// It imports nothing but wire, and everything in it is a value: no function reads
// a file, a clock or a lock, and any goroutine may call any of them. Package store
// writes these keys and values; index and lease keep records in memory.
//
// # Keys
//
// A key is two bytes of the number of its shard, one of its family (what kind of key it
// is), and what the family says. Numbers are big end first, so that keys sort as they do; ids are their
// 16 bytes; a queue is a number of four bytes, which its shard has given it, see
// below. The families have the order of the reference design, whose keys stand at
// the right; here they take 19 to 32 bytes, done keys 16 more for each further
// id, and those with names as much as these.
//
//	 1 tasks        id                        codeq/tasks/<id>
//	 2 payload      id                        in the body of the task
//	 3 results      id                        codeq/results/<id>
//	 4 history      id
//	 5 idempotency  queue, escaped key, "/"   codeq/idempo/<key>
//	 6 pending      queue, 9-priority, seq, id  codeq/q/<cmd>/<tenant>/pending/<prio><seq>/<id>
//	 7 in progress  queue, id                 codeq/q/<cmd>/<tenant>/inprog/<id>, codeq/lease/<id>
//	 8 delayed      queue, due ms, id         codeq/q/<cmd>/<tenant>/delayed/<score>/<id>
//	 9 expiring     queue, expires ms, id
//	10 dead         queue, ended ms, id       codeq/q/<cmd>/<tenant>/dlq/<id>
//	11 done         queue, ended ms, ids      codeq/ttl/<expire>/<id>
//	12 counters     queue
//	13 settings     queue
//	14 names        queue
//	15 marks
//	16 bad          what the key was
//	17 labels       escaped tenant, "/", escaped name=value, "/", queue, id
//	18 named        escaped tenant, "/", kind, "/", escaped name, "/"
//	19 limited      queue, escaped concurrency key, "/", 9-priority, seq, id
//
// Tasks of a queue that ended in one round and in one way share a done key, up to MaxTogether
// of them: their ids rise in it. Retention deletes them together, as a rule.
//
// A small payload or result has no key: it stands within the record of its task.
// Outside every span there are two keys, CreationKey and, in a cluster, PositionKey.
//
// A queue gets its number in the batch of its first key, from a mark that only rises,
// and its name is written under that number; the name goes in the batch that removes
// the counters and settings of the queue, whichever is last. A queue that comes again
// gets another number: no key of the one before can ever be taken for one of it.
//
// ErrDamaged is the answer of every decoder to bytes that its encoder cannot have
// made. Append functions add to a buffer of the caller and return it.
package record
