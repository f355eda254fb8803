package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill is the bill of materials of a program, as JSON: the program itself with its digest, Go's
// standard library, and each module that is linked into it. go.sum's digest is of a whole module
// and no digest of a file, so it stands as a property.
func (r *release) bill(path, system string, program []byte) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	self := cdx.Component{
		BOMRef: "codeq", Type: cdx.ComponentTypeApplication, Name: "codeq", Version: r.version,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(program))}},
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}},
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	parts := []cdx.Component{{
		BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std", Version: goVersion, PackageURL: "pkg:golang/std@" + goVersion,
	}}
	for _, m := range info.Deps {
		url := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
		parts = append(parts, cdx.Component{
			BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
			Properties: &[]cdx.Property{{Name: "go.sum", Value: m.Sum}},
		})
	}
	needs := []string{}
	for i := range parts {
		needs = append(needs, parts[i].BOMRef)
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format(time.RFC3339), Component: &self,
		Properties: &[]cdx.Property{{Name: "commit", Value: r.commit}, {Name: "system", Value: system}},
	}
	b.Components, b.Dependencies = &parts, &[]cdx.Dependency{{Ref: "codeq", Dependencies: &needs}}
	var text bytes.Buffer
	err = cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(b)
	return text.Bytes(), err
}
