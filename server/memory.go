package server

import (
	"codeq/mailbox"
	"codeq/shardactor"
)

const (
	// partOfMemory is what each of memtables, block cache, mailboxes and outboxes gets:
	// one of so many parts. The rest is for what has no size of its own.
	partOfMemory = 8
	memTables    = 4
	// A memtable must hold a few batches, and a larger one only lengthens the
	// restart.
	minMemTableBytes = 4 << 20
	maxMemTableBytes = 64 << 20
	// minMailboxBytes lets a request at its limit in while the quarter that is
	// kept for answers stays free.
	minMailboxBytes = 12 << 20
	// mailboxMessageBytes is the share of a mailbox for each of its places.
	mailboxMessageBytes = 1 << 10
)

// memory is how a budget is spent. The zero value leaves everything at the
// defaults of the packages.
type memory struct {
	memTableBytes, cacheBytes int
	mailboxesBytes            int64
	// outboxesBytes is for what sessions hold of tasks that clients do not take.
	outboxesBytes int64
}

func splitMemory(budgetBytes int64) memory {
	part := budgetBytes / partOfMemory
	if part == 0 {
		return memory{}
	}
	return memory{
		memTableBytes:  int(min(max(part/memTables, minMemTableBytes), maxMemTableBytes)),
		cacheBytes:     int(part),
		mailboxesBytes: part,
		outboxesBytes:  part,
	}
}

// mailbox is the bound of one shard's mailbox.
func (m memory) mailbox(shards int) mailbox.Limits {
	if m.mailboxesBytes == 0 {
		return mailbox.Limits{}
	}
	bytes := int(max(m.mailboxesBytes/int64(shards), minMailboxBytes))
	messages := min(bytes/mailboxMessageBytes, shardactor.DefaultMailbox.Messages)
	return mailbox.Limits{Messages: messages, Bytes: bytes}
}
