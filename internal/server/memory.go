package server

import (
	"codeq/mailbox"
	"codeq/shardactor"
)

const (
	// partOfMemory divides the memory: memtables, block cache, mailboxes and outboxes get one
	// part each. The rest is for everything without a bound of its own.
	partOfMemory = 8
	memTables    = 4
	// A memtable must hold a few batches; a memtable above the upper bound makes the restart
	// longer and nothing faster.
	minMemTableBytes = 4 << 20
	maxMemTableBytes = 64 << 20
	// minMailboxBytes fits the largest request into three quarters of a mailbox; one quarter
	// is kept for answers.
	minMailboxBytes = 12 << 20
	// mailboxMessageBytes divides the bytes of a mailbox by its messages.
	mailboxMessageBytes = 1 << 10
)

// memory is how the memory is divided. In the zero value every package uses its default.
type memory struct {
	memTableBytes, cacheBytes int
	mailboxesBytes            int64
	// outboxesBytes is for payloads that sessions hold until their clients take them.
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

// mailbox is the bound of the mailbox of one shard.
func (m memory) mailbox(shards int) mailbox.Limits {
	if m.mailboxesBytes == 0 {
		return mailbox.Limits{}
	}
	bytes := int(max(m.mailboxesBytes/int64(shards), minMailboxBytes))
	messages := min(bytes/mailboxMessageBytes, shardactor.DefaultMailbox.Messages)
	return mailbox.Limits{Messages: messages, Bytes: bytes}
}
