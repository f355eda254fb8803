package server

import (
	"testing"

	"codeq/mailbox"
	"codeq/shardactor"
)

func TestMemoryIsSplitAsTheDocumentSays(t *testing.T) {
	for budget, want := range map[int64]memory{
		0:         {},
		128 << 20: {memTableBytes: 4 << 20, cacheBytes: 16 << 20, mailboxesBytes: 16 << 20, outboxesBytes: 16 << 20},
		512 << 20: {memTableBytes: 16 << 20, cacheBytes: 64 << 20, mailboxesBytes: 64 << 20, outboxesBytes: 64 << 20},
		64 << 30:  {memTableBytes: 64 << 20, cacheBytes: 8 << 30, mailboxesBytes: 8 << 30, outboxesBytes: 8 << 30},
	} {
		if got := splitMemory(budget); got != want {
			t.Errorf("%d MiB is split into %+v, want %+v", budget>>20, got, want)
		}
	}
	if got := splitMemory(512 << 20).mailbox(4); got != shardactor.DefaultMailbox {
		t.Errorf("a mailbox of the default memory is %+v, of the engine %+v", got, shardactor.DefaultMailbox)
	}
	if got := splitMemory(512 << 20).mailbox(32); got.Bytes != minMailboxBytes {
		t.Errorf("one of 32 mailboxes is %+v", got)
	}
	if got := splitMemory(0).mailbox(4); got != (mailbox.Limits{}) {
		t.Errorf("without a budget a mailbox is %+v", got)
	}
}
