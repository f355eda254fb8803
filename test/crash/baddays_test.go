package crash

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

var daysFlag = flag.Int("crash.days", 0, "how many of each kind of bad day a cluster has under many clients")

// day is one bad day of a cluster: begin has it happen, end mends it.
type day struct {
	name       string
	begin, end func(*badDays)
}

// leadTimeout is longer than a leader leads without the others, and a follower waits for it.
const leadTimeout = 3 * time.Second

// days are the kinds. Jepsen found the last three to cost NATS 2.12.1 acknowledged writes.
var days = []day{
	{"the leader is not heard", func(b *badDays) { b.each(func(lead, other int) { b.Between.Hold(lead, other) }) }, (*badDays).healed},
	{"the leader does not hear", func(b *badDays) { b.each(func(lead, other int) { b.Between.Hold(other, lead) }) }, (*badDays).healed},
	{"the leader is cut off", func(b *badDays) { b.Between.Isolate(b.Index(b.old)) }, (*badDays).healed},
	{"the leader is cut off again and again", func(b *badDays) {
		for n := range 6 {
			b.Between.Isolate(b.Index(b.old))
			time.Sleep(time.Duration(150+100*n) * time.Millisecond) // from less than an election takes to more
			b.Between.Heal()
			time.Sleep(200 * time.Millisecond) // some of the time for work
		}
	}, func(b *badDays) { b.AwaitAll() }},
	{"the leader stands still", func(b *badDays) { b.old.Pause() }, func(b *badDays) {
		b.AwaitOther(b.old)
		b.old.Continue()
		b.AwaitAll()
	}},
	{"all lose power", func(b *badDays) {
		for _, s := range b.Nodes {
			s.Kill()
		}
	}, func(b *badDays) {
		for _, s := range b.Nodes {
			s.Start()
		}
		b.AwaitAll()
	}},
	{"a node is lost for ever and replaced", (*badDays).lose, func(b *badDays) {
		b.Replace(b.old)
		b.AwaitAll()
	}},
	{"a node is replaced while another one is cut off", func(b *badDays) {
		b.lose()
		lead := b.Index(b.Leader())
		other := 3 - lead - b.Index(b.old)
		over := make(chan struct{})
		b.flaps = func() { close(over) }
		go func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(100 * time.Millisecond): // of the time for work
				}
				b.Between.Hold(other, lead)
				time.Sleep(150 * time.Millisecond) // less than an election takes, so that the leader stays
				b.Between.Heal()
			}
		}()
	}, func(b *badDays) {
		b.Replace(b.old)
		b.flaps()
		b.Between.Heal()
		b.AwaitAll()
	}},
}

// badDays is a cluster that has bad days.
type badDays struct {
	*blackbox.Cluster
	day day
	// old is the node of the day, flaps ends what goes on beside it.
	old   *blackbox.Server
	flaps func()
}

// Kill begins the next day.
func (b *badDays) Kill() {
	b.old = b.Leader()
	b.day.begin(b)
}

// Start ends it.
func (b *badDays) Start() {
	b.day.end(b)
}

// each calls do with the leader and each other node.
func (b *badDays) each(do func(lead, other int)) {
	lead := b.Index(b.old)
	for other := range b.Nodes {
		if other != lead {
			do(lead, other)
		}
	}
}

// healed waits for another leader and then mends the network.
func (b *badDays) healed() {
	b.AwaitOther(b.old)
	b.Between.Heal()
	b.AwaitAll()
}

// lose kills a node that does not lead.
func (b *badDays) lose() {
	b.old = b.Follower()
	b.old.Kill()
}

// What clients see across bad days can be explained one task at a time: what was acknowledged stays,
// and nothing is completed twice.
func TestBadDaysLoseNothing(t *testing.T) {
	if *daysFlag == 0 {
		t.Skip("a history of bad days takes a minute") // make cluster-faults runs it
	}
	const atOnce = 10 // days of one history
	for _, kind := range days {
		for n := 0; n < *daysFlag && !t.Failed(); n += atOnce {
			much := min(atOnce, *daysFlag-n)
			t.Run(fmt.Sprint(kind.name, " ", n+much), func(t *testing.T) {
				b := &badDays{Cluster: blackbox.ServeApart(t, "--ping-seconds", "1"), day: kind}
				makeHistory(t, place{b.Addr, b, func() {}, true}, uint64(time.Now().UnixNano()), size{tasks: int64(150 * (much + 1)), kills: much, undoctored: true})
			})
		}
	}
}

// A leader that was cut off or stood still, and that another one has taken the place of, answers
// nothing that is no longer true: not while it is away, and not when it is back.
func TestAnOldLeaderTellsNothingOld(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers and their elections") // the long tests run it
	}
	b := &badDays{Cluster: blackbox.ServeApart(t)}
	for _, away := range []day{
		{"cut off", func(b *badDays) { b.Between.Isolate(b.Index(b.old)) }, func(b *badDays) { b.Between.Heal() }},
		{"paused", func(b *badDays) { b.old.Pause() }, func(b *badDays) { b.old.Continue() }},
	} {
		b.old = b.Leader()
		task := mustPost(t, b.old)
		away.begin(b)
		other := b.AwaitOther(b.old)
		ctx, cancel := context.WithTimeout(t.Context(), 2*leadTimeout)
		api := blackbox.NewAPI(other.Addr)
		if _, err := api.Do(ctx, "POST", "/tasks/"+task.String()+"/cancel", ""); err != nil {
			t.Errorf("%s: a cancel at the next leader: %v", away.name, err)
		}
		api.Close()
		answers := make(chan string, 1)
		go func() { answers <- statusAt(ctx, b.old, task) }()
		if away.name == "cut off" {
			if got := <-answers; got != string(wire.CodeNotLeader) {
				t.Errorf("%s: the old leader says of a cancelled task: %s", away.name, got)
			}
			go func() { answers <- statusAt(ctx, b.old, task) }()
		}
		away.end(b)
		if got := <-answers; got != string(wire.StatusCancelled) && got != string(wire.CodeNotLeader) {
			t.Errorf("%s: when it is back the old leader says of a cancelled task: %s", away.name, got)
		}
		cancel()
		b.AwaitAll()
		if got := statusAt(t.Context(), b.old, task); got != string(wire.StatusCancelled) {
			t.Errorf("%s: at the end it says %s", away.name, got)
		}
	}
}

func mustPost(t *testing.T, at *blackbox.Server) wire.TaskID {
	t.Helper()
	api := blackbox.NewAPI(at.Addr)
	defer api.Close()
	task, err := api.Post(t.Context(), `{"command":"c","payload":"`+marker+`"}`)
	if err != nil {
		t.Fatal(err)
	}
	return task.ID
}

// marker is found again in the files of a node.
const marker = "what a synced record holds"

// statusAt is what a node says of a task: its status, or the code of a refusal.
func statusAt(ctx context.Context, at *blackbox.Server, id wire.TaskID) string {
	api := blackbox.NewAPI(at.Addr)
	defer api.Close()
	task, err := api.Read(ctx, id)
	if err == nil {
		return string(task.Status)
	}
	if refusal, is := err.(*wire.Error); is {
		return string(refusal.Code)
	}
	return err.Error()
}

// joinAnew is what a damaged node says is to be done.
const joinAnew = "remove this node from the cluster, empty its directory and let it join anew"

// A node of which one bit is flipped in what it has synced does not start: it names the file and what
// to do, and changes nothing. The others go on, and it comes back by joining anew. Jepsen: one
// flipped bit cost NATS 2.12.1 half of what was acknowledged.
func TestAFlippedBitStopsItsNode(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers and their elections") // the long tests run it
	}
	c := blackbox.ServeCluster(t)
	tasks := []wire.TaskID{mustPost(t, c.Leader()), mustPost(t, c.Leader())}
	damages := []struct {
		in   string
		flip func(*testing.T, string) (file string)
		// behind is whether the node says at which byte.
		behind bool
	}{
		{"raft", flipMarked, true},
		{"snapshots", flipMeta, false},
		{"peer", flipMeta, false},
	}
	if *daysFlag == 0 {
		damages = damages[:1] // make cluster-faults has all
	}
	for _, damage := range damages {
		s := c.Follower()
		s.Kill()
		file := damage.flip(t, filepath.Join(s.Dir, damage.in))
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said := s.Refused()
		if !strings.Contains(said, filepath.Base(file)) || !strings.Contains(said, joinAnew) ||
			damage.behind && !strings.Contains(said, "byte") {
			t.Errorf("a flipped bit in %s: the node says\n%s", file, said)
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the start has changed %s (%v)", file, err)
		}
		tasks = append(tasks, mustPost(t, c.Leader()))
		c.Replace(s)
		c.AwaitAll()
		for _, id := range tasks {
			if got := statusAt(t.Context(), s, id); got != string(wire.StatusPending) {
				t.Errorf("after the damage in %s task %v is %s", damage.in, id, got)
			}
		}
	}
}

// A node of which one bit is flipped in a table of tasks stops when it reads that, names the file and
// what to do, and costs nothing: the others have what it has lost.
func TestAFlippedBitInATableStopsItsNode(t *testing.T) {
	if *daysFlag == 0 {
		t.Skip("three servers and their elections") // make cluster-faults runs it
	}
	c := blackbox.ServeCluster(t)
	tasks := []wire.TaskID{mustPost(t, c.Leader())}
	s := c.Follower()
	s.Stop() // what is in memory goes to a table
	file := flipTable(t, filepath.Join(s.Dir, "db"))
	stopped := make(chan struct{})
	go func() {
		for { // it reads all open tasks when it leads, if it has not before
			select {
			case <-stopped:
				return
			case <-time.After(200 * time.Millisecond): // of the time that a start takes
				c.Transfer(s)
			}
		}
	}()
	said := s.Refused()
	close(stopped)
	if !strings.Contains(said, file) || !strings.Contains(said, joinAnew) {
		t.Errorf("a flipped bit in %s: the node says\n%s", file, said)
	}
	tasks = append(tasks, mustPost(t, c.Leader()))
	c.Replace(s)
	c.AwaitAll()
	for _, id := range tasks {
		if got := statusAt(t.Context(), s, id); got != string(wire.StatusPending) {
			t.Errorf("after the damage in %s task %v is %s", file, id, got)
		}
	}
}

// A directory that was copied from a node that runs changes nothing for the others, and that of a node
// that was removed is refused; emptied, it is that of a new node.
func TestDirectoriesOfNoNode(t *testing.T) {
	if *daysFlag == 0 {
		t.Skip("three servers and their elections") // make cluster-faults runs it
	}
	c := blackbox.ServeCluster(t)
	task, lead, s := mustPost(t, c.Leader()), c.Leader(), c.Follower()
	copied := filepath.Join(t.TempDir(), "copied")
	s.Kill()
	if err := os.CopyFS(copied, os.DirFS(s.Dir)); err != nil {
		t.Fatal(err)
	}
	s.Start()
	double := blackbox.ServeOver(t, copied, "--peer-listen", blackbox.Address(t))
	for until := time.Now().Add(leadTimeout); time.Now().Before(until); time.Sleep(50 * time.Millisecond) { // a copy that harms does so within an election
		mustPost(t, c.Leader())
		if double.Leads() {
			t.Fatal("a copy of a node leads")
		}
	}
	double.Kill()
	c.AwaitAll()
	if now := c.Leader(); now != lead {
		t.Error("a copy of a node took the lead away")
	}

	s.Kill()
	c.Remove(s)
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), 2*leadTimeout)
	defer cancel()
	if got := statusAt(ctx, s, task); got != string(wire.CodeNotLeader) {
		t.Errorf("a removed node says of a task: %s", got)
	}
	if now := c.Leader(); now != lead {
		t.Error("a removed node took the lead away")
	}
	s.Kill()
	c.Replace(s)
	c.AwaitAll()
	if got := statusAt(t.Context(), s, task); got != string(wire.StatusPending) {
		t.Errorf("at the end the task is %s", got)
	}
}

// flipMarked flips a bit of a record in a log.
func flipMarked(t *testing.T, dir string) string { return flip(t, dir, ".log", marker) }

// flipMeta flips a bit of a JSON file.
func flipMeta(t *testing.T, dir string) string { return flip(t, dir, ".json", `"`) }

// flipTable flips a bit of the first block of the largest table of a database.
func flipTable(t *testing.T, dir string) (file string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables in %s (%v)", dir, err)
	}
	var data []byte
	for _, table := range tables {
		content, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > len(data) {
			file, data = table, content
		}
	}
	data[len(data)/8] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// flip flips a bit of the first file whose name ends so and that holds a text, at the text.
func flip(t *testing.T, dir, ends, text string) (file string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ends) {
			return err
		}
		data, err := os.ReadFile(path)
		if at := bytes.Index(data, []byte(text)); err == nil && at >= 0 {
			file = path
			data[at] ^= 1
			err = os.WriteFile(path, data, 0o600)
		}
		if err == nil && file != "" {
			err = fs.SkipAll
		}
		return err
	})
	if err == nil && file == "" {
		err = fmt.Errorf("no file in %s that ends in %s holds %q", dir, ends, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}
