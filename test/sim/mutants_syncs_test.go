package sim

// Faults of how a shard syncs its own batch, and of frames that leave together.
func init() {
	const pipeline = "store/pipeline.go"
	mutants = append(mutants, mutant{
		name: "sync: a shard says synced of what it has only applied",
		edit: edit{file: pipeline, old: "sp.commit(pebble.Sync)", new: "sp.commit(pebble.NoSync)"},
		test: "./store TestApplyAndSyncMakesABatchDurable",
	}, mutant{
		name: "sync: a shard syncs without a syncer",
		edit: edit{file: pipeline, old: "|| !p.shardsSync.Load() ||", new: "||"},
		test: "./store TestApplyAndSyncMakesABatchDurable",
	}, mutant{
		name: "sync: a shard leaves out what others have applied",
		edit: edit{file: pipeline, old: "		target[i] = sp.applied.Load()\n", new: "		if target[i] = sp.applied.Load(); own != nil && sp != own {\n			target[i] = sp.synced.Load()\n		}\n"},
		test: "./store TestApplyAndSyncMakesABatchDurable",
	}, mutant{
		name: "socket: keep a close frame with others",
		edit: edit{file: "internal/socket/socket.go", old: " && frame[0] != closeFrame {", new: " {"},
		test: "./internal/socket TestFramesBetweenHoldAndReleaseLeaveInOneWrite",
	})
}
