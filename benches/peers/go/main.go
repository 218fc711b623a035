// The peers in Go, for ../src/process.rs: each line of standard input is a question, each line of
// output its answer.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

func main() {
	questions := bufio.NewScanner(os.Stdin)
	for questions.Scan() {
		words := strings.Fields(questions.Text())
		fmt.Println(answer(words[0], words[1:]))
	}
}

func answer(what string, words []string) string {
	switch what {
	case "versions":
		return versions()
	case "one":
		run := one(words[0], words[1])
		return figure(run.turn(number(words[2]), 0, 0, number(words[3])))
	case "order":
		order = readKeys(words[0])
		return "ok"
	case "fill":
		return figure(fill(words[1], readKeys(words[2])))
	case "keyed":
		run := keyed(words[1])
		return figure(run.turn(number(words[2]), number(words[3]), number(words[4]), number(words[5])))
	case "forget":
		forget()
		return "ok"
	}
	return "no such question: " + what
}

func versions() string {
	said := runtime.Version()
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if strings.HasPrefix(module.Path, "golang.org/x/time") || strings.HasPrefix(module.Path, "go.uber.org/") {
			said += ", " + module.Path + " " + module.Version
		}
	}
	return said
}

func number(text string) int {
	var number int
	if _, err := fmt.Sscan(text, &number); err != nil {
		panic(err)
	}
	return number
}

func figure(value float64) string {
	return fmt.Sprintf("%.4f", value)
}
