package main

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

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
		kong.NamedMapper("path", kong.MapperFunc(readPath)),
	}
}

// rawString takes words as they are. What kong has for it sends them through
// JSON, which silently changes a file name or payload that is not UTF-8.
func rawString(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("text")
	if err != nil {
		return err
	}
	target.SetString(token.String())
	return nil
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
	token, err := ctx.Scan.PopValue("number")
	if err != nil {
		return err
	}
	n, ok := wire.ParseInteger(token.String())
	if !ok || target.OverflowInt(n) {
		return fmt.Errorf("must be a whole number, got %.40q", token.String())
	}
	target.SetInt(n)
	return nil
}

func readDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("time")
	if err != nil {
		return err
	}
	d, ok := wire.ParseDuration(token.String())
	if !ok {
		return fmt.Errorf("must be a time like 500ms, 10s or 1m30s, got %.40q", token.String())
	}
	target.SetInt(int64(d))
	return nil
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
