package main

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"codeq/config"
	"codeq/wire"
)

// readValues has flags and arguments read by the rules of package wire, as the
// settings, bodies and files are. The parser's own readers take more: 0x10,
// 5_000, 010 for eight, -5s, yes.
func readValues() []kong.Option {
	return []kong.Option{
		kong.KindMapper(reflect.String, kong.MapperFunc(rawString)),
		kong.KindMapper(reflect.Int, kong.MapperFunc(readInteger)),
		kong.KindMapper(reflect.Bool, switchMapper{}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.TypeMapper(reflect.TypeFor[config.Bytes](), kong.MapperFunc(readText)),
		kong.TypeMapper(reflect.TypeFor[config.Hosts](), kong.MapperFunc(readText)),
		kong.TypeMapper(reflect.TypeFor[config.Origins](), kong.MapperFunc(readText)),
		kong.NamedMapper("path", kong.MapperFunc(readPath)),
	}
}

// rawString takes words as they are. What kong has for it sends them through
// JSON, which silently changes a file name or payload that is not UTF-8. A word
// of few may be written with other capitals.
func rawString(ctx *kong.DecodeContext, target reflect.Value) error {
	word, err := popValue(ctx)
	if err != nil {
		return err
	}
	for choice := range strings.FieldsSeq(choiceOf(ctx.Value)) {
		if ctx.Value.Flag != nil && strings.EqualFold(choice, word) {
			word = choice
		}
	}
	target.SetString(word)
	return nil
}

// popValue takes the word of a value. Behind a flag, a word that begins with - is the
// next flag, unless a digit follows: no flag has one.
func popValue(ctx *kong.DecodeContext) (string, error) {
	token := ctx.Scan.Pop()
	word := token.String()
	switch {
	case token.IsEOL():
		return "", errors.New("its value is missing")
	case token.IsValue(), len(word) > 1 && '0' <= word[1] && word[1] <= '9':
		return word, nil
	}
	return "", fmt.Errorf("its value is missing, because %.40q after it is a flag; write a value that begins with - with =, as in %s=%.40s",
		word, ctx.Value.ShortSummary(), word)
}

// readPath takes a path. One that ends in a line break or begins with a mark
// came from a file of another system, and would name another directory.
func readPath(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := rawString(ctx, target); err != nil {
		return err
	}
	if ctx.Value.Flag == nil && target.String() == "" {
		return errors.New("the path must not be empty")
	}
	if problem := wire.TextProblem(target.String()); problem != "" {
		return fmt.Errorf("the path %s, got %.80q", problem, target.String())
	}
	return nil
}

func readInteger(ctx *kong.DecodeContext, target reflect.Value) error {
	word, err := popValue(ctx)
	if err != nil {
		return err
	}
	n, ok := wire.ParseInteger(word)
	if !ok || target.OverflowInt(n) {
		return fmt.Errorf("must be a whole number, got %.40q", word)
	}
	target.SetInt(n)
	return checkBounds(ctx.Value, n, wire.ParseInteger[string])
}

func readDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	word, err := popValue(ctx)
	if err != nil {
		return err
	}
	d, ok := wire.ParseDuration(word)
	if !ok {
		return fmt.Errorf("must be %s, got %.40q", wire.DurationForm, word)
	}
	target.SetInt(int64(d))
	return checkBounds(ctx.Value, d, wire.ParseDuration)
}

// checkBounds compares a value with the tags of its flag: least, most, and whole for a time
// of whole seconds.
func checkBounds[N int64 | time.Duration](v *kong.Value, got N, parse func(string) (N, bool)) error {
	least, _ := parse(v.Tag.Get("least"))
	most, _ := parse(v.Tag.Get("most"))
	unit, isWhole := "", true
	if v.Tag.Has("whole") {
		unit, isWhole = " whole seconds", got%N(time.Second) == 0
	}
	switch low := v.Tag.Has("least") && got < least; {
	case v.Tag.Has("most") && (low || got > most || !isWhole):
		return fmt.Errorf("must be%s from %v to %v, got %v", unit, least, most, got)
	case low:
		return fmt.Errorf("must be%s at least %v, got %v", unit, least, got)
	case !isWhole:
		return fmt.Errorf("must be%s, got %v", unit, got)
	}
	return nil
}

// readText reads what settings of a type of their own are written as.
func readText(ctx *kong.DecodeContext, target reflect.Value) error {
	word, err := popValue(ctx)
	if err != nil {
		return err
	}
	return target.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(word))
}

// switchMapper reads --flag, --flag=true and --flag=false.
type switchMapper struct{}

// IsBool implements kong.BoolMapper.
func (switchMapper) IsBool() bool { return true }

// Decode implements kong.Mapper.
func (switchMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		target.SetBool(true)
		return nil
	}
	switch ctx.Scan.Pop().Value {
	case true, "true":
		target.SetBool(true)
	case false, "false":
		target.SetBool(false)
	default:
		return errors.New("must be true or false")
	}
	return nil
}
