package record

// Marks are the high-water marks of one shard, written with every batch.
type Marks struct {
	// Seq is the highest pending sequence ever drawn, Event the number of the
	// last event, TimeMs the latest engine time of a batch.
	Seq    uint64
	Event  uint64
	TimeMs int64
	// Queues is the highest number that a queue has ever been given; the store keeps it.
	Queues uint32

	// Newer has the fields that a newer program has added.
	Newer string
}

func (m *Marks) fields(f *form) {
	number(f, 1, "seq", &m.Seq)
	number(f, 2, "event", &m.Event)
	number(f, 3, "timeMs", &m.TimeMs)
	number(f, 4, "queues", &m.Queues)
}

// AppendMarks adds the value of the marks of a shard.
func AppendMarks(dst []byte, m Marks) []byte {
	f := form{out: dst}
	m.fields(&f)
	return append(f.out, m.Newer...)
}

// ParseMarks reads what AppendMarks wrote.
func ParseMarks(data []byte, m *Marks) (err error) {
	f := read(string(data))
	*m = Marks{}
	m.fields(&f)
	m.Newer, err = f.end()
	return err
}
