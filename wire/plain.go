package wire

import (
	"bytes"
	"errors"
)

// ByteOrderMark is U+FEFF, which some programs put in front of a text in UTF-8.
const ByteOrderMark = "\ufeff"

// errEncoding says that a text is in an encoding in which ASCII has zero bytes.
var errEncoding = errors.New("the text has zero bytes, as UTF-16 has; save it as UTF-8")

// errLineEnds says that a text has the line ends of old systems.
var errLineEnds = errors.New("the lines end with a carriage return (CR) alone; save the text with line feeds (LF or CRLF)")

// PlainText is the text of a file that a person or a program wrote, without the
// byte order mark of UTF-8 that some put in front. The error is errEncoding for
// UTF-16, in either order and with a mark or without. Bytes that are no UTF-8
// otherwise are for the reader of the text to refuse. It keeps nothing, and what
// it returns shares the bytes of text.
func PlainText(text []byte) ([]byte, error) {
	marked := bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff"))
	if marked || bytes.IndexByte(text, 0) >= 0 {
		return nil, errEncoding
	}
	return bytes.TrimPrefix(text, []byte(ByteOrderMark)), nil
}

// CheckLineEnds returns errLineEnds for a text in which a carriage return stands
// before something other than a line feed or the end.
func CheckLineEnds(text []byte) error {
	alone := bytes.Count(text, []byte("\r")) - bytes.Count(text, []byte("\r\n"))
	if bytes.HasSuffix(text, []byte("\r")) {
		alone--
	}
	if alone > 0 {
		return errLineEnds
	}
	return nil
}
