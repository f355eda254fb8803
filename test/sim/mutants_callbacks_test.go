package sim

const (
	endCalls    = "an end has its callback"
	callNamed   = "the history names the callbacks"
	callStands  = "a callback tells of an end that stands"
	callCounts  = "a callback counts its attempts"
	callArrives = "no callback is lost"
	callsFew    = "an endpoint has at most eight callbacks at once"
	lifecycle   = "a task moves as its lifecycle says"
)

// Faults of callbacks and of their worker.
func init() {
	const file, worker = "shard/callback.go", "internal/callback/worker.go"
	mutants = append(mutants, mutant{
		name:   "callback: make none for a dead letter",
		edit:   edit{file: "shard/transition.go", old: "	if ends {\n		callbacks", new: "	if ends && m.to != wire.LocationDead {\n		callbacks"},
		caught: []string{endCalls},
	}, mutant{
		name:   "callback: leave it to any shard",
		edit:   edit{file: file, old: ".MovedTo(s.shard, s.shards)", new: ""},
		caught: []string{endCalls},
	}, mutant{
		name:   "callback: name none in the history",
		edit:   edit{file: file, old: "		s.span.Batch().AddHistory(t.ID, wire.HistoryLine{ToMs: s.now, Cause: wire.HistoryCallback, Callback: to[i].id})\n", new: ""},
		caught: []string{callNamed},
	}, mutant{
		name:   "callback: name it after the event behind",
		edit:   edit{file: file, old: "strconv.FormatUint(event, 10)", new: "strconv.FormatUint(event+1, 10)"},
		caught: []string{callStands, "the store says what happened", "a task comes out as it went in"},
	}, mutant{
		name:   "callback: grant it to who takes all commands",
		edit:   edit{file: file, old: "		return key.Tenant + \"\\x00\" // no tenant has this name\n", new: "		return key.Tenant\n"},
		caught: []string{"no task of another command"},
	}, mutant{
		name:   "callback: count an attempt for waiting",
		edit:   edit{file: "shard/delivery.go", old: "		place.unnoted = true\n", new: "		place.unnoted = true\n		t.Attempts++\n"},
		caught: []string{lifecycle},
	}, mutant{
		name:   "callback: keep it as long as other tasks",
		edit:   edit{file: "shard/subscribers.go", old: "	q.settings.QueueSettings = wire.FirstSettings(key.Command)\n", new: ""},
		caught: []string{"ended tasks stay as long as promised", lifecycle, "a lease is as long as was asked", "a retry waits as long as promised"},
	}, mutant{
		name:   "callback: take a redirect for an arrival",
		edit:   edit{file: "internal/callback/verdict.go", old: "	case a.succeeded():\n", new: "	case a.succeeded() || s/100 == 3:\n"},
		caught: []string{callArrives},
	}, mutant{
		name:   "callback: send nine at once",
		edit:   edit{file: "internal/callback/endpoint.go", old: "e.inFlight >= perEndpoint:", new: "e.inFlight > perEndpoint:"},
		caught: []string{callsFew},
	}, mutant{
		name:   "callback: keep the credit",
		edit:   edit{file: worker, old: "	d.queue.consumer.Return(1)\n", new: ""},
		caught: []string{"credit adds up", nothingWaits},
	}, mutant{
		name:   "callback: begin with the attempt before",
		edit:   edit{file: worker, old: "Attempt: g.Task.Attempts + 1,", new: "Attempt: g.Task.Attempts,"},
		caught: []string{callCounts},
	})
}

// Faults that tests of packages catch.
func init() {
	const worker = "internal/callback/worker.go"
	mutants = append(mutants, mutant{
		name: "callback: forget at a start who has some",
		edit: edit{file: worker, old: "		if q := &queues[i]; q.Key.Command == wire.CallbackQueue {\n", new: "		if q := &queues[i]; q.Key.Command == \"\" {\n"},
		test: "./internal/callback TestCallbacksOutliveTheProcess",
	}, mutant{
		name: "callback: let a tenant that is quiet keep its consumer",
		edit: edit{file: worker, old: "		return t.busy == 0\n", new: "		return false\n"},
		test: "./internal/callback TestTenantsThatAreQuietLoseTheirConsumer",
	}, mutant{
		name: "callback: post to a disabled endpoint",
		edit: edit{file: "internal/callback/endpoint.go", old: "	case e.State == wire.EndpointDisabled:\n", new: "	case e.State == \"\":\n"},
		test: "./internal/callback TestAnEndpointThatIsGoneIsDisabled",
	}, mutant{
		name: "callback: count the failures before a change",
		edit: edit{file: "internal/callback/endpoint.go", old: "		e.failures, e.failingSinceMs, e.version = 0, 0, version\n", new: "		e.version = version\n"},
		test: "./internal/callback TestAnEndpointThatFailsForADayIsDisabled",
	}, mutant{
		name: "callback: bury what an endpoint that is gone would get",
		edit: edit{file: worker, old: "	case v.dead && !gone:\n", new: "	case v.dead:\n"},
		test: "./internal/callback TestAnEndpointThatIsGoneIsDisabled",
	}, mutant{
		name: "callback: sign with the new secret alone",
		edit: edit{file: "wire/endpoint.go", old: "		return []string{e.Secret, e.OldSecret}\n", new: "		return []string{e.Secret}\n"},
		test: "./internal/callback TestAnOldSecretSignsForADay",
	}, mutant{
		name: "callback: post to an endpoint whatever it names",
		edit: edit{file: "shard/callback.go", old: "; e.Wants(t.Command, status) {\n", new: "; e.Wants(t.Command, status) || len(e.Statuses) > 0 {\n"},
		test: "./shard TestScripts",
	}, mutant{
		name: "callback: forget endpoints at a start",
		edit: edit{file: "shard/named.go", old: "		s.follow(found[i].NamedKey, t)\n", new: "		if found[i].Kind != record.KindWebhook {\n			s.follow(found[i].NamedKey, t)\n		}\n"},
		test: "./shard TestScripts",
	}, mutant{
		name: "callback: print the secret of an endpoint",
		edit: edit{file: "record/print.go", old: "		shown := e.WithoutSecrets()\n", new: "		shown := e\n"},
		test: "./record TestAnEndpointIsPrintedWithoutItsSecrets",
	}, mutant{
		name: "callback: send to a sick endpoint",
		edit: edit{file: "internal/callback/endpoint.go", old: "	case e.isSick() && (e.probing || nowMs < e.probeAtMs):\n", new: "	case e.isSick() && e.probing:\n"},
		test: "./internal/callback TestASickEndpointGetsOneProbe",
	}, mutant{
		name: "callback: call over http without leave",
		edit: edit{file: "internal/callback/guard.go", old: "	if plain {\n", new: "	if plain && ip.IsLoopback() {\n"},
		test: "./internal/callback TestTheGuardLooksAtTheConnection",
	})
}
