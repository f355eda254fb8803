package record

import (
	"encoding/binary"

	"codeq/wire"
)

// MaxHistory is the number of history lines a task keeps; older ones go.
const MaxHistory = 10

func lineFields(l *wire.HistoryLine, f *form) {
	number(f, 1, "delivery", &l.Delivery)
	f.str(2, "workerId", &l.WorkerID)
	number(f, 3, "fromMs", &l.FromMs)
	number(f, 4, "toMs", &l.ToMs)
	f.str(5, "cause", &l.Cause)
	number(f, 6, "closeCode", &l.CloseCode)
	f.str(7, "error", &l.Error)
	f.flag(8, "exited", &l.Exit.Coded)
	number(f, 9, "exitCode", &l.Exit.Code)
	f.str(10, "signal", &l.Exit.Signal)
	f.str(11, "by", &l.By)
	f.array(12, "callback", l.Callback[:], appendID)
}

// AppendHistory adds the value of the history of a task: old, which is its value so
// far, and one line more. Lines over MaxHistory go, the oldest first; the others
// stand as they are. The error is ErrDamaged for an old value that cannot be read.
func AppendHistory(dst, old []byte, line *wire.HistoryLine) ([]byte, error) {
	lines, err := splitHistory(string(old))
	if err != nil {
		return nil, err
	}
	var added [256]byte
	f := form{out: added[:0]}
	lineFields(line, &f)
	lines = append(lines, string(f.out))
	if over := len(lines) - MaxHistory; over > 0 {
		lines = lines[over:]
	}
	for _, text := range lines {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	return dst, nil
}

// ParseHistory reads what AppendHistory wrote, the oldest line first.
func ParseHistory(data []byte) ([]wire.HistoryLine, error) {
	texts, err := splitHistory(string(data))
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	lines := make([]wire.HistoryLine, len(texts))
	for i, text := range texts {
		f := read(text)
		lineFields(&lines[i], &f)
	}
	return lines, nil
}

// splitHistory takes a history apart into its lines, each of which can be read.
func splitHistory(text string) (lines []string, err error) {
	for rest := (form{text: text}); rest.text != ""; {
		line := rest.bytes()
		var l wire.HistoryLine
		f := read(line)
		lineFields(&l, &f)
		if _, err := f.end(); err != nil || rest.failed || len(lines) == MaxHistory {
			return nil, ErrDamaged
		}
		lines = append(lines, line)
	}
	return lines, nil
}
