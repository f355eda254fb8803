package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
)

// The form of a value. A field is a tag of one byte, which is its number and its
// kind, and then a number as a varint, or a length and as many bytes. Fields stand
// in the order of their numbers, a field of the value zero is left out, and a
// varint is as short as it can be: a record has one form, so bytes that a decoder
// takes are those that its encoder makes.
//
// Numbers are only ever added, each higher than all before. So what a newer program
// has written stands behind all that this one knows, is kept as it is, and is
// written again with the record.
//
// Each record names its fields once, in a method that hands them to a form in the
// order of their numbers. The form writes, reads or prints them.

// Format is the number of the form of keys and records in a data directory. A program that writes
// another form has another number, and reads this one too: docs/upgrading.md.
const Format = 5

// ErrDamaged is what a decoder says of bytes that no encoder of this package made.
var ErrDamaged = errors.New("damaged value")

// use is what a form does with the fields.
type use byte

const (
	writing use = iota
	reading
	printing
)

// The kinds of fields.
const (
	kindNumber = 0
	kindBytes  = 1
)

// form goes once through the fields of one value.
type form struct {
	use use
	out []byte
	// text is what is left to read of whole behind tag, which is that of the next
	// field, 0 at the end. last is the number of the last field that was handed over.
	text   string
	tag    byte
	last   byte
	failed bool
	whole  string
}

// read begins to read a value, which has a field at least. The strings that it gives
// are parts of text.
func read(text string) form {
	f := form{use: reading, text: text, whole: text, failed: text == ""}
	f.next()
	return f
}

// next reads the tag of the next field.
func (f *form) next() {
	f.tag = 0
	if f.text == "" {
		return
	}
	f.tag, f.text = f.text[0], f.text[1:]
	// No field has the number 0.
	f.failed = f.failed || f.tag>>1 == 0
}

// finds reports whether the field is the next one.
func (f *form) finds(number, kind byte) bool {
	f.last = number
	return f.tag == number<<1|kind && !f.failed
}

// varint takes a number off the text.
func (f *form) varint() uint64 {
	var n uint64
	for i := 0; i < len(f.text) && i < binary.MaxVarintLen64; i++ {
		b := f.text[i]
		if b >= 0x80 {
			n |= uint64(b&0x7f) << (7 * i)
			continue
		}
		// The last byte is 0 if a shorter form says the same, and of ten at most 1.
		f.failed = f.failed || b == 0 && i > 0 || i == binary.MaxVarintLen64-1 && b > 1
		f.text = f.text[i+1:]
		return n | uint64(b)<<(7*i)
	}
	f.failed = true
	return 0
}

// bytes takes a length and as many bytes off the text.
func (f *form) bytes() string {
	n := f.varint()
	if n > uint64(len(f.text)) {
		f.failed = true
		return ""
	}
	part := f.text[:n]
	f.text = f.text[n:]
	return part
}

// end reports whether the value was one, and what of it is newer than this program.
func (f *form) end() (newer string, err error) {
	if f.tag != 0 {
		newer = f.whole[len(f.whole)-len(f.text)-1:]
	}
	for last := f.last; f.tag != 0 && !f.failed; f.next() {
		f.failed = f.tag>>1 <= last
		last = f.tag >> 1
		if f.tag&1 == kindBytes {
			f.failed = f.bytes() == "" || f.failed
		} else {
			f.failed = f.varint() == 0 || f.failed
		}
	}
	if f.failed {
		return "", ErrDamaged
	}
	return newer, nil
}

// put writes a tag.
func (f *form) put(number, kind byte) { f.out = append(f.out, number<<1|kind) }

// label prints the name of a field.
func (f *form) label(name string) {
	if len(f.out) > 1 { // more than the brace
		f.out = append(f.out, ',')
	}
	f.out = append(append(append(f.out, '"'), name...), '"', ':')
}

// number is a field of any integer type. One below zero takes ten bytes.
func number[T ~int | ~int64 | ~uint64 | ~uint32 | ~uint8](f *form, number byte, name string, value *T) {
	switch {
	case f.use == reading:
		if f.finds(number, kindNumber) {
			n := f.varint()
			*value = T(n)
			f.failed = f.failed || n == 0 || uint64(*value) != n
			f.next()
		}
	case *value == 0:
	case f.use == writing:
		f.put(number, kindNumber)
		f.out = binary.AppendUvarint(f.out, uint64(*value))
	default:
		f.label(name)
		f.out = appendNumber(f.out, *value)
	}
}

func appendNumber[T ~int | ~int64 | ~uint64 | ~uint32 | ~uint8](dst []byte, n T) []byte {
	if n < 0 {
		return strconv.AppendInt(dst, int64(n), 10)
	}
	return strconv.AppendUint(dst, uint64(n), 10)
}

// flag is a field that is there or not.
func (f *form) flag(number byte, name string, value *bool) {
	switch {
	case f.use == reading:
		if f.finds(number, kindNumber) {
			*value = true
			f.failed = f.failed || f.varint() != 1
			f.next()
		}
	case !*value:
	case f.use == writing:
		f.put(number, kindNumber)
		f.out = append(f.out, 1)
	default:
		f.label(name)
		f.out = append(f.out, "true"...)
	}
}

// str is a field of any bytes.
func (f *form) str(number byte, name string, value *string) {
	switch {
	case f.use == reading:
		if f.finds(number, kindBytes) {
			*value = f.bytes()
			f.failed = f.failed || *value == ""
			f.next()
		}
	case *value == "":
	case f.use == writing:
		f.put(number, kindBytes)
		f.out = binary.AppendUvarint(f.out, uint64(len(*value)))
		f.out = append(f.out, *value...)
	default:
		f.label(name)
		f.out = strconv.AppendQuote(f.out, *value)
	}
}

// raw is str for text that was checked when it came in, and prints as it is.
func (f *form) raw(number byte, name string, value *string) {
	if f.use != printing {
		f.str(number, name, value)
		return
	}
	if *value != "" {
		f.label(name)
		f.out = append(f.out, *value...)
	}
}

var zeros [32]byte

// array is a field of a fixed number of bytes, at most 32, which show prints.
func (f *form) array(number byte, name string, value []byte, show func(dst, value []byte) []byte) {
	switch {
	case f.use == reading:
		if f.finds(number, kindBytes) {
			part := f.bytes()
			copy(value, part)
			f.failed = f.failed || len(part) != len(value) || bytes.Equal(value, zeros[:len(value)])
			f.next()
		}
	case bytes.Equal(value, zeros[:len(value)]):
	case f.use == writing:
		f.put(number, kindBytes)
		f.out = append(append(f.out, byte(len(value))), value...)
	default:
		f.label(name)
		f.out = append(show(append(f.out, '"'), value), '"')
	}
}

// word is a field with one of a few values, which stand in table by the numbers that
// are written for them. Nothing has the number 0.
func word[T ~string](f *form, number byte, name string, value *T, table []T) {
	switch {
	case f.use == reading:
		if f.finds(number, kindNumber) {
			n := f.varint()
			if n == 0 || n >= uint64(len(table)) {
				f.failed = true
				return
			}
			*value = table[n]
			f.next()
		}
	case *value == "":
	case f.use == writing:
		f.put(number, kindNumber)
		f.out = append(f.out, numberOf(*value, table))
	default:
		f.label(name)
		f.out = strconv.AppendQuote(f.out, string(*value))
	}
}

// list is a field of up to twelve numbers. Zeros at its end are left out.
func list[T ~int64 | ~uint64](f *form, number byte, name string, values []T) {
	if f.use == reading {
		if f.finds(number, kindBytes) {
			readList(f, values)
			f.next()
		}
		return
	}
	for len(values) > 0 && values[len(values)-1] == 0 {
		values = values[:len(values)-1]
	}
	if len(values) == 0 {
		return
	}
	if f.use == writing {
		f.put(number, kindBytes)
		at := len(f.out)
		f.out = append(f.out, 0)
		for _, n := range values {
			f.out = binary.AppendUvarint(f.out, uint64(n))
		}
		// Twelve varints are at most 120 bytes, whose length is one byte.
		f.out[at] = byte(len(f.out) - at - 1)
		return
	}
	f.label(name)
	f.out = append(f.out, '[')
	for _, n := range values {
		f.out = append(appendNumber(f.out, n), ',')
	}
	f.out[len(f.out)-1] = ']'
}

func readList[T ~int64 | ~uint64](f *form, values []T) {
	inner := form{text: f.bytes()}
	last := uint64(0)
	for i := 0; inner.text != "" && !inner.failed; i++ {
		if i == len(values) {
			f.failed = true
			return
		}
		last = inner.varint()
		values[i] = T(last)
	}
	f.failed = f.failed || inner.failed || last == 0
}
