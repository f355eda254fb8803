package sim

// Faults that nobody sees from outside, or only late: what is not begun anew, kept
// too long or counted from the wrong side. The test of the package itself, mostly
// one that compares with a twin, must catch them.
func init() {
	mutants = append(mutants, mutant{
		name: "inside: look for a watermark once",
		edit: edit{file: "index/lagging.go", old: "		*gone = 0\n", new: "		_ = gone\n"},
		test: "index TestIndexAgreesWithFullOrders",
	}, mutant{
		name: "inside: hurry a refill once",
		edit: edit{file: "index/refill.go", old: "		r.hurried = false\n", new: ""},
		test: "index TestIndexAgreesWithFullOrders",
	}, mutant{
		name: "inside: confirm less than before",
		edit: edit{file: "session/delivery.go", old: "max(d.confirmedSeq, seq)", new: "seq"},
		test: "session TestConversationLosesNoAnswerNoCreditAndNoConfirmation",
	}, mutant{
		name: "inside: remember a missed ping when the server reads on",
		edit: edit{file: "session/clock.go", old: "	k.ponged = true\n	k.missed = 0\n", new: "	k.ponged = true\n"},
		test: "session TestSessionsEndWithTheSecondMissedPing",
	}, mutant{
		name: "inside: take the age of a batch from one lane",
		edit: edit{file: "mailbox/mailbox.go", old: "if kept := len(batch) - n; kept > 0 && (n == 0 || b.firstPushAt.Before(oldest)) {", new: "if n == 0 {"},
		test: "mailbox TestMailboxAgreesWithOneThatCounts",
	}, mutant{
		name: "inside: forget a bound where more waits",
		edit: edit{file: "mailbox/admission.go", old: "min(a.limitAt(nowMs), waiting)", new: "waiting"},
		test: "mailbox TestMailboxAgreesWithOneThatCounts",
	}, mutant{
		name: "inside: count a row of kept units on over one that went round",
		edit: edit{file: "shard/credit.go", old: "		sub.reusedInRow = 0\n		return false\n", new: "		return false\n"},
		test: "shard TestCreditsAreReusedInRows",
	}, mutant{
		name: "inside: count a row of kept units on while nobody waits",
		edit: edit{file: "shard/credit.go", old: "	} else {\n		sub.reusedInRow = 0\n	}\n", new: "	}\n"},
		test: "shard TestCreditsAreReusedInRows",
	}, mutant{
		name: "inside: have units out for a socket that is gone",
		edit: edit{file: "shard/subscribers.go", old: "e.Gone, e.HasCredit = true, false", new: "e.Gone = true"},
		test: "shard TestBooksOfAShardAgreeAfterEveryRound",
	}, mutant{
		name: "inside: keep suspects aside that have fallen due",
		edit: edit{file: "shard/suspect.go", old: "			continue // it has fallen due\n", new: "			_ = 0\n"},
		test: "shard TestBooksOfAShardAgreeAfterEveryRound",
	})
}
