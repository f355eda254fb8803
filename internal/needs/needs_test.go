package needs

import (
	"fmt"
	"slices"
	"testing"

	"codeq/wire"
)

// now is 2026-01-01 UTC.
const now, minute = 1_767_225_600_000, 60_000

type figure struct{ at, value int64 }

var needy = []struct {
	about   string
	figures []figure
	beside  Beside
	takers  int
	target  string
	want    []string
}{
	{about: "nothing"},
	{about: "ready for a moment", figures: []figure{{wire.FigureReady, 5}, {wire.FigureOldestReadyAt, now - 9999}}},
	{
		about: "no worker", figures: []figure{{wire.FigureReady, 4120}, {wire.FigureOldestReadyAt, now - 10_000}},
		want: []string{"critical no_worker ready 4120: q has 4120 ready tasks and no worker; the oldest has waited since 23:59 UTC"},
	},
	{
		about: "a worker that hangs", figures: []figure{{wire.FigureReady, 1}, {wire.FigureOldestReadyAt, now - 1440*minute}}, takers: 1,
		want: []string{"critical no_worker ready 1: q has 1 ready task and 1 worker that takes none; the oldest has waited since 2025-12-31 00:00 UTC"},
	},
	{
		about: "workers that hang", figures: []figure{{wire.FigureReady, 2}, {wire.FigureOldestReadyAt, now - minute}}, takers: 2,
		want: []string{"critical no_worker ready 2: q has 2 ready tasks and 2 workers that take none; the oldest has waited since 23:59 UTC"},
	},
	{
		about: "a sick target", figures: []figure{{wire.FigureReady, 9}, {wire.FigureOldestReadyAt, now - minute}}, beside: Beside{SpanMs: 30_000, Started: 1, ReadyThen: 9},
		target: "the target answered 503",
		want:   []string{"critical no_worker ready 9: q has 9 ready tasks and a target that gets none, because the target answered 503; the oldest has waited since 23:59 UTC"},
	},
	{about: "taken now", figures: []figure{{wire.FigureReady, 4}, {wire.FigureOldestReadyAt, now - minute}, {wire.FigureStartedPer, 1}}},
	{about: "taken before", figures: []figure{{wire.FigureReady, 4}, {wire.FigureOldestReadyAt, now - minute}}, beside: Beside{SpanMs: 30_000, Started: 1, ReadyThen: 4}},
	{
		about: "paused", figures: []figure{{wire.FigureReady, 3}, {wire.FigureOldestReadyAt, now - minute}, {wire.FigurePaused, 1}},
		want: []string{"notice paused ready 3: q is paused and has 3 ready tasks; the oldest has waited since 23:59 UTC"},
	},
	{about: "paused and empty", figures: []figure{{wire.FigurePaused, 1}}},
	{
		// 100/s are taken, 35/s stay: 360,000 are an hour of backlog.
		about: "growing", figures: []figure{{wire.FigureReady, 108_000}}, beside: Beside{SpanMs: 60_000, Started: 6000, ReadyThen: 105_900},
		want: []string{"warning growing ready 108000: q grows by 35/s; at this rate it has 1 h of backlog at 02:00 UTC"},
	},
	{
		about: "grown", figures: []figure{{wire.FigureReady, 720_000}}, beside: Beside{SpanMs: 60_000, Started: 6000, ReadyThen: 717_900},
		want: []string{"critical growing ready 720000: q grows by 35/s and has 2.0 h of backlog"},
	},
	{
		about: "paused while it grew", figures: []figure{{wire.FigureReady, 108_000}, {wire.FigureOldestReadyAt, now - minute}, {wire.FigurePaused, 1}},
		beside: Beside{SpanMs: 60_000, Started: 6000, ReadyThen: 105_900},
		want:   []string{"notice paused ready 108000: q is paused and has 108000 ready tasks; the oldest has waited since 23:59 UTC"},
	},
	{about: "growing for a moment", figures: []figure{{wire.FigureReady, 720_000}}, beside: Beside{SpanMs: 19_999, Started: 1, ReadyThen: 0}},
	{about: "growing slowly", figures: []figure{{wire.FigureReady, 720_000}}, beside: Beside{SpanMs: 60_000, Started: 6000, ReadyThen: 719_941}},
	{about: "growing for days", figures: []figure{{wire.FigureReady, 60}}, beside: Beside{SpanMs: 60_000, Started: 6_000_000, ReadyThen: 0}},
	{about: "shrinking", figures: []figure{{wire.FigureReady, 1}}, beside: Beside{SpanMs: 60_000, Started: 6000, ReadyThen: 720_000}},
	{about: "a dead letter", figures: []figure{{wire.FigureDead, 1}}, want: []string{"warning dead dlq 1: q has 1 dead letter"}},
	{
		about: "dead letters", figures: []figure{{wire.FigureDead, 212}}, beside: Beside{Dead: DeadLetters{SinceMs: now - 5*minute, Reason: "timeout", Of: 200, Same: 198}},
		want: []string{"warning dead dlq 212: q has 212 dead letters since 23:55 UTC[; 198 of the newest 200: timeout]"},
	},
	{
		about: "a delivery without an end", figures: []figure{{wire.FigureInProgress, 3}},
		beside: Beside{Slow: Slow{Count: 1, SinceMs: now - 90*minute}, RunP99Ms: 1023},
		want:   []string{"warning slow inProgress 1: q has a task that runs since 22:30 UTC, but 99 of 100 end within 1.0 s: its worker may hang"},
	},
	{
		about: "deliveries without an end", figures: []figure{{wire.FigureInProgress, 3}},
		beside: Beside{Slow: Slow{Count: 9, SinceMs: now - 90*minute}, RunP99Ms: 1023},
		want:   []string{"warning slow inProgress 3: q has 3 tasks that run too long, the first since 22:30 UTC, but 99 of 100 end within 1.0 s: their workers may hang"},
	},
	{about: "a delivery that has ended since the look", beside: Beside{Slow: Slow{Count: 1, SinceMs: now - 90*minute}, RunP99Ms: 1023}},
	{about: "suspect", beside: Beside{Suspect: 1}, want: []string{"warning set_aside  1: q held back 1 suspect task: three deliveries in a row did not arrive"}},
	{about: "unreadable", beside: Beside{Unreadable: 2}, want: []string{"warning set_aside  2: q lost 2 unreadable tasks: their records were set aside"}},
	{about: "both", beside: Beside{Suspect: 1, Unreadable: 2}, want: []string{
		"warning set_aside  3: q lost 2 unreadable tasks, whose records were set aside, and held back 1 suspect task: three deliveries in a row did not arrive",
	}},
}

func TestNeedsOfAQueue(t *testing.T) {
	t.Parallel()
	for _, c := range needy {
		var f wire.Figures
		for _, set := range c.figures {
			f[set.at] = set.value
		}
		var got []string
		for _, n := range Of(&Condition{Name: &wire.SlotName{Command: "q"}, Figures: &f, Beside: &c.beside, Takers: c.takers, Target: c.target}, now) {
			line := fmt.Sprintf("%s %s %s %d: %s", n.Severity, n.Reason, n.State, n.Count, n.Sentence)
			if n.Told != "" {
				line += "[" + n.Told + "]"
			}
			got = append(got, line)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\nwant %q", c.about, got, c.want)
		}
	}
}

func TestATimeIsSaidWithFewDigits(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{1: "1 ms", 999: "999 ms", 4095: "4.1 s", 16_383: "16 s", 65_535: "66 s", 131_071: "2 min"} {
		if got := lasting(ms); got != want {
			t.Errorf("%d ms: %q, want %q", ms, got, want)
		}
	}
}

func TestADeliveryIsLongTenTimesAfterOthersHaveEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ p99Ms, want int64 }{{0, 0}, {1, now - 60_000}, {6000, now - 60_000}, {6001, now - 60_010}} {
		if got := (&Beside{RunP99Ms: c.p99Ms}).LongBefore(now); got != c.want {
			t.Errorf("where 99 of 100 take %d ms: %d, want %d", c.p99Ms, got, c.want)
		}
	}
}

func TestNeedsAreWorstFirstAndBounded(t *testing.T) {
	t.Parallel()
	disk, refuses := OfDisk(&wire.ServerFigures{DiskGuard: "no-enqueue", DiskFreeBytes: 5 << 20})
	if _, fine := OfDisk(&wire.ServerFigures{DiskGuard: "ok"}); fine || !refuses {
		t.Error("the disk guard is not told, or told when it refuses nothing")
	}
	needs := []wire.Need{{Severity: wire.NeedNotice, Command: "a", Count: 9}}
	for n := range int64(2 * maxNeeds) {
		needs = append(needs, wire.Need{Severity: wire.NeedWarning, Command: "a", Count: n}, wire.Need{Severity: wire.NeedCritical, Command: "a", Count: n})
	}
	needs = WorstFirst(append(needs, disk.Need))
	if len(needs) != maxNeeds || needs[0].Sentence != "the disk guard is at no-enqueue: new tasks are refused; 5 MiB are free" ||
		needs[1].Severity != wire.NeedCritical || needs[1].Count != 2*maxNeeds-1 {
		t.Errorf("%d needs, first %+v and %+v", len(needs), needs[0], needs[1])
	}
}
