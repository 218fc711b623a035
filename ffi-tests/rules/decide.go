// Decides on requests of requests.py by the rules file os.Args[1], and prints "VERDICT STATUS RULE
// REMAINING" for each, and "= KNOWN" where it settles one. os.Args[2] is the file for the metrics in
// the end.
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

func main() {
	limits, err := rules.Open(os.Args[1], rules.Options{})
	if err != nil {
		log.Fatal(err)
	}
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	var answer rules.Answer
	for in.Scan() {
		words := strings.Split(in.Text(), "\t")
		time, settles := strings.CutPrefix(words[0], "=")
		now, err := strconv.ParseUint(time, 10, 64)
		if err != nil {
			log.Fatal(err)
		}
		var request []rules.Field
		for n := 1; n+1 < len(words); n += 2 {
			request = append(request, rules.Field{Name: words[n], Value: words[n+1]})
		}
		if settles {
			known := 0
			if answer.Verdict == tollbar.Allowed {
				all, err := limits.SettleAt(now, &answer, request)
				if err != nil {
					log.Fatal(err)
				}
				if all {
					known = 1
				}
			}
			fmt.Fprintln(out, "=", known)
			continue
		}
		answer, err = limits.CheckAt(now, request)
		if err != nil {
			log.Fatal(err)
		}
		rule := answer.Rule
		if rule == "" {
			rule = "-"
		}
		fmt.Fprintln(out, uint32(answer.Verdict), answer.Status, rule, answer.Remaining)
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
