//! Peers in other languages. Each language has one program, which is started once and asked for
//! each of its turns, so that it takes turns with all other contenders. A question is a line, and
//! so is the answer.

use crate::measure::{Contender, Part};
use crate::who::Who;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// How many times longer a request takes in Go and Java, and in Python, than in a crate, roughly.
/// These peers are asked for so many times fewer requests.
pub const SLOWER: [usize; 2] = [16, 128];

/// A running program.
pub struct Program {
    name: &'static str,
    pipes: RefCell<Pipes>,
    /// A request takes this many times longer than one of a crate.
    slower: usize,
    /// The versions that the program reports, of its language and of its peers.
    pub versions: String,
}

struct Pipes {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    fn start(name: &'static str, slower: usize, command: &mut Command) -> Program {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|error| {
            panic!("{name}: {command:?}: {error}; tools/bench-peers.sh builds it")
        });
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let pipes = RefCell::new(Pipes { child, questions, answers });
        let mut program = Program { name, pipes, slower, versions: String::new() };
        program.versions = program.ask("versions");
        program
    }

    /// The answer to a question.
    pub fn ask(&self, question: &str) -> String {
        let mut pipes = self.pipes.borrow_mut();
        let mut answer = String::new();
        writeln!(pipes.questions.as_mut().expect("open"), "{question}").expect("the program reads");
        pipes.answers.read_line(&mut answer).expect("the program answers");
        assert!(answer.ends_with('\n'), "the {} program ended at: {question}", self.name);
        answer.trim().to_owned()
    }

    fn figure(&self, question: &str) -> f64 {
        let answer = self.ask(question);
        answer.parse().unwrap_or_else(|_| panic!("{}: {question}: {answer}", self.name))
    }

    /// A contender with one limit, under which requests are `allowed`, `denied`, or `mixed`.
    pub fn one<'a>(&'a self, who: Who, peer: &'a str, work: &'a str) -> Contender<'a> {
        Contender::by(who, self.slower, move |part: Part| {
            self.figure(&format!("one {peer} {work} {} {}", part.threads, part.count))
        })
    }

    /// A contender on the keys that have been filled in.
    pub fn keyed<'a>(&'a self, who: Who, peer: &'a str, work: &'a str) -> Contender<'a> {
        Contender::by(who, self.slower, move |part: Part| {
            let Part { threads, at, warm, count } = part;
            self.figure(&format!("keyed {peer} {work} {threads} {at} {warm} {count}"))
        })
    }

    /// Puts the keys of the file into the peer. Returns the bytes of its heap that each has taken.
    pub fn fill(&self, peer: &str, work: &str, keys: &Path) -> f64 {
        self.figure(&format!("fill {peer} {work} {}", keys.display()))
    }

    /// Sets the order in which keys are asked for from now on.
    pub fn order(&self, order: &Path) {
        assert_eq!(self.ask(&format!("order {}", order.display())), "ok", "{}", self.name);
    }

    /// Forgets all keys.
    pub fn forget(&self) {
        assert_eq!(self.ask("forget"), "ok", "{}", self.name);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program ends at the end of its questions.
        let pipes = self.pipes.get_mut();
        pipes.questions = None;
        let _ = pipes.child.wait();
    }
}

/// The programs of all languages.
pub struct Programs {
    pub go: Program,
    pub java: Program,
    pub python: Program,
}

impl Programs {
    /// Starts the programs in the directory where `tools/bench-peers.sh` has built them.
    pub fn start(built: &Path) -> Programs {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let jars = format!("{0}/java:{0}/jars/*", built.display());
        Programs {
            go: Program::start("Go", SLOWER[0], &mut Command::new(built.join("go-peers"))),
            java: Program::start(
                "Java",
                SLOWER[0],
                Command::new("java").args(["-Xmx6g", "-cp", &jars, "Peers"]),
            ),
            python: Program::start(
                "Python",
                SLOWER[1],
                Command::new(built.join("python/bin/python")).arg(here.join("python/peers.py")),
            ),
        }
    }

    pub fn all(&self) -> [&Program; 3] {
        [&self.go, &self.java, &self.python]
    }
}
