package sim

// Faults of queues with a target.
func init() {
	const worker, core = "internal/callback/target.go", "shard/delivery.go"
	const answers, token, silent = "./internal/callback TestAnswersOfATarget", "./internal/callback TestATokenFinishesWhatATargetAccepted", "./internal/callback TestASilentTargetIsTriedWithOneTask"
	mutants = append(mutants, mutant{
		name: "target: let anybody end its tasks",
		edit: edit{file: core, old: "subject == OwnSubject && !h.Token.IsZero()", new: "subject == OwnSubject"},
		test: "./shard TestScripts",
	}, mutant{
		name: "target: let nobody end its tasks by their token",
		edit: edit{file: core, old: "subject == h.Subject || subject == OwnSubject && !h.Token.IsZero()", new: "subject == h.Subject"},
		test: "./shard TestScripts",
	}, mutant{
		name: "target: keep the place of an accepted task",
		edit: edit{file: worker, old: "	case status == http.StatusAccepted:\n		d.free()\n", new: "	case status == http.StatusAccepted:\n"},
		test: token,
	}, mutant{
		name: "target: complete what was accepted",
		edit: edit{file: worker, old: "	case status == http.StatusAccepted:\n", new: "	case false:\n"},
		test: token,
	}, mutant{
		name: "target: take a result for a part of the request",
		edit: edit{file: worker, old: "	if json.Unmarshal(a.Body, new(map[string]json.RawMessage)) == nil {\n", new: "	if len(a.Body) > 0 && !a.Cut {\n"},
		test: answers,
	}, mutant{
		name: "target: count an attempt while it is busy",
		edit: edit{file: worker, old: "status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:", new: "status == http.StatusTooManyRequests:"},
		test: answers,
	}, mutant{
		name: "target: try again what it cannot process",
		edit: edit{file: worker, old: "	case status == http.StatusUnprocessableEntity:\n", new: "	case status == http.StatusNotFound:\n"},
		test: answers,
	}, mutant{
		name: "target: give a silent one all tasks",
		edit: edit{file: worker, old: "			size = 0\n			s.openIn(left)\n", new: "			size = t.Window\n			s.openIn(left)\n"},
		test: silent,
	}, mutant{
		name: "target: never try a silent one",
		edit: edit{file: worker, old: "			s.openIn(left)\n", new: ""},
		test: silent,
	}, mutant{
		name: "target: post beside a probe",
		edit: edit{file: worker, old: "now >= until || t.isSick() && now < t.probeAtMs {", new: "now >= until {"},
		test: silent,
	}, mutant{
		name: "target: hold a fault of a task against it",
		edit: edit{file: worker, old: "http.StatusTooManyRequests, http.StatusBadGateway,", new: "http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,"},
		test: silent,
	}, mutant{
		name: "target: forget it at a start",
		edit: edit{file: "shardactor/engine.go", old: "		e.learn(found.Key, &found.Settings)\n", new: "		e.router.learn(found.Key, &found.Settings)\n"},
		test: "./internal/callback TestTasksOfATargetOutliveTheProcess",
	}, mutant{
		name: "target: keep one that the queue has lost",
		edit: edit{file: worker, old: "			s.consumer.Close(0)\n		}\n		delete(w.targets, q)\n", new: "		}\n"},
		test: "./internal/callback TestATargetMayChange",
	}, mutant{
		name: "target: let a run begin never",
		edit: edit{file: worker, old: "	if d.RunForMs != 0 {\n", new: "	if d.RunForMs < 0 {\n"},
		test: "./internal/callback TestACallOfATargetEndsWithTheRun",
	})
}

// Faults of what tells subscribers of work.
func init() {
	const file, turn, told = "internal/callback/notify.go", "./internal/callback TestOneOfAGroupIsToldInTurn", "./internal/callback TestASubscriberIsToldWhileWorkWaits"
	mutants = append(mutants, mutant{
		name: "notify: tell all of a group",
		edit: edit{file: file, old: "		case s.DeliveryMode == wire.DeliverGroup:\n			groups", new: "		case s.DeliveryMode == \"\":\n			groups"},
		test: turn,
	}, mutant{
		name: "notify: tell one of a group whose last call failed",
		edit: edit{file: file, old: "(next == nil || next.failures > 0 && s.failures == 0)", new: "next == nil"},
		test: turn,
	}, mutant{
		name: "notify: tell the first queue alone",
		edit: edit{file: file, old: "			told[q] = n.toldMs[q]\n", new: "			told[q] = 0\n"},
		test: "./internal/callback TestAQueueChoosesOneByHash",
	}, mutant{
		name: "notify: have two calls under way",
		edit: edit{file: file, old: "	return !s.inFlight && nowMs >= sentMs", new: "	return nowMs >= sentMs"},
		test: told,
	}, mutant{
		name: "notify: tell of the queues of the server",
		edit: edit{file: file, old: " && !wire.IsSystemCommand(command) {", new: " {"},
		test: told,
	}, mutant{
		name: "notify: tell of a paused queue",
		edit: edit{file: file, old: "f.Ready > 0 && !f.Paused && ", new: "f.Ready > 0 && "},
		test: "./internal/callback TestNobodyIsToldOfWorkThatMayNotBegin",
	}, mutant{
		name: "notify: tell who has expired",
		edit: edit{file: file, old: "		if nowMs < s.ExpiresAtMs {\n", new: "		if nowMs < s.ExpiresAtMs+60_000 {\n"},
		test: "./internal/callback TestASubscriptionExpires",
	})
}
