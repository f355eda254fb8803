package sim

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("sim.seed", 0, "the seed to run, alone; 0 runs the seeds of this test")
	stepsFlag = flag.Int("sim.steps", 6000, "steps of a run")
	forFlag   = flag.Duration("sim.for", 0, "run seeds for so long instead of a fixed number")
	bigFlag   = flag.Bool("sim.big", false, "run only seeds whose worlds have payloads that fill what may be untaken")
	nodesFlag = flag.Int("sim.nodes", 0, "run only seeds whose worlds have so many nodes: 1 is a server alone, 3 a cluster")
	briefFlag = flag.Bool("sim.brief", false, "make each run once, tell a failure in two lines, look for no shorter story, go on after a broken invariant, and take -sim.for as time of a processor")
	firstFlag = flag.Uint64("sim.first", 0, "the first of the new seeds; 0 draws it")
	soakFlag  = flag.Uint64("sim.soak", 0, "run so many seeds, new ones each time")
)

const (
	// storyLines is how much of a story is printed.
	storyLines = 120
	// shrinkTries is how many runs the search for a shorter story may make.
	shrinkTries = 150
)

// TestSim runs seeds through the simulator, every fourth one twice. How many is fixed, so
// that a run of the suite is the same on every machine; -sim.for and -sim.soak
// go on for longer, and make each run twice.
func TestSim(t *testing.T) {
	if *seedFlag != 0 {
		total := &totals{began: time.Now(), usedBefore: cpuTime(t)}
		total.trySeed(t, *seedFlag)
		total.log(t)
		return
	}
	first, seeds := uint64(1), uint64(60)
	switch {
	case raceDetector:
		// One goroutine steps everything, so there is little to find for all the
		// time it takes.
		first, seeds, *stepsFlag = 10, 2, min(*stepsFlag, 1000)
	case testing.Short():
		first, seeds = 9, 6 // three of them are clusters
	}
	if *soakFlag > 0 {
		first, seeds = newSeed(), *soakFlag
	}
	if *forFlag > 0 {
		first, seeds = newSeed(), 1<<40
	}
	runSeeds(t, first, seeds)
}

func newSeed() uint64 { return cmp.Or(*firstFlag, uint64(time.Now().UnixNano())) }

// runSeeds spreads seeds over the processors.
func runSeeds(t *testing.T, first, seeds uint64) {
	total := &totals{began: time.Now(), usedBefore: cpuTime(t)}
	var next atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for !t.Failed() {
				n := next.Add(1) - 1
				if n >= seeds || *forFlag > 0 && total.spent(t) > *forFlag {
					return
				}
				if s := shapeOf(first + n); *bigFlag && !s.big || *nodesFlag != 0 && s.nodes != (*nodesFlag > 1) {
					continue
				}
				total.trySeed(t, first+n)
			}
		})
	}
	workers.Wait()
	total.log(t)
}

// totals is what all runs of a test came to.
type totals struct {
	began                        time.Time
	usedBefore                   time.Duration
	runs, rounds, syncs, crashes atomic.Int64
}

func (x *totals) count(r report) {
	x.runs.Add(1)
	x.rounds.Add(int64(r.rounds))
	x.syncs.Add(int64(r.syncs))
	x.crashes.Add(int64(r.crashes))
}

func (x *totals) log(t *testing.T) {
	took, used := time.Since(x.began), cpuTime(t)-x.usedBefore
	t.Logf("%d runs, %d rounds, %d syncs, %d crashes in %v: %.0f rounds and %.0f crashes a minute; "+
		"%v of one processor: %.0f rounds a minute of it",
		x.runs.Load(), x.rounds.Load(), x.syncs.Load(), x.crashes.Load(), took.Round(time.Millisecond),
		float64(x.rounds.Load())/took.Minutes(), float64(x.crashes.Load())/took.Minutes(),
		used.Round(time.Millisecond), float64(x.rounds.Load())/used.Minutes())
}

// spent is how much of -sim.for is over. A mutant is given time of a processor,
// so that it is searched for as long on a busy machine as on an idle one.
func (x *totals) spent(t *testing.T) time.Duration {
	if *briefFlag {
		return cpuTime(t) - x.usedBefore
	}
	return time.Since(x.began)
}

// cpuTime is what this process has used of its processors. On a machine that
// others use too, only that can be compared.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatalf("ask for the time used: %v", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// trySeed makes the run of a seed, which must hold every property, mostly twice: then it must come
// out the same. Over a mutant once is enough, for only a property counts there.
func (x *totals) trySeed(t *testing.T, seed uint64) {
	s := script{seed, firstSteps(*stepsFlag)}
	r := run(s, false)
	x.count(r)
	if r.panicked && *briefFlag {
		// The code stopped itself. Another seed may show what it would have done.
		t.Logf("stopped itself in seed %d: %.200s", seed, r.failed.text)
		return
	}
	if r.failed != nil && *briefFlag {
		t.Errorf("\n\tcaught: %s in step %d of seed %d\n\t%.2000s", r.failed.property, r.steps, seed, r.failed.text)
		return
	}
	if r.failed != nil {
		t.Error(tellFailure(s, r))
		return
	}
	if *briefFlag || *soakFlag == 0 && *forFlag == 0 && *seedFlag == 0 && seed%4 != 0 {
		return
	}
	again := run(s, false)
	x.count(again)
	if again.failed != nil || again.sum != r.sum {
		t.Errorf("seed %d is not repeatable: %x after %d rounds, then %x after %d (%v)\n%s",
			seed, r.sum, r.rounds, again.sum, again.rounds, again.failed, firstDifference(s))
	}
}

// tellFailure is everything that somebody needs to repair what a run found.
func tellFailure(s script, r report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n\nin step %d of seed %d at %s. Again with\n\n\tgo test ./test/sim -run TestSim -sim.seed=%d -sim.steps=%d\n",
		r.failed, r.steps, s.seed, commit(), s.seed, len(s.steps))
	short, last := shrink(s, r, shrinkTries, func(s script) report { return run(s, false) })
	told := run(short, true)
	fmt.Fprintf(&b, "\n%d of its steps are enough (%v). The end of that story:\n\n", len(short.steps), last.failed.property)
	for _, line := range told.story[max(0, len(told.story)-storyLines):] {
		fmt.Fprintf(&b, "%.400s\n", line)
	}
	if told.failed != nil {
		fmt.Fprintf(&b, "\n%v\n", told.failed)
	}
	return b.String()
}

// commit is the commit that runs, as far as a repository can be asked: a seed
// means nothing without it.
func commit() string {
	said, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "a tree that git does not know"
	}
	return "commit " + strings.TrimSpace(string(said))
}

// firstDifference tells a seed twice and shows where the stories part.
func firstDifference(s script) string {
	a, b := run(s, true).story, run(s, true).story
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%s\nfirst:  %s\nsecond: %s", strings.Join(a[max(0, i-10):i], "\n"), a[i], b[i])
		}
	}
	return fmt.Sprintf("told twice, the stories are the same for %d lines of %d and %d", min(len(a), len(b)), len(a), len(b))
}

// The world must be able to fail: a run that does nothing holds every property.
func TestWorldsDoEverything(t *testing.T) {
	const first, worlds = uint64(50), uint64(28)
	var words []string
	for seed := range worlds {
		r := run(script{first + seed, firstSteps(800)}, true)
		if r.failed != nil {
			t.Fatal(tellFailure(script{first + seed, firstSteps(800)}, r))
		}
		words = append(words, strings.Join(r.story, "\n"))
	}
	story := strings.Join(words, "\n")
	for _, what := range []string{
		"(grant)", "(result)", "(nack)", "(abandon)", "(release)", "(due)", "(lease_expired)", "(timeout)", "(expired)", "(session_gone)", "(undelivered)", "(suspect)", "{Reason:suspect",
		"-> DLQ_SET", "replayed true", "refused", "the power goes (unsynced data lost)", "the power goes (unsynced data kept)",
		"the wall clock was set back", "the log cannot be synced", "tables fail", "no-grant", "only-delete", "no-enqueue", "drops socket", "is stuck: true",
		"(cancel)", "already_terminal", "(run_now)", "(taken_back)", "(move)", "(queue_deleted)", "not_waiting", "queue_deleted:", "(retention)", "(replay)", "(purge)", "{Reason:behind", "{Reason:no_room", "{Reason:no_worker", "{Reason:paused", "{Reason:delayed", "not_in_dlq", "(cleanup)", "(dlq_bound)", "hold everywhere", "paused true", "copy of the settings", "freeze {", "queue_not_empty", "thaw true", "Spread:true", "Spread:false", "into one order", "wait for", "wait no longer for", "answered elsewhere for", "POST claim of", "claim of", "extend", "undelivered to", "with its token: false", "has left: true", "heartbeat of", "received by", "timer of socket", "is full", "new work stands in shard",
		"PUT webhook", "is disabled: it answered 410", "https://t.org/a answers 200", "answers 202", "answers 422", "report of", "PUT file", "invalid_result", "is told of",
		"leads from entry", "that are not heard of", "takes a snapshot at", "it misses entries", "has no power", "is back", "is set, it is", "KiB are free at",
		"idempotency_conflict", "lease_lost", "not_owner", "not_in_progress", "task_not_found", "storage_full", "overloaded",
	} {
		if !strings.Contains(story, what) {
			t.Errorf("nothing in %d worlds is %q", worlds, what)
		}
	}
}

// A story is as short as it can be, and fails for the same reason.
func TestShrinkKeepsWhatMatters(t *testing.T) {
	fails := func(s script) report {
		r := report{steps: len(s.steps)}
		if at := slices.Index(s.steps, 93); at >= 0 && slices.Contains(s.steps, 7) {
			r.failed, r.steps = &violation{property: "both"}, at+1
		} else if slices.Contains(s.steps, 7) {
			r.failed = &violation{property: "only one"}
		}
		return r
	}
	s := script{1, firstSteps(200)}
	short, last := shrink(s, fails(s), 200, fails)
	if !slices.Equal(short.steps, []int{7, 93}) || last.failed.property != "both" {
		t.Fatalf("left are %v, which fail as %v", short.steps, last.failed)
	}
}

// Same steps, same trace; others, another.
func TestTheTraceTellsRunsApart(t *testing.T) {
	s := script{5, firstSteps(400)}
	a, b := run(s, false), run(s, true)
	if a.sum != b.sum || a.failed != nil {
		t.Errorf("one script gave %x and, told aloud, %x (%v)", a.sum, b.sum, a.failed)
	}
	s.steps = slices.Delete(slices.Clone(s.steps), 100, 200)
	if c := run(s, false); c.sum == a.sum {
		t.Errorf("another script gave %x too", c.sum)
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	// Worlds come and go, and memory is cheaper than the time to tidy it.
	debug.SetGCPercent(300)
	os.Exit(m.Run())
}
