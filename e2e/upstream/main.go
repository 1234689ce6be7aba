// Runs Kubernetes' own end-to-end specs of [sig-scheduling], unchanged.
//
// This is upstream's e2e.test (test/e2e/e2e_test.go) with two differences: it imports the specs of one SIG, and writes
// the result of each spec when it ends (--spec-results). All other flags are upstream's.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"k8s.io/kubernetes/test/e2e"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"

	_ "k8s.io/kubernetes/test/e2e/feature" // the names of features, for labels of specs
	_ "k8s.io/kubernetes/test/e2e/scheduling"

	// Importing these adds checks and reports to the framework.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/utils/ktesting/format"
)

var results = flag.String("spec-results", "", "file to which a JSON line is appended for each spec that ended")

// result is one line of the results; eclectus_e2e/upstream/results.py reads it.
type result struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"`
}

func record(spec ginkgo.SpecReport) {
	if spec.State == types.SpecStateSkipped && spec.Failure.Message == "" {
		return // not selected by --ginkgo.focus; a spec that skips itself says why
	}
	line, err := json.Marshal(result{spec.FullText(), spec.State.String(), spec.RunTime.Seconds(), spec.Failure.Message})
	framework.ExpectNoError(err)
	file, err := os.OpenFile(*results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	framework.ExpectNoError(err)
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	framework.ExpectNoError(err)
}

func main() {
	testing.Init()
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	if *results != "" {
		// Not earlier: the line above runs all specs dry, and afterwards only what is in containers is left.
		ginkgo.ReportAfterEach(record)
	}
	// Ginkgo reports to a test of Go's; this runs one outside `go test`.
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "TestE2E", F: e2e.RunE2ETests}}, nil, nil)
}
