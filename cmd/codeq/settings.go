package main

import (
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"codeq/config"
)

// givenFlags names the flags that stand in the command line, as opposed to
// those that have their value by default.
func givenFlags(parsed *kong.Context) map[string]bool {
	given := map[string]bool{}
	for _, p := range parsed.Path {
		if p.Flag != nil && !p.Resolved {
			given[p.Flag.Name] = true
		}
	}
	return given
}

// settingHelp adds the default and the variable of each flag to its help, and so says
// which flags have one. The parser does not know those of settings: config looks into
// the environment.
func settingHelp(s *config.Serve) kong.HelpValueFormatter {
	beside := map[any][]string{}
	rows := config.Table(s)
	for i := range rows {
		beside[rows[i].Target()] = []string{rows[i].Default, rows[i].Env()}
	}
	return func(v *kong.Value) string {
		if v.Flag == nil {
			return kong.DefaultHelpValueFormatter(v)
		}
		facts := beside[v.Target.Addr().Interface()]
		if facts == nil {
			facts = append([]string{v.Default}, v.Tag.Envs...)
		}
		var notes []string
		if facts[0] != "" {
			notes = append(notes, "default "+facts[0])
		}
		for _, variable := range facts[1:] {
			notes = append(notes, "$"+variable)
		}
		if len(notes) == 0 {
			return v.Help
		}
		return strings.TrimSuffix(v.Help, ".") + " (" + strings.Join(notes, "; ") + ")."
	}
}

// namePlaceholders makes the value of each flag in the help the name of its kind. One
// like 30s would look like a default.
func namePlaceholders(node kong.Visitable, next kong.Next) error {
	if flag, ok := node.(*kong.Flag); ok && flag.PlaceHolder == "" {
		kind := flag.Target.Type()
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch {
		case kind == reflect.TypeFor[time.Duration]():
			flag.PlaceHolder = "DURATION"
		case kind.Kind() == reflect.Int || kind.Kind() == reflect.Float64:
			flag.PlaceHolder = "N"
		default:
			flag.PlaceHolder = strings.ToUpper(flag.Name)
		}
	}
	return next(nil)
}
