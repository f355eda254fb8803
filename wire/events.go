package wire

import "math"

// WatchSubprotocol is the name and version of the protocol of GET /v1/codeq/events.
const WatchSubprotocol = "codeq.events.v1"

// Limits of the watch protocol.
const (
	MaxWatchMessageBytes = 64 << 10
	// MaxWatches bounds the subscriptions of one socket.
	MaxWatches         = 32
	MaxWatchIDBytes    = 64
	MaxWatchCommands   = 100
	MaxWatchCauses     = 32
	MinWatchEveryMs    = 250
	MaxWatchEveryMs    = 10_000
	MaxWatchPerSecond  = 1000
	MaxWatchPage       = 200
	WatchMarkMs        = 5000
	DefaultWatchMs     = 1000
	DefaultWatchEvents = 200
	DefaultWatchPage   = 50
)

// The kinds of a subscription.
const (
	WatchQueues  = "queues"
	WatchTask    = "task"
	WatchPage    = "page"
	WatchEvents  = "events"
	WatchWorkers = "workers"
	WatchServer  = "server"
)

// watchKinds are the kinds of a subscription.
var watchKinds = []string{WatchQueues, WatchTask, WatchPage, WatchEvents, WatchWorkers, WatchServer}

// The reasons of a gap.
const (
	// GapEvicted: the server has these events no more.
	GapEvicted = "evicted"
	// GapSlow: the client reads too slowly.
	GapSlow = "slow"
	// GapSampled: there were more events than the subscription allows in a second.
	GapSampled = "sampled"
	// GapRestarted: the server has started since, and keeps no output over a start.
	GapRestarted = "restarted"
)

// GapOutput is what a gap of kind task is of that is not of events.
const GapOutput = "output"

// WatchSubscribe begins a subscription, or replaces the one with the same ID. Only the
// members of its kind are set.
type WatchSubscribe struct {
	Ref
	ID   string
	Kind string
	// Commands filter by queue: names, or prefixes that end with ".*". None are all.
	Commands []string
	// EveryMs is the least time between two ticks.
	EveryMs int
	// RangeMs is how much history the answer has before now; 0 is none.
	RangeMs int64
	// TaskID is the task of kind task.
	TaskID TaskID
	// Command, State and Limit are those of the page of kind page. Cursor is that of the page
	// before.
	Command string
	State   string
	Limit   int
	Cursor  string
	// Filter makes the page one of the tasks that a search finds: what ParseTaskSearch reads.
	// The parser sets Command and State to those of the search, and they are not sent.
	Filter []byte
	// Causes filter events; none are all.
	Causes []string
	// After has, for each shard, the number of the last event that the client has; nil is
	// the present. CreationID is the database that the numbers are of.
	After      []uint64
	CreationID string
	// Reported is the number of the last report of the task that the client has. It comes with
	// Resume alone.
	Reported uint64
	// MaxPerSecond bounds the events that are sent in a second.
	MaxPerSecond int
}

// WatchUnsubscribe ends a subscription.
type WatchUnsubscribe struct {
	Ref
	ID string
}

// WatchWelcome answers a good hello.
type WatchWelcome struct {
	// CreationID is drawn when a database is made. The numbers of events of two databases
	// have nothing to do with each other.
	CreationID string `json:"creationId"`
	Shards     int    `json:"shards"`
	// Positions are the numbers of the last event of each shard, Oldest those of the oldest
	// event that the server still has.
	Positions    Positions `json:"positions"`
	Oldest       Positions `json:"oldest"`
	ServerTimeMs int64     `json:"-"`
	TenantID     string    `json:"tenantId"`
	// Admin: the credential may change queues.
	Admin    bool     `json:"admin"`
	Version  string   `json:"version"`
	Features []string `json:"features"`
	// Leader is the URL of the node that leads a cluster; empty without one.
	Leader string `json:"leader"`
}

// Positions has a number for each shard, by the number of the shard.
type Positions []uint64

// WatchNames says which queue a slot stands for, from now on.
type WatchNames struct{ Queues []SlotName }

// SlotName is one slot. Without a command the queue is gone, and the slot may come again for
// another one. The command AllCommands is the sum of the queues that have no slot.
type SlotName struct {
	Slot    uint32
	Tenant  string
	Command string
}

// The figures of a queue, by their place in its row. Numbers of tasks are those of now; those
// with Per are of the last whole second; times are milliseconds.
const (
	FigureReady = iota
	FigureDelayed
	FigureInProgress
	FigureDead
	// FigureDone counts the ended tasks that are kept and are not dead letters.
	FigureDone
	FigureInPer
	FigureStartedPer
	FigureCompletedPer
	FigureFailedPer
	FigureRetriedPer
	FigureExpiredPer
	// FigureOldestReadyAt is when the first ready task became ready, Unix milliseconds; 0
	// if none is.
	FigureOldestReadyAt
	FigureWaitP50
	FigureWaitP99
	FigureRunP50
	FigureRunP99
	// FigurePaused is 1 for a paused queue.
	FigurePaused
	// FigureLimited counts the tasks that their concurrency key holds back.
	FigureLimited
	figures
)

// Figures are the figures of a queue.
type Figures [figures]int64

// TotalSlot is the slot of no queue: its row is the sum of all queues of a subscription. Its
// FigureOldestReadyAt is the least one, FigurePaused counts the paused queues, and its
// percentiles are of the times of all queues together.
const TotalSlot = math.MaxUint32

// QueueRow is the figures of the queue of a slot.
type QueueRow struct {
	Slot uint32
	Figures
}

// WatchPoint is the figures of a queue at a time, Unix milliseconds. The figures with Per are
// sums over the step of the points.
type WatchPoint struct {
	AtMs int64
	Figures
}

// WatchState is what a subscription shows. Only the members of its kind are set.
type WatchState struct {
	Queues []QueueRow `json:"queues"`
	Task   *Task      `json:"task"`
	// Tasks are the rows of a page.
	Tasks    []*Task          `json:"tasks"`
	Sessions []SessionFigures `json:"sessions"`
	// Left are the ids of tasks or sessions that are no more part of what is shown.
	Left []string `json:"left"`
	// Above counts the tasks that a new page would have before the last one of this page that
	// is still listed, or anywhere if this page had the whole list; at most the limit of the
	// page. nil for a page with a filter.
	Above *int64 `json:"above"`
	// Server and Needs are those of kind server.
	Server *ServerFigures `json:"server"`
	Needs  []Need         `json:"needs"`
	// Encoded, if it is not nil, is appended in place of all of the above: what AppendWatchState
	// has made of another state. No parser sets it.
	Encoded []byte `json:"-"`
}

// WatchSnapshot is what a subscription shows first, and again when it cannot go on.
type WatchSnapshot struct {
	ID string `json:"id"`
	// At are the numbers of the last events that the snapshot contains.
	At Positions `json:"at"`
	// AtMs is when a page was read, Unix milliseconds; 0 for other kinds.
	AtMs int64 `json:"t"`
	// Scanned is how many tasks were looked at for a page with a filter, nil for another kind
	// or page. Cursor is where the next page begins, "" without one.
	Scanned *int64 `json:"scanned"`
	Cursor  string `json:"cursor"`
	// More: the next snapshot of this ID continues this one.
	More bool `json:"more"`
	WatchState
}

// WatchTick is what changed since the snapshot or the last tick.
type WatchTick struct {
	ID string `json:"id"`
	// AtMs is the time of the server, Unix milliseconds.
	AtMs int64 `json:"t"`
	WatchState
}

// WatchPoints is the history of one queue.
type WatchPoints struct {
	ID     string       `json:"id"`
	Slot   uint32       `json:"slot"`
	StepMs int64        `json:"stepMs"`
	Points []WatchPoint `json:"points"`
}

// WatchEvent is one transition of a task.
type WatchEvent struct {
	ID    string `json:"id"`
	Shard int    `json:"shard"`
	// Number counts the events of a shard without gaps.
	Number  uint64   `json:"n"`
	AtMs    int64    `json:"-"`
	Task    TaskID   `json:"task"`
	Tenant  string   `json:"tenant"`
	Command string   `json:"command"`
	From    Location `json:"from"`
	To      Location `json:"to"`
	Status  Status   `json:"status"`
	Cause   string   `json:"cause"`
	// Delivery is the number of the delivery that began or ended.
	Delivery int    `json:"delivery"`
	Worker   string `json:"worker"`
	// SpentMs is how long the task was in From.
	SpentMs  int64 `json:"spentMs"`
	Attempts int   `json:"attempts"`
}

// WatchGap says that events of a subscription were not sent.
type WatchGap struct {
	ID    string `json:"id"`
	Shard int    `json:"shard"`
	// From and To are the numbers of the first and the last event of the gap.
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Reason string `json:"reason"`
	// Missed counts the events that were not sent, or might have been, if the server has them
	// no more.
	Missed uint64 `json:"missed"`
	// Of is GapOutput if output may be missing, of which nobody knows how much; else "".
	Of string `json:"of"`
}

// WatchMark says that every event up to Positions was sent, if a subscription wants it.
type WatchMark struct {
	Positions Positions `json:"positions"`
}

// WatchError answers a client frame that failed, or ends the subscription ID.
type WatchError struct {
	ID string
	ErrorFrame
}

func (*WatchWelcome) serverFrame()  {}
func (*WatchNames) serverFrame()    {}
func (*WatchSnapshot) serverFrame() {}
func (*WatchTick) serverFrame()     {}
func (*WatchPoints) serverFrame()   {}
func (*WatchEvent) serverFrame()    {}
func (*WatchGap) serverFrame()      {}
func (*WatchMark) serverFrame()     {}
