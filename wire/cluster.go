package wire

// ClusterStatus is the answer of GET /v1/codeq/admin/cluster: the nodes as the leader sees them.
type ClusterStatus struct {
	// Leader is the id of the node that leads and answers.
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
	// Voters is how many nodes vote, Reachable how many of those answer, the leader included.
	Voters    int `json:"voters"`
	Reachable int `json:"reachable"`
	// MayLose is how many of the voters that answer may be lost before the cluster stops.
	MayLose int           `json:"mayLose"`
	Nodes   []ClusterNode `json:"nodes"`
}

// ClusterNode is one node of a cluster. What the node says of itself is absent if it does not
// answer.
type ClusterNode struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	// URL is where clients reach the node, if somebody has said it.
	URL       string `json:"url,omitempty"`
	Voter     bool   `json:"voter"`
	Reachable bool   `json:"reachable"`
	// Role is leader, follower or candidate.
	Role    string `json:"role,omitempty"`
	Version string `json:"version,omitempty"`
	// Applied is the last entry of the log that its database has, Behind how many those of the
	// leader has more.
	Applied uint64 `json:"applied,omitempty"`
	Behind  uint64 `json:"behind,omitempty"`
	// LastContactMs is the time since it heard of the leader; 0 at the leader.
	LastContactMs int64 `json:"lastContactMs,omitempty"`
	// ClockAheadMs is how far its clock is ahead of that of the leader, 0 for less than a second.
	ClockAheadMs int64 `json:"clockAheadMs,omitempty"`
	// FreeBytes is the space on its disk, 0 if its system does not tell it.
	FreeBytes int64 `json:"freeBytes,omitempty"`
	// SnapshotAt is when its newest snapshot was made, as all times of the protocol are written.
	SnapshotAt string `json:"snapshotAt,omitempty"`
}
