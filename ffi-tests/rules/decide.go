// Decides on requests of requests.py by the rules file os.Args[1], and prints "VERDICT STATUS RULE
// REMAINING" for each. os.Args[2] is the file for the metrics in the end.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/rules"
)

var names = []string{":method", ":path", ":address", "X-Api-Key", ":account"}

func main() {
	limits, err := rules.Open(os.Args[1], rules.Options{})
	if err != nil {
		log.Fatal(err)
	}
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	for in.Scan() {
		time, values, _ := strings.Cut(in.Text(), "\t")
		now, err := strconv.ParseUint(time, 10, 64)
		if err != nil {
			log.Fatal(err)
		}
		var request []rules.Field
		for n, value := range strings.Split(values, "\t") {
			if value != "-" {
				request = append(request, rules.Field{Name: names[n], Value: value})
			}
		}
		answer, err := limits.CheckAt(now, request)
		if err != nil {
			log.Fatal(err)
		}
		if answer.Rule == "" {
			answer.Rule = "-"
		}
		fmt.Fprintln(out, uint32(answer.Verdict), answer.Status, answer.Rule, answer.Remaining)
	}
	if err := in.Err(); err != nil {
		log.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 2 {
		text, err := limits.AppendMetrics(nil, tollbar.Prometheus, "site")
		if err == nil {
			err = os.WriteFile(os.Args[2], text, 0o600)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}
